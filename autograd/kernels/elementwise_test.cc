#include "autograd/kernels/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "autograd/kernels/piecewise.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kLong = 100003;  // several chunks, the last one odd

template <class T>
std::vector<T> Map(Unary op, std::vector<T> x) {
  std::vector<T> y(x.size());
  Apply<T>(op, x.size(), x.data(), y.data());
  return y;
}

struct UnaryCase {
  Unary op;
  std::function<double(double)> reference;
};

const std::vector<UnaryCase>& UnaryCases() {
  static const auto* cases = new std::vector<UnaryCase>{
      {Unary::kExp, [](double x) { return std::exp(x); }},
      {Unary::kLog, [](double x) { return std::log(x); }},
      {Unary::kTanh, [](double x) { return std::tanh(x); }},
      {Unary::kErf, [](double x) { return std::erf(x); }},
      {Unary::kErfc, [](double x) { return std::erfc(x); }},
      {Unary::kSqrt, [](double x) { return std::sqrt(x); }},
      {Unary::kRsqrt, [](double x) { return 1 / std::sqrt(x); }},
      {Unary::kSquare, [](double x) { return x * x; }},
      {Unary::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {Unary::kExpm1, [](double x) { return std::expm1(x); }},
      {Unary::kLog1p, [](double x) { return std::log1p(x); }},
      {Unary::kSin, [](double x) { return std::sin(x); }},
      {Unary::kCos, [](double x) { return std::cos(x); }},
      {Unary::kSign,
       [](double x) { return std::isnan(x) ? x : (x > 0) - (x < 0); }},
      {Unary::kFloor, [](double x) { return std::floor(x); }},
      {Unary::kCeil, [](double x) { return std::ceil(x); }},
      {Unary::kTrunc, [](double x) { return std::trunc(x); }},
      {Unary::kRound, [](double x) { return std::nearbyint(x); }},
  };
  return *cases;
}

// Equal within `relative`, NaN and infinities where they are to be.
template <class T>
void ExpectClose(T got, double want, double relative, double at) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << "at " << at << ": " << got;
  } else if (std::isinf(want)) {
    EXPECT_EQ(got, want) << "at " << at;
  } else {
    EXPECT_NEAR(got, want, relative * std::fabs(want)) << "at " << at;
  }
}

template <class T>
void CheckUnary(double relative) {
  std::vector<T> x = RandomVector<T>(1000, 1, -5, 5);
  for (double special :
       {0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -1.5, 1e18, kInf, -kInf, kNan}) {
    x.push_back(static_cast<T>(special));
  }
  for (const UnaryCase& c : UnaryCases()) {
    SCOPED_TRACE(static_cast<int>(c.op));
    const std::vector<T> y = Map(c.op, x);
    for (size_t i = 0; i < x.size(); ++i) {
      ExpectClose(y[i], c.reference(x[i]), relative, x[i]);
    }
  }
}

TEST(ElementwiseTest, UnaryAgreesWithDoubles) {
  CheckUnary<float>(4.3 * 0x1p-23);
  CheckUnary<double>(0x1p-51);
}

