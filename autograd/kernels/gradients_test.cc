#include "autograd/kernels/gradients.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <tuple>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

constexpr int64_t kLong = 70003;  // several chunks, the last one odd

struct UnaryCase {
  Unary f;
  double lo, hi;
  std::function<long double(long double)> slope;
};

// The slopes, of x.
const std::vector<UnaryCase>& UnaryCases() {
  using L = long double;
  constexpr L kErf = 1.128379167095512573896L;
  static const auto* cases = new std::vector<UnaryCase>{
      {Unary::kExp, -5, 5, [](L x) { return std::exp(x); }},
      {Unary::kLog, 0.1, 5, [](L x) { return 1 / x; }},
      {Unary::kTanh, -1, 1, [](L x) { return 1 - std::pow(std::tanh(x), 2); }},
      {Unary::kErf, -5, 5, [=](L x) { return kErf * std::exp(-x * x); }},
      {Unary::kErfc, -5, 5, [=](L x) { return -kErf * std::exp(-x * x); }},
      {Unary::kSqrt, 0.1, 5, [](L x) { return 0.5L / std::sqrt(x); }},
      {Unary::kRsqrt, 0.1, 5, [](L x) { return -0.5L * std::pow(x, -1.5L); }},
      {Unary::kSquare, -5, 5, [](L x) { return 2 * x; }},
      {Unary::kSigmoid, -9, 60,
       [](L x) { return 1 / (2 + std::exp(x) + std::exp(-x)); }},
      {Unary::kExpm1, -50, 5, [](L x) { return std::exp(x); }},
      {Unary::kLog1p, -0.9, 5, [](L x) { return 1 / (1 + x); }},
      {Unary::kSin, -9, 9, [](L x) { return std::cos(x); }},
      {Unary::kCos, -9, 9, [](L x) { return -std::sin(x); }},
  };
  return *cases;
}

template <class T>
std::vector<T> From(Unary f, std::vector<T> x) {
  if (SlopeIsOfResult(f)) Apply<T>(f, x.size(), x.data(), x.data());
  return x;
}

template <class T>
void CheckUnary(double relative) {
  for (const UnaryCase& c : UnaryCases()) {
    SCOPED_TRACE(static_cast<int>(c.f));
    const std::vector<T> x = RandomVector<T>(1003, 1, c.lo, c.hi);
    const std::vector<T> from = From(c.f, x);
    const std::vector<T> dy = RandomVector<T>(1003, 2, -3, 3);
    std::vector<T> stored(1003, NAN), added(1003, 10);
    ApplyGrad<T>(c.f, 1003, from.data(), dy.data(), false, stored.data());
    ApplyGrad<T>(c.f, 1003, from.data(), dy.data(), true, added.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = static_cast<double>(dy[i] * c.slope(x[i]));
      // Slopes that cross 0 lose digits there.
      const double error = relative * (std::fabs(want) + 0.1);
      ASSERT_NEAR(stored[i], want, error) << "at " << x[i];
      ASSERT_NEAR(added[i], 10 + want, error + 20 * relative) << "at " << x[i];
    }
  }
}

TEST(GradientsTest, UnaryAgreesWithLongDouble) {
  CheckUnary<float>(1e-6);
  CheckUnary<double>(3e-15);
}

template <class T>
void CheckTails(double lowest) {
  constexpr T kOne = 1, kEpsilon = std::numeric_limits<T>::epsilon();
  for (const UnaryCase& c : UnaryCases()) {
    const bool erf = c.f == Unary::kErf || c.f == Unary::kErfc;
    if (!erf && c.f != Unary::kSigmoid && c.f != Unary::kExpm1) continue;
    const double from = erf ? -std::sqrt(-lowest) : lowest;
    for (double v = from; v < -from; v += 0.00917 * (1 + std::fabs(v))) {
      const T x = static_cast<T>(v);
      T dx;
      ApplyGrad(c.f, 1, &x, &kOne, false, &dx);
      const auto want = static_cast<double>(c.slope(x));
      ASSERT_NEAR(dx, want, 8 * kEpsilon * std::fabs(want))
          << static_cast<int>(c.f) << " at " << x;
    }
  }
}

TEST(GradientsTest, TailsLoseNoDigits) {
  CheckTails<float>(-85);
  CheckTails<double>(-700);
}

