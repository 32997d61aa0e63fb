#include "autograd/kernels/scan.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

// Element i of slice (o, j) of [outer, n, inner].
struct Sizes {
  int64_t outer, n, inner;
  int64_t At(int64_t o, int64_t i, int64_t j) const {
    return (o * n + i) * inner + j;
  }
};

constexpr Sizes kSizes[] = {
    {1, 0, 1},   {3, 1, 1},    {2, 3, 1},      {5, 7, 1},      {2, 8, 1},
    {1, 17, 1},  {3, 1023, 1}, {2, 40'009, 1}, {17, 33, 1},    {2, 9, 3},
    {1, 40, 64}, {3, 5, 70},   {1, 1025, 130}, {16, 17, 1030},
};

template <class T>
class ScanTest : public testing::Test {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(ScanTest, Floats);

TYPED_TEST(ScanTest, SumsFromEitherEnd) {
  using T = TypeParam;
  for (const Sizes& s : kSizes) {
    const int64_t size = s.outer * s.n * s.inner;
    // Off by one element: other alignments.
    const auto x = RandomVector<T>(size + 1, 1);
    for (bool reverse : {false, true}) {
      std::vector<T> y(size + 2, T(7));
      CumSum(s.outer, s.n, s.inner, reverse, x.data() + 1, false, y.data() + 1);
      auto more = y;
      CumSum(s.outer, s.n, s.inner, reverse, x.data() + 1, true,
             more.data() + 1);
      for (int64_t i = 1; i <= size; ++i) ASSERT_EQ(more[i], y[i] + y[i]);
      EXPECT_EQ(y.front(), 7);
      EXPECT_EQ(y.back(), 7);
      for (int64_t o = 0; o < s.outer; ++o) {
        for (int64_t j = 0; j < s.inner; ++j) {
          double sum = 0, magnitude = 0;
          for (int64_t k = 0; k < s.n; ++k) {
            const int64_t at = 1 + s.At(o, reverse ? s.n - 1 - k : k, j);
            sum += x[at];
            magnitude += std::fabs(x[at]);
            const double epsilon = std::numeric_limits<T>::epsilon();
            // A float result is the double one, rounded.
            const double bound =
                epsilon * (sizeof(T) == 4 ? std::fabs(sum) + 1e-6 * magnitude
                                          : 4 * magnitude);
            ASSERT_NEAR(y[at], sum, bound) << s.n << " " << k << " " << reverse;
          }
        }
      }
    }
  }
}

TYPED_TEST(ScanTest, Products) {
  using T = TypeParam;
  for (const Sizes& s : kSizes) {
    auto x = RandomVector<T>(s.outer * s.n * s.inner, 2, 0.99, 1.01);
    for (size_t i = 0; i < x.size(); i += 3) x[i] = -x[i];
    std::vector<T> y(x.size());
    CumProd(s.outer, s.n, s.inner, x.data(), y.data());
    for (int64_t o = 0; o < s.outer; ++o) {
      for (int64_t j = 0; j < s.inner; ++j) {
        double product = 1;
        for (int64_t i = 0; i < s.n; ++i) {
          const int64_t at = s.At(o, i, j);
          product *= x[at];
          const double bound = sizeof(T) == 4 ? 1e-7 : 1e-11;
          ASSERT_NEAR(y[at], product, bound * std::fabs(product));
        }
      }
    }
  }
}

TYPED_TEST(ScanTest, NanStaysWithWhatFollows) {
  using T = TypeParam;
  for (int64_t n : {5, 8, 21}) {
    for (int64_t at = 0; at < n; ++at) {
      std::vector<T> x(n, 1), y(n);
      x[at] = T(NAN);
      CumSum(1, n, 1, false, x.data(), false, y.data());
      for (int64_t i = 0; i < n; ++i) EXPECT_EQ(std::isnan(y[i]), i >= at);
      CumSum(1, n, 1, true, x.data(), false, y.data());
      for (int64_t i = 0; i < n; ++i) EXPECT_EQ(std::isnan(y[i]), i <= at);
      CumProd(1, n, 1, x.data(), y.data());
      for (int64_t i = 0; i < n; ++i) EXPECT_EQ(std::isnan(y[i]), i >= at);
    }
  }
}

TYPED_TEST(ScanTest, BitsDoNotDependOnThreadsOrPosition) {
  using T = TypeParam;
  for (const Sizes& s : {Sizes{1, 100'003, 1}, {500, 131, 1}, {4, 300, 130}}) {
    const auto x = RandomVector<T>(s.outer * s.n * s.inner, 3);
    for (bool reverse : {false, true}) {
      ExpectSameBitsForAnyThreads([&] {
        std::vector<T> y(x.size());
        CumSum(s.outer, s.n, s.inner, reverse, x.data(), false, y.data());
        return y;
      });
    }
  }
  constexpr int64_t kN = 77, kRows = 5;
  const auto row = RandomVector<T>(kN, 4);
  std::vector<T> rows, y(kRows * kN);
  for (int64_t r = 0; r < kRows; ++r) {
    rows.insert(rows.end(), row.begin(), row.end());
  }
  CumSum(kRows, kN, 1, true, rows.data(), false, y.data());
  const std::vector<T> first(y.begin(), y.begin() + kN);
  for (int64_t r = 1; r < kRows; ++r) {
    ExpectSameBits(std::vector<T>(y.begin() + r * kN, y.begin() + (r + 1) * kN),
                   first);
  }
}

}  // namespace
}  // namespace wengert::kernels
