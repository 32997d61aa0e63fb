#include "autograd/kernels/vecmath_erf.h"

#include <cmath>

#include "autograd/kernels/vecmath_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

using Long = long double;

Long ExactErf(Long x) { return std::erf(x); }
Long ExactErfc(Long x) { return std::erfc(x); }

template <class T>
void CheckErf(double max_ulp) {
  const auto erf = [](T x) { return Erf(x); };
  CheckFunction<T>(erf, ExactErf, -1, 1, max_ulp);
  CheckFunction<T>(erf, ExactErf, -7, 7, max_ulp);
}

TEST(VecmathErfTest, ErfIsAccurate) {
  CheckErf<float>(1.2);
  CheckErf<double>(1.2);
}

// Denormal results are as accurate.
template <class T>
void CheckErfc(double max_ulp) {
  const auto erfc = [](T x) { return Erfc(x); };
  CheckFunction<T>(erfc, ExactErfc, -2, 2, max_ulp);
  CheckFunction<T>(erfc, ExactErfc, 2, 8, max_ulp);
  CheckFunction<T>(erfc, ExactErfc, 8, 28, max_ulp);
}

TEST(VecmathErfTest, ErfcIsAccurateInItsRightTail) {
  CheckErfc<float>(4.3);
  CheckErfc<double>(4);
  EXPECT_GT(Erfc(10.f), 0);
  EXPECT_GT(Erfc(27.2), 0);
}

TEST(VecmathErfTest, ErfIsOddToTheBit) {
  for (double x = 0x1p-149; x < 100; x = x * 1.37 + 0x1p-149) {
    EXPECT_EQ(Erf(-x), -Erf(x)) << x;
    const float single = static_cast<float>(x);
    EXPECT_EQ(Erf(-single), -Erf(single)) << x;
  }
}

TEST(VecmathErfTest, ExpOfSquareKeepsWhatTheSquareLoses) {
  for (float a = 0; a < 16; a += 0.00917f) {
    const auto [m, s] = ExpOfSquare(-0.5f, a);
    const double want = std::exp(-0.5 * double{a} * double{a});
    ASSERT_NEAR(double{m} * double{s}, want, 1.2e-7 * want) << a;
  }
}

}  // namespace
}  // namespace wengert::kernels