TEST(GradientsTest, LimitsAndNan) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const auto& [f, x, want] : {std::tuple{Unary::kErf, inf, 0.},
                                   {Unary::kErf, -inf, 0.},
                                   {Unary::kErfc, 1e200, 0.},
                                   {Unary::kSigmoid, inf, 0.},
                                   {Unary::kSigmoid, -inf, 0.},
                                   {Unary::kExpm1, -inf, 0.},
                                   {Unary::kLog, inf, 0.},
                                   {Unary::kLog, 0., inf},
                                   {Unary::kCos, 0., 0.},
                                   {Unary::kSin, 1e22, 0.5232147853951389}}) {
    const double one = 1;
    double dx;
    ApplyGrad(f, 1, &x, &one, false, &dx);
    EXPECT_DOUBLE_EQ(dx, want) << static_cast<int>(f) << " at " << x;
  }
  const float nan = NAN, one = 1;
  for (const UnaryCase& c : UnaryCases()) {
    float dx = 0;
    ApplyGrad(c.f, 1, &nan, &one, false, &dx);
    EXPECT_TRUE(std::isnan(dx)) << static_cast<int>(c.f);
  }
}

TEST(GradientsTest, UnaryDependsOnNeitherPlaceNorThreads) {
  const std::vector<float> dy = RandomVector<float>(kLong, 3);
  for (const UnaryCase& c : UnaryCases()) {
    SCOPED_TRACE(static_cast<int>(c.f));
    std::vector<float> from = From(c.f, RandomVector<float>(kLong, 2, 0.5, 2));
    from[300] = 1e25f;  // where sin and cos leave their fast path
    const auto grad = [&](bool accumulate) {
      ExpectSameBitsForAnyThreads([&] {
        std::vector<float> dx(kLong, 1);
        ApplyGrad(c.f, kLong, from.data(), dy.data(), accumulate, dx.data());
        return dx;
      });
    };
    grad(true);
    grad(false);
    std::vector<float> whole(kLong), pieces(kLong), in_place = dy;
    ApplyGrad(c.f, kLong, from.data(), dy.data(), false, whole.data());
    ApplyGrad(c.f, kLong, from.data(), dy.data(), false, in_place.data());
    for (int64_t i = 0; i < kLong; i += 7) {
      ApplyGrad(c.f, std::min<int64_t>(7, kLong - i), &from[i], &dy[i], false,
                &pieces[i]);
    }
    ExpectSameBits(in_place, whole);
    ExpectSameBits(pieces, whole);
    ApplyGrad<float>(c.f, 0, nullptr, nullptr, false, nullptr);
  }
}

template <class T>
void CheckPow(double relative) {
  for (double p : {-3., -2., -1., -.5, 0., .5, 1., 1.7, 2., 3., 4.}) {
    SCOPED_TRACE(p);
    const std::vector<T> x = RandomVector<T>(1003, 1, 0.2, 4);
    const std::vector<T> dy = RandomVector<T>(1003, 2, -3, 3);
    std::vector<T> stored(1003, NAN), added(1003, 10);
    PowScalarGrad<T>(1003, x.data(), p, dy.data(), false, stored.data());
    PowScalarGrad<T>(1003, x.data(), p, dy.data(), true, added.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = static_cast<double>(
          dy[i] * p * std::pow(static_cast<long double>(x[i]), p - 1));
      ASSERT_NEAR(stored[i], want, relative * std::fabs(want));
      ASSERT_NEAR(added[i], 10 + want, relative * (std::fabs(want) + 20));
    }
  }
}

TEST(GradientsTest, PowAgreesWithLongDouble) {
  CheckPow<float>(4e-7);
  CheckPow<double>(1e-15);
}

TEST(GradientsTest, PowOfZeroIsFlatEverywhere) {
  const float x[] = {0, INFINITY, NAN}, dy[] = {1, 1, 1};
  float dx[] = {5, 5, 5};
  PowScalarGrad(3, x, 0, dy, true, dx);
  for (float d : dx) EXPECT_EQ(d, 5);
  PowScalarGrad(3, x, 0, dy, false, dx);
  for (float d : dx) EXPECT_EQ(d, 0);
}

struct BinaryCase {
  Binary op;
  double (*da)(double a, double b);
  double (*db)(double a, double b);
};