// The kernels of one input, by their one shape.
template <class T>
using Kernel = std::function<void(int64_t, const T*, T*)>;
template <class T>
std::vector<Kernel<T>> Kernels() {
  std::vector<Kernel<T>> kernels;
  for (const UnaryCase& c : UnaryCases()) {
    kernels.push_back(
        [op = c.op](int64_t n, const T* x, T* y) { Apply(op, n, x, y); });
  }
  kernels.push_back([](int64_t n, const T* x, T* y) {
    Affine(n, T{3}, static_cast<T>(-.1), x, y);
  });
  for (double p : {3.0, 1.7}) {
    kernels.push_back(
        [p](int64_t n, const T* x, T* y) { PowScalar(n, x, p, y); });
  }
  for (Activation f : {Activation::kRelu, Activation::kGelu,
                       Activation::kGeluTanh, Activation::kSilu}) {
    kernels.push_back([f](int64_t n, const T* x, T* y) { Apply(f, n, x, y); });
    kernels.push_back(
        [f](int64_t n, const T* x, T* y) { ApplyGrad(f, n, x, x, false, y); });
  }
  for (const Piecewise& f :
       {Piecewise{Piecewise::kAbs}, Piecewise{Piecewise::kClamp, -1, 2},
        Piecewise{Piecewise::kLeakyRelu, 0.1}, Piecewise{Piecewise::kElu, 1.5},
        Piecewise{Piecewise::kSoftplus, 2}}) {
    kernels.push_back([f](int64_t n, const T* x, T* y) { Apply(f, n, x, y); });
    kernels.push_back(
        [f](int64_t n, const T* x, T* y) { ApplyGrad(f, n, x, x, false, y); });
  }
  return kernels;
}

template <class T>
void CheckPlaceAndThreads() {
  std::vector<T> x = RandomVector<T>(kLong, 2, -9, 9);
  x[300] = static_cast<T>(1e25);  // where sin and cos leave their fast path
  for (const Kernel<T>& kernel : Kernels<T>()) {
    std::vector<T> whole(kLong);
    kernel(kLong, x.data(), whole.data());

    std::vector<T> in_place = x;
    kernel(kLong, in_place.data(), in_place.data());
    ExpectSameBits(in_place, whole);

    // The same numbers, one element further on and cut in pieces.
    std::vector<T> shifted(1001), pieces(1001);
    std::copy_n(x.begin(), 1000, shifted.begin() + 1);
    for (int64_t i = 1; i < 1001; i += 5) kernel(5, &shifted[i], &pieces[i]);
    ExpectSameBits({pieces.begin() + 1, pieces.end()},
                   std::vector<T>(whole.begin(), whole.begin() + 1000));

    ExpectSameBitsForAnyThreads([&] {
      std::vector<T> y(kLong);
      kernel(kLong, x.data(), y.data());
      return y;
    });
  }
}

TEST(ElementwiseTest, ResultsDependOnNeitherPlaceNorThreads) {
  CheckPlaceAndThreads<float>();
  CheckPlaceAndThreads<double>();
}

TEST(ElementwiseTest, NothingIsAnInputToo) {
  for (const auto& kernel : Kernels<float>()) kernel(0, nullptr, nullptr);
  EXPECT_TRUE(AllFinite<float>(0, nullptr));
}

// Far from 0 every digit of pi counts, and neighbours near 0 stay as they are.
TEST(ElementwiseTest, SinAndCosOfHugeNumbers) {
  std::vector<double> x = RandomVector<double>(1000, 6, -4, 4);
  const std::vector<double> near = Map(Unary::kSin, x);
  for (size_t i = 0; i < x.size(); i += 37) x[i] = 1e22 * (x[i] + 1);
  const std::vector<double> sin = Map(Unary::kSin, x);
  const std::vector<double> cos = Map(Unary::kCos, x);
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % 37 != 0) {
      EXPECT_EQ(sin[i], near[i]);
      continue;
    }
    EXPECT_EQ(sin[i], std::sin(x[i]));
    EXPECT_EQ(cos[i], std::cos(x[i]));
    const float single = static_cast<float>(x[i]);
    EXPECT_NEAR(Map<float>(Unary::kSin, {single})[0], std::sin(double{single}),
                1e-7);
  }
  EXPECT_NEAR(Map<double>(Unary::kSin, {1e22})[0], -0.8522008497671888, 1e-15);
}

