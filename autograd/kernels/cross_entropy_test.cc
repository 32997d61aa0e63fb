#include "autograd/kernels/cross_entropy.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kIgnore = -100;

std::vector<double> Reference(int64_t n, int64_t c,
                              const std::vector<double>& x,
                              const std::vector<int64_t>& targets, double s) {
  std::vector<double> loss(n);
  for (int64_t i = 0; i < n; ++i) {
    if (targets[i] == kIgnore) continue;
    const double* row = x.data() + i * c;
    double sum = 0;
    for (int64_t j = 0; j < c; ++j) sum += std::exp(row[j]);
    for (int64_t j = 0; j < c; ++j) {
      const double logp = row[j] - std::log(sum);
      loss[i] -= (j == targets[i] ? 1 - s : 0) * logp + s / c * logp;
    }
  }
  return loss;
}

struct Answer {
  std::vector<double> loss, dlogits;
};

// Forward and backward in T.
template <class T>
Answer Solve(int64_t n, int64_t c, const std::vector<double>& logits,
             const std::vector<int64_t>& targets, double smoothing,
             double scale, const std::vector<double>& dloss = {},
             bool accumulate = false) {
  const std::vector<T> x(logits.begin(), logits.end());
  const std::vector<T> d(dloss.begin(), dloss.end());
  std::vector<T> loss(n, T(NAN)), log_sum(n, T(NAN));
  std::vector<T> dx(n * c, accumulate ? T(10) : T(NAN));
  CrossEntropy<T>(n, c, x.data(), targets.data(), kIgnore, T(smoothing),
                  loss.data(), log_sum.data());
  CrossEntropyGrad<T>(n, c, x.data(), targets.data(), kIgnore, T(smoothing),
                      log_sum.data(), T(scale), d.empty() ? nullptr : d.data(),
                      accumulate, dx.data());
  if (!accumulate) {
    std::vector<T> in_place = x;
    CrossEntropyGrad<T>(n, c, in_place.data(), targets.data(), kIgnore,
                        T(smoothing), log_sum.data(), T(scale),
                        d.empty() ? nullptr : d.data(), false, in_place.data());
    ExpectSameBits(in_place, dx);
  }
  return {{loss.begin(), loss.end()}, {dx.begin(), dx.end()}};
}

template <class T>
class CrossEntropyTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(CrossEntropyTest, Types);

TYPED_TEST(CrossEntropyTest, AgreesWithTheDefinitionAndItsSlopes) {
  using T = TypeParam;
  const double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-8;
  for (const int64_t c : {1, 2, 5, 31, 33, 65, 1000}) {
    for (const double smoothing : {0., .1, 1.}) {
      const int64_t n = 4;
      const auto random = RandomVector<float>(n * c, 1, -4, 4);
      const std::vector<double> x(random.begin(), random.end());
      const std::vector<int64_t> targets = {c - 1, kIgnore, 0, c / 2};
      const std::vector<double> dloss = {1, 5, -2, .5};
      const auto loss = Reference(n, c, x, targets, smoothing);
      const Answer got = Solve<T>(n, c, x, targets, smoothing, .25, dloss);
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_NEAR(got.loss[i], loss[i], tolerance * (1 + loss[i]));
      }
      const auto u = RandomVector<double>(n * c, 2);
      constexpr double kStep = 1e-5;
      double slope = 0, along = 0;
      for (const double sign : {1, -1}) {
        auto moved = x;
        for (int64_t i = 0; i < n * c; ++i) moved[i] += sign * kStep * u[i];
        const auto at = Reference(n, c, moved, targets, smoothing);
        for (int64_t i = 0; i < n; ++i) {
          slope += sign * .25 * dloss[i] * at[i] / (2 * kStep);
        }
      }
      for (int64_t i = 0; i < n * c; ++i) along += got.dlogits[i] * u[i];
      EXPECT_NEAR(along, slope, 2 * tolerance);
      const Answer added =
          Solve<T>(n, c, x, targets, smoothing, .25, dloss, true);
      for (int64_t i = 0; i < n * c; ++i) {
        ASSERT_NEAR(added.dlogits[i], got.dlogits[i] + 10, tolerance);
      }
    }
  }
}

