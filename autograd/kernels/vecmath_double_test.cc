// The forms of vecmath.h for double, beside libm's for long double.
#include <cmath>

#include "autograd/kernels/vecmath.h"
#include "autograd/kernels/vecmath_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

using Long = long double;

TEST(VecmathDoubleTest, ExpIsAccurate) {
  CheckFunction<double>([](double x) { return Exp(x); },
                        [](Long x) { return std::exp(x); }, -750, 715, 0.8);
}

TEST(VecmathDoubleTest, Expm1IsAccurate) {
  CheckFunction<double>([](double x) { return Expm1(x); },
                        [](Long x) { return std::expm1(x); }, -2, 2, 2);
  CheckFunction<double>([](double x) { return Expm1(x); },
                        [](Long x) { return std::expm1(x); }, -50, 715, 2);
}

TEST(VecmathDoubleTest, LogIsAccurate) {
  CheckFunction<double>([](double x) { return Log(x); },
                        [](Long x) { return std::log(x); }, 0, 3, 0.9);
}

TEST(VecmathDoubleTest, Log1pIsAccurate) {
  CheckFunction<double>([](double x) { return Log1p(x); },
                        [](Long x) { return std::log1p(x); }, -1, 3, 2.3);
}

TEST(VecmathDoubleTest, Log1pOfUnitIsAccurate) {
  const auto unit = [](auto x) { return Magnitude<decltype(x)>(x, 1); };
  CheckFunction<double>([&](double x) { return Log1pOfUnit(unit(x)); },
                        [&](Long x) { return std::log1p(unit(x)); }, 0, 1, 2);
}

TEST(VecmathDoubleTest, TanhIsAccurate) {
  CheckFunction<double>([](double x) { return Tanh(x); },
                        [](Long x) { return std::tanh(x); }, -3, 3, 2.6);
}

TEST(VecmathDoubleTest, SigmoidIsAccurate) {
  CheckFunction<double>([](double x) { return Sigmoid(x); },
                        [](Long x) { return 1 / (1 + std::exp(-x)); }, -20, 20,
                        2.31);
}

TEST(VecmathDoubleTest, ScaledExpStaysNormalWhereExpDoesNot) {
  EXPECT_EQ(Exp(-790.0), 0);
  for (const auto& [m, s] : {ExpParts(-790.0), ExpOfMinus(790.0)}) {
    EXPECT_NEAR(Long{m} * Long{s} / std::exp(-790.0L), 1, 2e-16);
  }
}

}  // namespace
}  // namespace wengert::kernels
