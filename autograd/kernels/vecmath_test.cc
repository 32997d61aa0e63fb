#include "autograd/kernels/vecmath.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "autograd/kernels/vecmath_erf.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr double kSmallestNormal = 0x1p-126;

// The distance between floats at x.
double UlpAt(double x) {
  if (std::fabs(x) < kSmallestNormal) return 0x1p-149;
  int exponent;
  std::frexp(x, &exponent);
  return std::ldexp(1, exponent - 24);
}

// Over a dense sample of all bit patterns (every float, with kStep 1, was once
// tried): the error is at most max_ulp where the result is a normal number and
// at most max_denormal_ulp where it is not; NaN and infinity are where they are
// to be.
template <class F, class Reference>
void CheckAllFloats(F f, Reference reference, double max_ulp,
                    double max_denormal_ulp) {
  constexpr uint64_t kStep = 4099;
  std::vector<float> x;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += kStep) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (float special :
       {0.f, -0.f, 1.f, -1.f, kInf, -kInf, kNan, 0x1p-126f, 0x1p-149f,
        -0x1p-149f, 0x1.fffffep127f, -0x1.fffffep127f}) {
    x.push_back(special);
  }
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = f(x[i]);
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = reference(static_cast<double>(x[i]));
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(y[i])) << x[i];
    } else if (std::isinf(static_cast<float>(want)) || std::isinf(y[i])) {
      ASSERT_EQ(y[i], static_cast<float>(want)) << x[i];
    } else {
      const double limit =
          std::fabs(want) < kSmallestNormal ? max_denormal_ulp : max_ulp;
      ASSERT_LE(std::fabs(y[i] - want) / UlpAt(want), limit)
          << "at " << x[i] << ": " << y[i] << " for " << want;
    }
  }
}

TEST(VecmathTest, ExpIsAccurate) {
  CheckAllFloats([](float x) { return Exp(x); },
                 [](double x) { return std::exp(x); }, 1.1, 1);
}

TEST(VecmathTest, LogIsAccurate) {
  CheckAllFloats([](float x) { return Log(x); },
                 [](double x) { return std::log(x); }, 0.93, 0);
}

TEST(VecmathTest, Log1pIsAccurate) {
  CheckAllFloats([](float x) { return Log1p(x); },
                 [](double x) { return std::log1p(x); }, 2.6, 0);
}

TEST(VecmathTest, Log1pOfUnitIsAccurate) {
  const auto unit = [](auto x) { return Magnitude<decltype(x)>(x, 1); };
  CheckAllFloats([&](float x) { return Log1pOfUnit(unit(x)); },
                 [&](double x) { return std::log1p(unit(x)); }, 2, 1);
}

TEST(VecmathTest, Expm1IsAccurate) {
  CheckAllFloats([](float x) { return Expm1(x); },
                 [](double x) { return std::expm1(x); }, 1.6, 0);
}

TEST(VecmathTest, TanhIsAccurate) {
  CheckAllFloats([](float x) { return Tanh(x); },
                 [](double x) { return std::tanh(x); }, 2.6, 1);
}

TEST(VecmathTest, SigmoidIsAccurate) {
  CheckAllFloats([](float x) { return Sigmoid(x); },
                 [](double x) { return 1 / (1 + std::exp(-x)); }, 2.41, 1);
}

TEST(VecmathTest, OddFunctionsAreOddToTheBit) {
  for (float x = 0x1p-149f; x < 100; x = x * 1.37f + 0x1p-149f) {
    EXPECT_EQ(Tanh(-x), -Tanh(x)) << x;
  }
  EXPECT_TRUE(std::signbit(Expm1(-0.f)));
  EXPECT_TRUE(std::signbit(Log1p(-0.f)));
  EXPECT_TRUE(std::signbit(Tanh(-0.f)));
  EXPECT_FALSE(std::signbit(Tanh(0.f)));
}

TEST(VecmathTest, VectorAndScalarCodeAgreeToTheBit) {
  constexpr int kN = 1000;
  std::vector<float> x(kN), y(kN);
  const auto check = [&](auto f) {
    for (int i = 0; i < kN; ++i) y[i] = f(x[i]);
    for (int i = 0; i < kN; ++i) {
      volatile float alone = x[i];  // keeps this loop scalar
      EXPECT_EQ(std::bit_cast<uint32_t>(y[i]),
                std::bit_cast<uint32_t>(f(alone)));
    }
  };
  for (int i = 0; i < kN; ++i) x[i] = 0.0123f * static_cast<float>(i - kN / 2);
  check([](float v) { return Exp(v); });
  check([](float v) { return Log(std::fabs(v)); });
  check([](float v) { return Tanh(v); });
  check([](float v) { return Sigmoid(v); });
  check([](float v) { return Erf(v); });
  check([](float v) { return Erfc(v); });
  check([](float v) { return Expm1(v); });
  check([](float v) { return Log1p(v); });
}

TEST(VecmathTest, ScaledExpStaysNormalWhereExpDoesNot) {
  EXPECT_EQ(Exp(-120.f), 0);
  for (const auto& [m, s] : {ExpParts(-120.f), ExpOfMinus(120.f)}) {
    EXPECT_NEAR(double{m} * double{s} / std::exp(-120.0), 1, 2e-7);
  }
}

}  // namespace
}  // namespace wengert::kernels
