// The optimizers' kernels against their formulas in long double, and the same
// bits wherever an element stands and however many threads there are.
#include "autograd/kernels/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/parallel.h"
#include "autograd/random.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

constexpr int64_t kLong = 100'003;  // several chunks and a ragged end

template <class T>
std::vector<T> Random(uint64_t stream, int64_t n, double lo, double hi) {
  std::vector<T> x(n);
  FillUniform(7, stream, lo, hi, n, x.data());
  return x;
}

template <class T>
struct OptimizerKernels : ::testing::Test {
  static constexpr double kTolerance =
      8 * static_cast<double>(std::numeric_limits<T>::epsilon());
};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(OptimizerKernels, Floats);

TYPED_TEST(OptimizerKernels, AdamFollowsItsFormula) {
  using T = TypeParam;
  const AdamFactors f = {.step_size = 0.01,
                         .beta1 = 0.9,
                         .beta2 = 0.999,
                         .root_scale = 1.25,
                         .eps = 1e-3,
                         .l2 = 0.25,
                         .keep = 0.75};
  for (int64_t n : {0, 1, 5, 16, 37}) {
    const auto g = Random<T>(0, n, -2, 2);
    const auto w0 = Random<T>(1, n, -2, 2), m0 = Random<T>(2, n, -1, 1),
               v0 = Random<T>(3, n, 0, 1);
    auto w = w0, m = m0, v = v0;
    AdamStep<T>(n, f, g.data(), w.data(), m.data(), v.data());
    for (int64_t i = 0; i < n; ++i) {
      const long double d = g[i] + 0.25L * w0[i];
      const long double want_m = 0.9L * m0[i] + 0.1L * d;
      const long double want_v = 0.999L * v0[i] + 0.001L * d * d;
      const long double want_w =
          0.75L * w0[i] - 0.01L * want_m / (1.25L * std::sqrt(want_v) + 0.001L);
      EXPECT_NEAR(m[i], want_m, this->kTolerance);
      EXPECT_NEAR(v[i], want_v, this->kTolerance);
      EXPECT_NEAR(w[i], want_w, this->kTolerance);
    }
  }
}

TYPED_TEST(OptimizerKernels, SgdFollowsItsFormula) {
  using T = TypeParam;
  for (bool nesterov : {false, true}) {
    for (int64_t n : {0, 1, 5, 16, 37}) {
      const auto g = Random<T>(0, n, -2, 2);
      const auto w0 = Random<T>(1, n, -2, 2), b0 = Random<T>(2, n, -1, 1);
      auto w = w0, b = b0;
      SgdStep<T>(n, {0.125, 0.75, nesterov, 0.5}, g.data(), w.data(), b.data());
      for (int64_t i = 0; i < n; ++i) {
        const long double d = g[i] + 0.5L * w0[i];
        const long double want_b = 0.75L * b0[i] + d;
        const long double step = nesterov ? d + 0.75L * want_b : want_b;
        EXPECT_NEAR(b[i], want_b, this->kTolerance);
        EXPECT_NEAR(w[i], w0[i] - 0.125L * step, this->kTolerance);
      }
    }
  }
}

TYPED_TEST(OptimizerKernels, ScaleRoundsOnce) {
  using T = TypeParam;
  const double factor = 1e-40;  // has few bits as a float
  const T largest = std::numeric_limits<T>::max();
  std::vector<T> x = {largest, -largest, 0, 3};
  Scale<T>(4, factor, x.data());
  EXPECT_EQ(x[0], static_cast<T>(factor * static_cast<double>(largest)));
  EXPECT_EQ(x[1], -x[0]);
  EXPECT_EQ(x[2], 0);
  EXPECT_EQ(x[3], static_cast<T>(factor * 3));
}

TYPED_TEST(OptimizerKernels, SumSquaresIsExactForSmallIntegers) {
  using T = TypeParam;
  for (int64_t n : {0, 1, 31, 32, 33, 100, 16384, 16385, 100'003}) {
    std::vector<T> x(n);
    double want = 0;
    for (int64_t i = 0; i < n; ++i) {
      x[i] = static_cast<T>(i % 7 - 3);
      want += (i % 7 - 3) * (i % 7 - 3);
    }
    EXPECT_EQ(SumSquares<T>(n, 1, x.data()), want) << n;
    EXPECT_EQ(SumSquares<T>(n, 0.5, x.data()), want / 4) << n;
  }
}

TYPED_TEST(OptimizerKernels, PlaceAndLengthDoNotMatter) {
  using T = TypeParam;
  const AdamFactors f = {0.01, 0.9, 0.999, 1.25, 1e-3, 0.25, 0.75};
  const auto g = Random<T>(0, kLong, -2, 2);
  auto w = Random<T>(1, kLong, -2, 2), m = Random<T>(2, kLong, -1, 1),
       v = Random<T>(3, kLong, 0, 1);
  for (int64_t i : {1, 15, 16383, 16384, 99'990, 100'002}) {
    // One element alone, by scalar code, from unaligned memory.
    T wi = w[i], mi = m[i], vi = v[i];
    AdamStep<T>(1, f, &g[i], &wi, &mi, &vi);
    auto all_w = w, all_m = m, all_v = v;
    AdamStep<T>(kLong, f, g.data(), all_w.data(), all_m.data(), all_v.data());
    EXPECT_EQ(wi, all_w[i]);
    EXPECT_EQ(mi, all_m[i]);
    EXPECT_EQ(vi, all_v[i]);
  }
  std::vector<T> shifted(g.size() + 1);
  std::copy(g.begin(), g.end(), shifted.begin() + 1);
  EXPECT_EQ(SumSquares<T>(kLong, 1, g.data()),
            SumSquares<T>(kLong, 1, shifted.data() + 1));
}

TYPED_TEST(OptimizerKernels, ThreadsGiveTheSameBits) {
  using T = TypeParam;
  const int before = NumThreads();
  const auto g = Random<T>(0, kLong, -2, 2);
  std::vector<T> first_w, first_b;
  double first_sum = 0;
  for (int threads : {1, 2, 3, 5}) {
    SetNumThreads(threads);
    auto w = Random<T>(1, kLong, -2, 2), m = Random<T>(2, kLong, -1, 1),
         v = Random<T>(3, kLong, 0, 1), b = m;
    AdamStep<T>(kLong, {0.01, 0.9, 0.999, 1.25, 1e-3, 0.25, 0.75}, g.data(),
                w.data(), m.data(), v.data());
    SgdStep<T>(kLong, {0.125, 0.75, true, 0.5}, g.data(), w.data(), b.data());
    Scale<T>(kLong, 0.3, b.data());
    const double sum = SumSquares<T>(kLong, 1, w.data());
    if (threads == 1) {
      first_w = w, first_b = b, first_sum = sum;
    } else {
      EXPECT_EQ(w, first_w);
      EXPECT_EQ(b, first_b);
      EXPECT_EQ(sum, first_sum);
    }
  }
  SetNumThreads(before);
}

}  // namespace
}  // namespace wengert::kernels
