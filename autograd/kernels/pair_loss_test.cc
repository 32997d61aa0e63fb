#include "autograd/kernels/pair_loss.h"

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

constexpr PairLossKind kKinds[] = {
    PairLossKind::kSquared, PairLossKind::kAbsolute, PairLossKind::kHuber};
constexpr double kDelta = 0.75;
// Empty, parts of vectors, and several chunks of a sum.
constexpr int64_t kSizes[] = {0, 1, 7, 16, 33, 4095, 4096, 9001};

double LossOf(PairLossKind kind, double d) {
  const double size = std::fabs(d);
  switch (kind) {
    case PairLossKind::kSquared:
      return d * d;
    case PairLossKind::kAbsolute:
      return size;
    default:
      return size <= kDelta ? d * d / 2 : kDelta * (size - kDelta / 2);
  }
}
double SlopeOf(PairLossKind kind, double d) {
  switch (kind) {
    case PairLossKind::kSquared:
      return 2 * d;
    case PairLossKind::kAbsolute:
      return d > 0 ? 1 : d < 0 ? -1 : 0;
    default:
      return std::fabs(d) <= kDelta ? d : std::copysign(kDelta, d);
  }
}

template <class T>
class PairLossTest : public testing::Test {
 protected:
  static constexpr double kTolerance = std::is_same_v<T, float> ? 2e-6 : 1e-14;
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(PairLossTest, Types);

TYPED_TEST(PairLossTest, AgreesWithTheDefinition) {
  using T = TypeParam;
  for (PairLossKind kind : kKinds) {
    for (int64_t n : kSizes) {
      const auto a = RandomVector<T>(n, 1), b = RandomVector<T>(n, 2);
      const auto dloss = RandomVector<T>(n, 3);
      std::vector<T> loss(n, T(NAN)), mean(n, T(NAN)), grad(n, T(10));
      const T delta = kDelta;
      PairLoss<T>(kind, delta, n, a.data(), b.data(), loss.data());
      PairLossGrad<T>(kind, delta, n, a.data(), b.data(), 3, nullptr, false,
                      mean.data());
      PairLossGrad<T>(kind, delta, n, a.data(), b.data(), 3, dloss.data(), true,
                      grad.data());
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double d = double{a[i]} - b[i], slope = 3 * SlopeOf(kind, d);
        sum += LossOf(kind, d);
        ASSERT_NEAR(loss[i], LossOf(kind, d), 8 * this->kTolerance) << i;
        ASSERT_NEAR(mean[i], slope, 8 * this->kTolerance) << i;
        ASSERT_NEAR(grad[i], 10 + slope * dloss[i], 8 * this->kTolerance) << i;
      }
      const T total = PairLossSum<T>(kind, delta, n, a.data(), b.data());
      EXPECT_NEAR(total, sum, this->kTolerance * sum);
    }
  }
}

TYPED_TEST(PairLossTest, NanIsLostInNoneOfThem) {
  using T = TypeParam;
  for (PairLossKind kind : kKinds) {
    const std::vector<T> a = {1, T(NAN), 1}, b = {2, 1, 2};
    T loss[3], grad[3];
    PairLoss<T>(kind, 1, 3, a.data(), b.data(), loss);
    PairLossGrad<T>(kind, 1, 3, b.data(), a.data(), 1, nullptr, false, grad);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(std::isnan(loss[i]), i == 1);
      EXPECT_EQ(std::isnan(grad[i]), i == 1);
    }
    EXPECT_TRUE(std::isnan(PairLossSum<T>(kind, 1, 3, a.data(), b.data())));
  }
}

double Softplus(double x) {
  return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
}

TYPED_TEST(PairLossTest, BinaryCrossEntropyAgreesWithTheDefinition) {
  using T = TypeParam;
  for (int64_t n : kSizes) {
    const auto x = RandomVector<T>(n, 1, -30, 30);
    const auto t = RandomVector<T>(n, 2, 0, 1), w = RandomVector<T>(n, 3, 0, 2);
    const auto q = RandomVector<T>(n, 4, 0, 3), dloss = RandomVector<T>(n, 5);
    for (const bool has_w : {false, true}) {
      for (const bool has_q : {false, true}) {
        const BinaryCrossEntropyInputs<T> in = {x.data(), t.data(),
                                                has_w ? w.data() : nullptr,
                                                has_q ? q.data() : nullptr};
        std::vector<T> loss(n), dx(n, T(10)), dt(n, T(NAN));
        BinaryCrossEntropy(n, in, loss.data());
        BinaryCrossEntropyGradLogits<T>(n, in, 2, dloss.data(), true,
                                        dx.data());
        BinaryCrossEntropyGradTargets<T>(n, in, 2, nullptr, false, dt.data());
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) {
          const double weight = has_w ? w[i] : 1, pos = has_q ? q[i] : 1;
          const double v = x[i], y = t[i];
          const double up = Softplus(v), down = Softplus(-v);
          const double p = 1 / (1 + std::exp(-v));
          const double expected = weight * (pos * y * down + (1 - y) * up);
          const double slope =
              weight * ((1 - y) * p - pos * y / (1 + std::exp(v)));
          const double tolerance = 100 * this->kTolerance;
          sum += expected;
          ASSERT_NEAR(loss[i], expected, tolerance * 1e-2 * (1 + expected));
          ASSERT_NEAR(dx[i], 10 + 2 * dloss[i] * slope, tolerance);
          ASSERT_NEAR(dt[i], 2 * weight * (pos * down - up), tolerance);
        }
        EXPECT_NEAR(BinaryCrossEntropySum(n, in), sum, this->kTolerance * sum);
      }
    }
  }
}

// A logit that is right by far leaves a loss of e^-|x|, not of 0.
TYPED_TEST(PairLossTest, BinaryCrossEntropyKeepsItsTails) {
  using T = TypeParam;
  const std::vector<T> x = {60, -60, 60, -60}, t = {1, 0, 0, 1};
  T loss[4];
  BinaryCrossEntropy<T>(4, {x.data(), t.data(), nullptr, nullptr}, loss);
  for (int i : {0, 1}) EXPECT_NEAR(loss[i] / std::exp(-60.), 1, 1e-5);
  for (int i : {2, 3}) EXPECT_EQ(loss[i], 60);
  const T nan = T(NAN), one = 1;
  BinaryCrossEntropy<T>(1, {&nan, &one, nullptr, nullptr}, loss);
  EXPECT_TRUE(std::isnan(loss[0]));
}

TEST(PairLossBitsTest, SameBitsForAnyNumberOfThreads) {
  const int64_t n = 100003;
  const auto x = RandomVector<float>(n, 1), t = RandomVector<float>(n, 2, 0, 1);
  ExpectSameBitsForAnyThreads([&] {
    std::vector<float> all(n);
    PairLossGrad<float>(PairLossKind::kHuber, 1, n, x.data(), t.data(), 1,
                        nullptr, false, all.data());
    all.push_back(
        PairLossSum<float>(PairLossKind::kSquared, 1, n, x.data(), t.data()));
    all.push_back(BinaryCrossEntropySum<float>(
        n, {x.data(), t.data(), nullptr, nullptr}));
    return all;
  });
}

}  // namespace
}  // namespace wengert::kernels
