#include "autograd/kernels/vecmath_pow.h"

#include <cmath>

#include "autograd/kernels/vecmath_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

using Long = long double;

template <class T>
void CheckPow(double max_ulp) {
  // pow of long double loses a few of its last bits.
  const auto exact = [](Long x, Long p) { return std::pow(x, p); };
  CheckFunction2<T>([](T x, T p) { return Pow(x, p); }, exact, -10, 10,
                    max_ulp);
  // p is cut to where the result lies within T's range.
  const double range = std::is_same_v<T, float> ? 95 : 740;
  const auto exponent = [&](T x, T u) {
    return static_cast<T>(range * (2 * u - 1) / std::log(std::fabs(x)));
  };
  CheckFunction2<T>([&](T x, T u) { return Pow(std::fabs(x), exponent(x, u)); },
                    [&](Long x, Long u) {
                      const T t = static_cast<T>(x);
                      return std::pow(std::fabs(x),
                                      Long{exponent(t, static_cast<T>(u))});
                    },
                    0, 1, max_ulp);
}

TEST(VecmathPowTest, IsAccurateAndHasTheEdgesOfC) {
  CheckPow<float>(0.52);
  CheckPow<double>(0.79);
}

TEST(VecmathPowTest, WholePowersAreExact) {
  for (int base = -12; base <= 12; ++base) {
    double product = 1;
    for (int p = 0; p <= 14; ++p, product *= base) {
      EXPECT_EQ(Pow(static_cast<double>(base), p), product)
          << base << ", " << p;
      EXPECT_EQ(Pow(static_cast<float>(base), p), static_cast<float>(product));
    }
  }
  EXPECT_EQ(Pow(0x1p100, 0.5), 0x1p50);
  EXPECT_EQ(Pow(2.0, -1074), 0x1p-1074);
}

}  // namespace
}  // namespace wengert::kernels