TYPED_TEST(CrossEntropyTest, KnownValues) {
  const Answer ignored = Solve<TypeParam>(1, 3, {1, 2, 3}, {kIgnore}, 0, 1);
  EXPECT_EQ(ignored.loss, (std::vector<double>{0}));
  EXPECT_EQ(ignored.dlogits, (std::vector<double>{0, 0, 0}));
  const Answer smooth =
      Solve<TypeParam>(2, 2, {0, std::log(3.), 5, -5}, {0, kIgnore}, .2, 1);
  EXPECT_NEAR(smooth.loss[0], 1.2764331, 2e-7);
  EXPECT_NEAR(smooth.dlogits[0], -.65, 1e-7);
  EXPECT_NEAR(smooth.dlogits[1], .65, 1e-7);
  EXPECT_EQ(smooth.dlogits[2], 0);
  EXPECT_EQ(smooth.dlogits[3], 0);
}

TYPED_TEST(CrossEntropyTest, LargeLogitsAndNearCertaintyKeepTheirDigits) {
  const Answer large = Solve<TypeParam>(1, 2, {100000, 100001}, {0}, 0, 1);
  EXPECT_NEAR(large.loss[0], 1.3132617, 2e-7);
  EXPECT_NEAR(large.dlogits[0], -.73105858, 1e-7);
  EXPECT_NEAR(large.dlogits[1], .73105858, 1e-7);
  // 2 e^-30 beside 1.
  const Answer certain = Solve<TypeParam>(1, 3, {30, 0, 0}, {0}, 0, 1);
  EXPECT_NEAR(certain.loss[0] / 1.8715246e-13, 1, 1e-6);
  EXPECT_NEAR(certain.dlogits[0] / -1.8715246e-13, 1, 1e-6);
  EXPECT_NEAR(certain.dlogits[1] / 9.357623e-14, 1, 1e-6);
}

TYPED_TEST(CrossEntropyTest, ImpossibleClasses) {
  const Answer fine = Solve<TypeParam>(1, 3, {-kInf, 0, 0}, {1}, 0, 1);
  EXPECT_NEAR(fine.loss[0], std::log(2.), 1e-7);
  EXPECT_EQ(fine.dlogits, (std::vector<double>{0, -.5, .5}));
  const Answer target = Solve<TypeParam>(1, 3, {-kInf, 0, 0}, {0}, 0, 1);
  EXPECT_EQ(target.loss[0], kInf);
  EXPECT_EQ(target.dlogits, (std::vector<double>{-1, .5, .5}));
  const Answer smooth = Solve<TypeParam>(1, 2, {-kInf, 0}, {1}, .1, 1);
  EXPECT_EQ(smooth.loss[0], kInf);
  const Answer none = Solve<TypeParam>(1, 2, {-kInf, -kInf}, {1}, 0, 1);
  EXPECT_EQ(none.loss[0], kInf);
  EXPECT_EQ(none.dlogits, (std::vector<double>{0, 0}));
  for (const double bad : {kInf, double(NAN)}) {
    const Answer lost = Solve<TypeParam>(1, 3, {0, bad, 0}, {0}, 0, 1);
    EXPECT_TRUE(std::isnan(lost.loss[0]));
    for (const double d : lost.dlogits) EXPECT_TRUE(std::isnan(d));
  }
}

TYPED_TEST(CrossEntropyTest, NanBesideImpossibleClassesIsNotImpossible) {
  for (const int64_t c : {2, 300}) {
    std::vector<double> x(2 * c, -kInf);
    x[c - 1] = NAN;
    const Answer got = Solve<TypeParam>(2, c, x, {0, 0}, 0, 1);
    EXPECT_TRUE(std::isnan(got.loss[0]));
    EXPECT_EQ(got.loss[1], kInf);
    for (int64_t j = 0; j < c; ++j) {
      EXPECT_TRUE(std::isnan(got.dlogits[j]));
      EXPECT_EQ(got.dlogits[c + j], 0);
    }
  }
}