template <class T>
void CheckPredicates() {
  using Limits = std::numeric_limits<T>;
  const T x[] = {0,
                 -1,
                 Limits::max(),
                 Limits::denorm_min(),
                 Limits::infinity(),
                 -Limits::infinity(),
                 Limits::quiet_NaN()};
  const auto check = [&](Predicate op, std::vector<int> want) {
    bool y[7];
    Apply(op, 7, x, y);
    for (int i = 0; i < 7; ++i) EXPECT_EQ(y[i], want[i] != 0) << i;
  };
  check(Predicate::kNan, {0, 0, 0, 0, 0, 0, 1});
  check(Predicate::kInf, {0, 0, 0, 0, 1, 1, 0});
  check(Predicate::kFinite, {1, 1, 1, 1, 0, 0, 0});
}

TEST(ElementwiseTest, Predicates) {
  CheckPredicates<float>();
  CheckPredicates<double>();
}

TEST(ElementwiseTest, Affine) {
  const float x[] = {1, -2, 1 + 0x1p-20f};
  float y[3];
  Affine(3, 2.f, 3.f, x, y);
  EXPECT_EQ(y[0], 5);
  EXPECT_EQ(y[1], -1);
  Affine(3, 1 + 0x1p-20f, -1.f, x, y);  // the product is not rounded
  EXPECT_EQ(y[2], 0x1p-19f + 0x1p-40f);
}

TEST(ElementwiseTest, PowScalarIsPow) {
  const std::vector<double> bases = {0, 0.25, 1, 1.5, 7, -0.5, -2, kNan};
  for (double p : {0., 1., 2., 3., -1., .5, -.5, 4., -2., 1.7, -3.}) {
    for (double base : bases) {
      const float x = static_cast<float>(base);
      float y;
      PowScalar(1, &x, p, &y);
      ExpectClose(y, std::pow(base, p), 3e-7, base);
      double z;
      PowScalar(1, &base, p, &z);
      ExpectClose(z, std::pow(base, p), 1e-15, base);
    }
  }
}

TEST(ElementwiseTest, AccumulateAndFill) {
  std::vector<double> y(kLong);
  Fill(kLong, 1.5, y.data());
  const std::vector<double> x = RandomVector<double>(kLong, 3);
  Accumulate(kLong, x.data(), y.data());
  for (int64_t i = 0; i < kLong; ++i) ASSERT_EQ(y[i], 1.5 + x[i]);
  bool mask[3] = {};
  Fill(3, true, mask);
  EXPECT_TRUE(mask[0] && mask[1] && mask[2]);
}

template <class From, class To>
void ExpectConverts(std::vector<From> x, std::vector<To> want) {
  std::vector<To> y(x.size());
  Convert(static_cast<int64_t>(x.size()), x.data(), y.data());
  EXPECT_EQ(y, want);
}

TEST(ElementwiseTest, Convert) {
  ExpectConverts<float, double>({1.5f, -0x1p-149f}, {1.5, -0x1p-149});
  ExpectConverts<double, float>({0.1, 1e300}, {0.1f, HUGE_VALF});
  ExpectConverts<int64_t, int32_t>({-7, 1 << 30}, {-7, 1 << 30});
  ExpectConverts<int32_t, float>({-7, 1 << 24}, {-7, 1 << 24});
  // Towards zero; out of range, the smallest.
  constexpr int32_t kMin32 = std::numeric_limits<int32_t>::min();
  constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
  ExpectConverts<float, int32_t>({1.9f, -1.9f, 0x1p31f, -0x1p31f, NAN},
                                 {1, -1, kMin32, kMin32, kMin32});
  ExpectConverts<double, int64_t>({-2.5, 0x1p62, 0x1p63, -HUGE_VAL},
                                  {-2, int64_t{1} << 62, kMin64, kMin64});
  // std::vector<bool> is no array.
  const float x[] = {0, -0.f, .5f, -3, NAN, 0};
  bool b[6];
  Convert(6, x, b);
  const bool want[] = {false, false, true, true, true, false};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(b[i], want[i]) << i;
  int64_t ones[6];
  Convert(6, b, ones);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(ones[i], want[i] ? 1 : 0) << i;
}

