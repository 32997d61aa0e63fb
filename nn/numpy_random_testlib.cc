// The algorithms behind np.random's module-level functions (RandomState).
#include "nn/numpy_random_testlib.h"

#include <bit>
#include <cmath>
#include <utility>

namespace wengert::testing {

double NumpyRandom::RandomSample() {
  const uint32_t high = bits_() >> 5;  // 27 bits
  const uint32_t low = bits_() >> 6;   // 26 bits
  return (high * 0x1p26 + low) / 0x1p53;
}

double NumpyRandom::Normal() {
  if (cached_normal_) {
    return *std::exchange(cached_normal_, std::nullopt);
  }
  double x1, x2, r2;
  do {
    x1 = 2 * RandomSample() - 1;
    x2 = 2 * RandomSample() - 1;
    // NumPy rounds both products; a compiler may fuse one into the sum, which
    // log(r2) near r2 = 1 would show.
    const volatile double x1_squared = x1 * x1;
    const volatile double x2_squared = x2 * x2;
    r2 = x1_squared + x2_squared;
  } while (r2 >= 1 || r2 == 0);
  const double f = std::sqrt(-2 * std::log(r2) / r2);
  cached_normal_ = f * x1;
  return f * x2;
}

std::vector<double> NumpyRandom::Normal(int64_t n) {
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(Normal());
  return values;
}

int64_t NumpyRandom::RandInt(int64_t high) {
  const uint32_t largest = static_cast<uint32_t>(high - 1);
  if (largest == 0) return 0;
  const uint32_t mask = ~uint32_t{0} >> std::countl_zero(largest);
  uint32_t value;
  do {
    value = static_cast<uint32_t>(bits_()) & mask;
  } while (value > largest);
  return value;
}

std::vector<int64_t> NumpyRandom::RandInt(int64_t high, int64_t n) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(RandInt(high));
  return values;
}

}  // namespace wengert::testing
