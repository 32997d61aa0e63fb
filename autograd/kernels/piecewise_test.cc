#include "autograd/kernels/piecewise.h"

#include <cmath>
#include <limits>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

template <class T>
T Value(const Piecewise& f, T x) {
  T y;
  Apply(f, 1, &x, &y);
  return y;
}
template <class T>
T Slope(const Piecewise& f, T x, T dy = 1) {
  T dx;
  ApplyGrad(f, 1, &x, &dy, false, &dx);
  return dx;
}

template <class T>
class PiecewiseTest : public testing::Test {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(PiecewiseTest, Floats);

constexpr Piecewise kAll[] = {{Piecewise::kAbs},
                              {Piecewise::kClamp, -1, 2},
                              {Piecewise::kLeakyRelu, 0.1},
                              {Piecewise::kElu, 1.5},
                              {Piecewise::kSoftplus, 2},
                              {Piecewise::kSoftplus, -1}};

TYPED_TEST(PiecewiseTest, BendsAndBounds) {
  using T = TypeParam;
  const Piecewise abs = kAll[0], clamp = kAll[1], leaky = kAll[2];
  EXPECT_EQ(Value<T>(abs, -3), 3);
  EXPECT_FALSE(std::signbit(Value<T>(abs, -T{0})));
  EXPECT_EQ(Slope<T>(abs, -3, 5), -5);
  EXPECT_EQ(Slope<T>(abs, 3, 5), 5);
  EXPECT_EQ(Slope<T>(abs, 0, INFINITY), 0);
  EXPECT_EQ(Value<T>(clamp, -3), -1);
  EXPECT_EQ(Value<T>(clamp, 3), 2);
  EXPECT_EQ(Value<T>(clamp, 0.5), T{0.5});
  EXPECT_EQ(Slope<T>(clamp, 0.5, 5), 5);
  for (T x : {-1, 2, 3, -3}) EXPECT_EQ(Slope<T>(clamp, x, INFINITY), 0);
  EXPECT_EQ(Value<T>(leaky, -2), static_cast<T>(0.1) * -2);
  EXPECT_EQ(Slope<T>(leaky, 0), static_cast<T>(0.1));
  EXPECT_EQ(Slope<T>(leaky, 1), 1);
  for (const Piecewise& f : kAll) {
    EXPECT_TRUE(std::isnan(Value<T>(f, NAN))) << f.kind;
  }
}

// Relative accuracy, down to where numbers end.
TYPED_TEST(PiecewiseTest, TailsAgreeWithLongDouble) {
  using T = TypeParam;
  const double relative = 6 * std::numeric_limits<T>::epsilon();
  const double lowest = std::is_same_v<T, float> ? -85 : -700;
  for (double v = lowest; v < 100; v += 0.00917 * (1 + std::fabs(v))) {
    const T x = static_cast<T>(v);
    const long double e = std::exp((long double){x});
    const auto near = [&](T got, long double want, double times = 1) {
      EXPECT_LE(std::fabs(got - want), times * relative * std::fabs(want) +
                                           std::numeric_limits<T>::denorm_min())
          << x << ": " << got << " for " << want;
    };
    near(Value<T>({Piecewise::kSoftplus, 1}, x), std::log1p(e));
    near(Slope<T>({Piecewise::kSoftplus, 1}, x), e / (1 + e));
    near(Value<T>({Piecewise::kSoftplus, -1}, -x), -std::log1p(e));
    near(Slope<T>({Piecewise::kSoftplus, -1}, -x), e / (1 + e));
    near(Value<T>({Piecewise::kSoftplus, 4}, x / 4), std::log1p(e) / 4);
    near(Value<T>({Piecewise::kElu, 2}, x),
         x > 0 ? x : 2 * std::expm1((long double){x}));
    near(Slope<T>({Piecewise::kElu, 2}, x), x > 0 ? 1 : 2 * e);
  }
}

TYPED_TEST(PiecewiseTest, LimitsAreReachedWithoutNan) {
  using T = TypeParam;
  for (T far : {T(1e20), std::numeric_limits<T>::max(), T(INFINITY)}) {
    for (double beta : {1.0, 3.0}) {
      const Piecewise f = {Piecewise::kSoftplus, beta};
      const T y = Value<T>(f, far);
      EXPECT_TRUE(y == far || std::isinf(T(beta) * far)) << y;
      EXPECT_EQ(Value<T>(f, -far), 0);
      EXPECT_EQ(Slope<T>(f, far), 1);
      EXPECT_EQ(Slope<T>(f, -far), 0);
    }
    const Piecewise elu = {Piecewise::kElu, 1};
    EXPECT_EQ(Value<T>(elu, far), far);
    EXPECT_EQ(Value<T>(elu, -far), -1);
    EXPECT_EQ(Slope<T>(elu, far), 1);
    EXPECT_EQ(Slope<T>(elu, -far), 0);
    EXPECT_EQ(Value<T>({Piecewise::kClamp, -INFINITY, 4}, -far), -far);
  }
}

TYPED_TEST(PiecewiseTest, GradStoresOrAdds) {
  using T = TypeParam;
  constexpr int64_t kN = 1003;
  const auto x = RandomVector<T>(kN, 1, -3, 3), dy = RandomVector<T>(kN, 2);
  for (const Piecewise& f : kAll) {
    std::vector<T> stored(kN, NAN), added(kN, 10), over_dy = dy;
    ApplyGrad(f, kN, x.data(), dy.data(), false, stored.data());
    ApplyGrad(f, kN, x.data(), dy.data(), true, added.data());
    ApplyGrad(f, kN, x.data(), over_dy.data(), false, over_dy.data());
    ExpectSameBits(over_dy, stored);
    for (int64_t i = 0; i < kN; ++i) {
      ASSERT_EQ(stored[i], Slope<T>(f, x[i], dy[i]));
      ASSERT_EQ(added[i], 10 + stored[i]);
    }
  }
}

}  // namespace
}  // namespace wengert::kernels