TEST(ElementwiseTest, AllFiniteFindsOneBadElement) {
  std::vector<float> x(kLong, std::numeric_limits<float>::max());
  EXPECT_TRUE(AllFinite(kLong, x.data()));
  for (int64_t i : {int64_t{0}, int64_t{17}, kLong / 2, kLong - 1}) {
    for (double bad : {kInf, -kInf, kNan}) {
      const float good = x[i];
      x[i] = static_cast<float>(bad);
      EXPECT_FALSE(AllFinite(kLong, x.data())) << bad << " at " << i;
      x[i] = good;
    }
  }
}

// A smooth activation and its derivative in long double.
struct ActivationCase {
  Activation f;
  long double (*reference)(long double);
  long double (*slope)(long double);
  // What the relative error grows by with x squared, up to x squared = 180
  // (625 of doubles).
  double growth;
};

long double Sigma(long double v) { return 1 / (1 + std::exp(-v)); }
constexpr long double kTwoRoot = 1.59576912160573071176L;  // 2 sqrt(2 / pi)
long double TwoU(long double x) {
  return kTwoRoot * (x + 0.044715L * x * x * x);
}
long double NormalMass(long double x) {
  return std::erfc(-x / std::sqrt(2.0L)) / 2;
}

const ActivationCase kActivations[] = {
    {Activation::kGelu, [](long double x) { return x * NormalMass(x); },
     [](long double x) {
       return NormalMass(x) + x * kTwoRoot / 4 * std::exp(-x * x / 2);
     },
     0},
    {Activation::kGeluTanh, [](long double x) { return x * Sigma(TwoU(x)); },
     [](long double x) {
       return Sigma(TwoU(x)) * (1 + x * kTwoRoot * (1 + 3 * 0.044715L * x * x) *
                                        Sigma(-TwoU(x)));
     },
     2e-7},
    {Activation::kSilu, [](long double x) { return x * Sigma(x); },
     [](long double x) { return Sigma(x) * (1 + x * Sigma(-x)); }, 0},
};

TEST(ActivationTest, ValueAndSlopeAgreeWithLongDouble) {
  for (const ActivationCase& c : kActivations) {
    SCOPED_TRACE(static_cast<int>(c.f));
    for (float x = -90; x < 90; x += 0.00917f) {
      const float one = 1;
      float y, dx;
      Apply(c.f, 1, &x, &y);
      ApplyGrad(c.f, 1, &x, &one, false, &dx);
      const double want = c.reference(x), slope = c.slope(x);
      const double relative = 6e-7 + c.growth * std::fmin(x * x, 180);
      // Below the smallest normal number digits go.
      ASSERT_NEAR(y, want, relative * std::fabs(want) + 2e-44) << x;
      // The slope crosses 0 once.
      const double absolute = x < -3 ? 2e-43 : 2.5e-7;
      ASSERT_NEAR(dx, slope, relative * std::fabs(slope) + absolute) << x;

      const double x64 = x, one64 = 1;
      double y64, dx64;
      Apply(c.f, 1, &x64, &y64);
      ApplyGrad(c.f, 1, &x64, &one64, false, &dx64);
      const double relative64 =
          0x1p-29 * (6e-7 + c.growth * std::fmin(x * x, 625));
      ASSERT_NEAR(y64, want, relative64 * std::fabs(want) + 1e-307) << x;
      ASSERT_NEAR(dx64, slope,
                  relative64 * std::fabs(slope) + (x < -3 ? 1e-307 : 1e-15))
          << x;
    }
  }
}

TEST(ActivationTest, LeftTailsDoNotVanish) {
  const float x = -6;
  float y;
  Apply(Activation::kGelu, 1, &x, &y);
  EXPECT_NEAR(y, -5.9195e-9, 5e-14);
  Apply(Activation::kGeluTanh, 1, &x, &y);
  EXPECT_NEAR(y, -8.4396e-11, 5e-16);
}