const BinaryCase kBinary[] = {
    {Binary::kMul, [](double, double b) { return b; },
     [](double a, double) { return a; }},
    {Binary::kDiv, [](double, double b) { return 1 / b; },
     [](double a, double b) { return -a / (b * b); }},
    {Binary::kMax, [](double a, double b) { return a < b ? 0. : 1.; },
     [](double a, double b) { return a < b ? 1. : 0.; }},
    {Binary::kMin, [](double a, double b) { return a > b ? 0. : 1.; },
     [](double a, double b) { return a > b ? 1. : 0.; }},
    {Binary::kAtan2, [](double a, double b) { return b / (a * a + b * b); },
     [](double a, double b) { return -a / (a * a + b * b); }},
    {Binary::kPow, [](double a, double b) { return b * std::pow(a, b - 1); },
     [](double a, double b) { return std::pow(a, b) * std::log(a); }},
};

template <class T>
void CheckBinary(double relative) {
  const int64_t n = 40003;
  std::vector<T> a = RandomVector<T>(n, 1, 0.5, 2);
  const std::vector<T> b = RandomVector<T>(n, 2, 0.5, 2);
  const std::vector<T> dy = RandomVector<T>(n, 3, -3, 3);
  for (int64_t i = 0; i < n; i += 100) a[i] = b[i];  // ties
  std::vector<T> y(n);
  for (const BinaryCase& c : kBinary) {
    SCOPED_TRACE(static_cast<int>(c.op));
    Apply<T>(c.op, {n}, a.data(), {n}, b.data(), {n}, y.data());
    for (bool add_da : {false, true}) {
      for (bool add_db : {false, true}) {
        const auto grad = [&] {
          std::vector<T> d(2 * n, 10);  // da, then db
          ApplyGrad(c.op, n, a.data(), b.data(), y.data(), dy.data(), add_da,
                    d.data(), add_db, d.data() + n);
          return d;
        };
        ExpectSameBitsForAnyThreads(grad);
        const std::vector<T> both = grad();
        for (int64_t i = 0; i < n; ++i) {
          const double da = dy[i] * c.da(a[i], b[i]) + (add_da ? 10 : 0);
          const double db = dy[i] * c.db(a[i], b[i]) + (add_db ? 10 : 0);
          ASSERT_NEAR(both[i], da, relative * (std::fabs(da) + add_da * 20));
          ASSERT_NEAR(both[n + i], db,
                      relative * (std::fabs(db) + add_db * 20));
        }
        // One of them alone.
        std::vector<T> da(n, 10), db(n, 10);
        ApplyGrad<T>(c.op, n, a.data(), b.data(), y.data(), dy.data(), add_da,
                     da.data(), false, nullptr);
        ApplyGrad<T>(c.op, n, a.data(), b.data(), y.data(), dy.data(), false,
                     nullptr, add_db, db.data());
        da.insert(da.end(), db.begin(), db.end());
        ExpectSameBits(da, both);
      }
    }
    ApplyGrad<T>(c.op, 0, nullptr, nullptr, nullptr, nullptr, false, nullptr,
                 false, nullptr);
  }
}

TEST(GradientsTest, BinaryAgreesWithDouble) {
  CheckBinary<float>(5e-7);
  CheckBinary<double>(1e-15);
}

// To the first operand, as where there is no larger one.
TEST(GradientsTest, ExtremesPassNan) {
  const float a[] = {NAN, 1}, b[] = {1, NAN}, dy[] = {3, 3};
  for (Binary op : {Binary::kMax, Binary::kMin}) {
    float da[2], db[2];
    ApplyGrad<float>(op, 2, a, b, nullptr, dy, false, da, false, db);
    for (int i : {0, 1}) {
      EXPECT_EQ(da[i], 3);
      EXPECT_EQ(db[i], 0);
    }
  }
}

TEST(GradientsTest, PowIsFlatWhereZeroMeetsWhatIsNotFinite) {
  const double nan = NAN, a[] = {0, nan, 0, 0, 2}, b[] = {0, 0, 2, 0.5, 3};
  const double y[] = {1, 1, 0, 0, 8}, dy[] = {1, 1, 1, 1, 1};
  double da[5], db[5];
  ApplyGrad(Binary::kPow, 5, a, b, y, dy, false, da, false, db);
  const double want_da[] = {0, 0, 0, HUGE_VAL, 12};
  const double want_db[] = {0, nan, 0, 0, 8 * std::log(2.)};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(da[i], want_da[i]) << i;
    if (i == 1) {
      EXPECT_TRUE(std::isnan(db[i]));
    } else {
      EXPECT_DOUBLE_EQ(db[i], want_db[i]) << i;
    }
  }
}

}  // namespace
}  // namespace wengert::kernels
