#include "autograd/kernels/vecmath_trig.h"

#include <cmath>
#include <limits>

#include "autograd/kernels/vecmath_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

using Long = long double;

// x, or 0 where the function is not meant to be used.
template <class X>
X Within(X x, double limit) {
  return std::fabs(x) > limit ? X{0} : x;
}

template <class T>
void CheckSinAndCos(double max_ulp) {
  constexpr double kLimit = kSinLimit<T>;
  for (double hi : {4.0, 1000.0, kLimit}) {
    CheckFunction<T>([](T x) { return Sin(Within<T>(x, kLimit)); },
                     [](Long x) { return std::sin(Within(x, kLimit)); }, -hi,
                     hi, max_ulp);
    CheckFunction<T>([](T x) { return Cos(Within<T>(x, kLimit)); },
                     [](Long x) { return std::cos(Within(x, kLimit)); }, -hi,
                     hi, max_ulp);
  }
  // Next to their zeros.
  const auto quarters = static_cast<int64_t>(kLimit / 2);
  for (int64_t k = 1; k < quarters; k += 1 + quarters / 100003) {
    const T x = static_cast<T>(Long{kHalfPi1} * k + Long{kHalfPi2} * k);
    const auto at = [&] { return x; };
    ExpectWithinUlp<T>(Sin(x), std::sin(Long{x}), max_ulp, at);
    ExpectWithinUlp<T>(Cos(x), std::cos(Long{x}), max_ulp, at);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(VecmathTrigTest, SinAndCosAreAccurate) {
  CheckSinAndCos<float>(0.51);
  CheckSinAndCos<double>(0.78);
}

TEST(VecmathTrigTest, Atan2IsAccurateAndHasTheEdgesOfC) {
  const auto exact = [](Long y, Long x) { return std::atan2(y, x); };
  CheckFunction2<float>([](float y, float x) { return Atan2(y, x); }, exact, -3,
                        3, 0.51);
  CheckFunction2<double>([](double y, double x) { return Atan2(y, x); }, exact,
                         -3, 3, 1.95);
}

TEST(VecmathTrigTest, CosOfZeroIsOne) {
  EXPECT_EQ(Cos(0.f), 1);
  EXPECT_EQ(Cos(0.0), 1);
}

}  // namespace
}  // namespace wengert::kernels