template <class T>
void CheckLimits(Activation f) {
  for (double far : {1e20, double{std::numeric_limits<float>::max()}, kInf}) {
    const T x[] = {static_cast<T>(far), static_cast<T>(-far)};
    const T dy[] = {3, 3};
    T y[2], dx[2];
    Apply(f, 2, x, y);
    ApplyGrad(f, 2, x, dy, false, dx);
    EXPECT_EQ(y[0], x[0]);
    EXPECT_EQ(y[1], 0);
    EXPECT_EQ(dx[0], 3);
    EXPECT_EQ(dx[1], 0);
  }
  const T nan = static_cast<T>(kNan), one = 1, zero = 0;
  T y, dx;
  Apply(f, 1, &nan, &y);
  ApplyGrad(f, 1, &nan, &one, false, &dx);
  EXPECT_TRUE(std::isnan(y));
  EXPECT_TRUE(std::isnan(dx));
  Apply(f, 1, &zero, &y);
  ApplyGrad(f, 1, &zero, &one, false, &dx);
  EXPECT_EQ(y, 0);
  EXPECT_EQ(dx, T{0.5});
}

TEST(ActivationTest, LimitsAreReachedWithoutNan) {
  for (const ActivationCase& c : kActivations) {
    SCOPED_TRACE(static_cast<int>(c.f));
    CheckLimits<float>(c.f);
    CheckLimits<double>(c.f);
  }
}

TEST(ActivationTest, ReluPassesWhatIsPositive) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {-2, -0.f, 0, 3, inf, -inf, NAN};
  const std::vector<float> dy = {5, 5, 5, 5, 5, inf, 5};
  std::vector<float> y(7), dx(7, NAN), added(7, 10);
  Apply(Activation::kRelu, 7, x.data(), y.data());
  ApplyGrad(Activation::kRelu, 7, x.data(), dy.data(), false, dx.data());
  ApplyGrad(Activation::kRelu, 7, x.data(), dy.data(), true, added.data());
  EXPECT_THAT(std::vector<float>(y.begin(), y.end() - 1),
              testing::ElementsAre(0, 0, 0, 3, inf, 0));
  EXPECT_FALSE(std::signbit(y[1]));
  EXPECT_TRUE(std::isnan(y[6]));
  EXPECT_THAT(dx, testing::ElementsAre(0, 0, 0, 5, 5, 0, 0));
  EXPECT_THAT(added, testing::ElementsAre(10, 10, 10, 15, 15, 10, 10));
}

TEST(ActivationTest, GradStoresOrAdds) {
  const std::vector<float> x = RandomVector<float>(kLong, 4);
  const std::vector<float> dy = RandomVector<float>(kLong, 5);
  for (const ActivationCase& c : kActivations) {
    const auto grad = [&](auto... args) { ApplyGrad(c.f, kLong, args...); };
    std::vector<float> slope(kLong), stored(kLong, NAN), added(kLong, 10);
    const std::vector<float> ones(kLong, 1);
    grad(x.data(), ones.data(), false, slope.data());
    grad(x.data(), dy.data(), false, stored.data());
    grad(x.data(), dy.data(), true, added.data());
    std::vector<float> over_dy = dy, value(kLong), y(kLong, NAN);
    grad(x.data(), over_dy.data(), false, over_dy.data(), y.data());
    ExpectSameBits(over_dy, stored);
    Apply(c.f, kLong, x.data(), value.data());
    ExpectSameBits(y, value);
    std::vector<float> over_x = x, dx(kLong, NAN);
    grad(over_x.data(), dy.data(), false, dx.data(), over_x.data());
    ExpectSameBits(dx, stored);
    ExpectSameBits(over_x, value);
    for (int64_t i = 0; i < kLong; ++i) {
      ASSERT_EQ(stored[i], dy[i] * slope[i]);
      ASSERT_NEAR(added[i], 10 + stored[i], 1e-6);
    }
  }
}

}  // namespace
}  // namespace wengert::kernels
