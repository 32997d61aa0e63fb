// The fills run in parallel; chunks are even, so that no block of four words is
// computed twice.
#include "autograd/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/parallel.h"

namespace wengert {
namespace {

constexpr int64_t kGrain = 1 << 14;

// The finalizer of splitmix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014).
uint64_t Mix(uint64_t z) {
  z += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// y[2k] and y[2k + 1] from the four words of block k, for the chunks of 0 .. n.
template <typename T, typename Pair>
void FillPairs(uint64_t seed, uint64_t offset, int64_t n, T* y, Pair pair) {
  ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += 2) {
      const auto words = Philox::Block(seed, i / 2, offset);
      const uint64_t a = uint64_t{words[1]} << 32 | words[0];
      const uint64_t b = uint64_t{words[3]} << 32 | words[2];
      const auto [first, second] = pair(a >> 11, b >> 11);
      y[i] = first;
      if (i + 1 < end) y[i + 1] = second;
    }
  });
}

}  // namespace

int64_t UniformInt(uint64_t seed, uint64_t offset, uint64_t element,
                   int64_t n) {
  if (n < 1) throw Error(absl::StrCat("UniformInt: want n >= 1, got ", n));
  const unsigned __int128 product =
      static_cast<unsigned __int128>(RandomBits64(seed, offset, element)) * n;
  return static_cast<int64_t>(product >> 64);
}

template <typename T>
void FillUniform(uint64_t seed, uint64_t offset, double lo, double hi,
                 int64_t n, T* y) {
  if (!(lo <= hi)) {
    throw Error(
        absl::StrCat("FillUniform: want lo <= hi, got ", lo, " and ", hi));
  }
  // Rounding could reach hi. The fma is explicit to give the same bits
  // whatever the compiler contracts.
  const T last = std::nextafter(static_cast<T>(hi), static_cast<T>(lo));
  auto value = [=](uint64_t bits) {
    const double u = static_cast<double>(bits) * 0x1p-53;
    return std::min(static_cast<T>(std::fma(hi - lo, u, lo)), last);
  };
  FillPairs(seed, offset, n, y, [=](uint64_t a, uint64_t b) {
    return std::pair(value(a), value(b));
  });
}

template <typename T>
void FillNormal(uint64_t seed, uint64_t offset, double mean, double stddev,
                int64_t n, T* y) {
  if (!(stddev >= 0)) {
    throw Error(absl::StrCat("FillNormal: want stddev >= 0, got ", stddev));
  }
  FillPairs(seed, offset, n, y, [=](uint64_t a, uint64_t b) {
    const double u = static_cast<double>(a + 1) * 0x1p-53;  // in (0, 1]
    const double r = std::sqrt(-2 * std::log(u));
    const double angle = 2 * std::numbers::pi * 0x1p-53 * b;
    return std::pair(
        static_cast<T>(std::fma(stddev, r * std::cos(angle), mean)),
        static_cast<T>(std::fma(stddev, r * std::sin(angle), mean)));
  });
}

template void FillUniform(uint64_t, uint64_t, double, double, int64_t, float*);
template void FillUniform(uint64_t, uint64_t, double, double, int64_t, double*);
template void FillNormal(uint64_t, uint64_t, double, double, int64_t, float*);
template void FillNormal(uint64_t, uint64_t, double, double, int64_t, double*);

std::vector<int64_t> Permutation(uint64_t seed, uint64_t offset, int64_t n) {
  if (n < 0) throw Error(absl::StrCat("Permutation: want n >= 0, got ", n));
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = n - 1; i > 0; --i) {
    std::swap(order[i], order[UniformInt(seed, offset, i, i + 1)]);
  }
  return order;
}

// FNV-1a of the name, mixed with the seed.
uint64_t StreamKey(uint64_t seed, const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001B3;
  return Mix(Mix(seed) ^ hash);
}

}  // namespace wengert