// A target is the same as a probability of 1, and a weight scales its rows.
TYPED_TEST(CrossEntropyTest, WeightsTargetsAndProbabilitiesAgree) {
  using T = TypeParam;
  const double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-13;
  for (const int64_t c : {1, 3, 17, 70, 1030}) {
    const int64_t n = 19;
    const auto x = RandomVector<T>(n * c, 1), w = RandomVector<T>(c, 2, 0, 2);
    std::vector<int64_t> targets(n);
    std::vector<T> probabilities(n * c, 0);
    for (int64_t i = 0; i < n; ++i) {
      targets[i] = i % 5 == 4 ? kIgnore : i * 7 % c;
      if (targets[i] != kIgnore) probabilities[i * c + targets[i]] = 1;
    }
    for (const T smoothing : {T(0), T(.1)}) {
      const auto solve = [&](const T* weight, bool by_target) {
        const ClassWeights<T> q = {n,
                                   c,
                                   smoothing,
                                   weight,
                                   by_target ? targets.data() : nullptr,
                                   probabilities.data(),
                                   kIgnore};
        std::vector<T> loss(n), log_sum(n), dx(n * c, T(3));
        WeightedCrossEntropy(q, x.data(), loss.data(), log_sum.data());
        WeightedCrossEntropyGrad<T>(q, x.data(), log_sum.data(), 2, nullptr,
                                    true, dx.data(), false, nullptr);
        loss.insert(loss.end(), dx.begin(), dx.end());
        return loss;
      };
      std::vector<T> plain(n), log_sum(n), dx(n * c, T(3));
      CrossEntropy<T>(n, c, x.data(), targets.data(), kIgnore, smoothing,
                      plain.data(), log_sum.data());
      CrossEntropyGrad<T>(n, c, x.data(), targets.data(), kIgnore, smoothing,
                          log_sum.data(), 2, nullptr, true, dx.data());
      plain.insert(plain.end(), dx.begin(), dx.end());
      const auto one = solve(nullptr, true);
      for (size_t i = 0; i < plain.size(); ++i) {
        ASSERT_NEAR(one[i], plain[i], tolerance) << c << " at " << i;
      }
      const auto weighted = solve(w.data(), true);
      const auto given = solve(w.data(), false);
      for (int64_t i = 0; i < n; ++i) {
        if (targets[i] == kIgnore) continue;  // smoothed elsewhere
        EXPECT_NEAR(given[i], weighted[i], tolerance);
        const T scale = w[targets[i]];
        if (smoothing == 0) {
          EXPECT_NEAR(weighted[i], scale * plain[i], tolerance);
        }
        for (int64_t j = 0; j < c; ++j) {
          const int64_t at = n + i * c + j;
          ASSERT_NEAR(given[at], weighted[at], tolerance);
          if (smoothing == 0) {
            ASSERT_NEAR(weighted[at], 3 + scale * (plain[at] - 3), tolerance);
          }
        }
      }
    }
  }
}

TEST(CrossEntropyBitsTest, SameBitsForAnyNumberOfThreadsAndEqualRows) {
  const int64_t n = 500, c = 131;
  auto x = RandomVector<float>(n * c, 1);
  for (int64_t i = c; i < n * c; ++i) x[i] = x[i % c];
  const std::vector<int64_t> targets(n, 7);
  ExpectSameBitsForAnyThreads([&] {
    std::vector<float> all(n), log_sum(n), dx(n * c);
    CrossEntropy<float>(n, c, x.data(), targets.data(), kIgnore, .1f,
                        all.data(), log_sum.data());
    CrossEntropyGrad<float>(n, c, x.data(), targets.data(), kIgnore, .1f,
                            log_sum.data(), 1, nullptr, false, dx.data());
    for (int64_t i = c; i < n * c; ++i) EXPECT_EQ(dx[i], dx[i % c]);
    all.insert(all.end(), dx.begin(), dx.end());
    return all;
  });
}

}  // namespace
}  // namespace wengert::kernels
