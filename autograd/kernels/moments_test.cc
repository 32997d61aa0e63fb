#include "autograd/kernels/moments.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

struct Sizes {
  int64_t outer, n, inner;
};
constexpr Sizes kSizes[] = {{1, 1, 1},       {3, 7, 1},      {2, 4096, 1},
                            {1, 4097, 1},    {2, 20'000, 1}, {2, 3, 5},
                            {3, 64, 64},     {1, 65, 65},    {2, 300, 130},
                            {16, 130, 1030}, {0, 3, 2},      {3, 5, 0}};

template <class T>
class MomentsTest : public testing::Test {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(MomentsTest, Floats);

// Of numbers that are small beside their mean.
TYPED_TEST(MomentsTest, MeanAndSquares) {
  using T = TypeParam;
  for (const Sizes& s : kSizes) {
    const auto x = RandomVector<T>(s.outer * s.n * s.inner, 1, 99, 101);
    std::vector<T> mean(s.outer * s.inner), squares(mean.size());
    Moments(s.outer, s.n, s.inner, x.data(), mean.data(), squares.data());
    for (int64_t i = 0; i < s.outer * s.inner; ++i) {
      const T* const from =
          x.data() + i / s.inner * s.n * s.inner + i % s.inner;
      long double sum = 0, exact = 0;
      for (int64_t k = 0; k < s.n; ++k) sum += from[k * s.inner];
      sum /= static_cast<long double>(s.n);
      for (int64_t k = 0; k < s.n; ++k) {
        exact += (from[k * s.inner] - sum) * (from[k * s.inner] - sum);
      }
      const double epsilon = std::numeric_limits<T>::epsilon();
      ASSERT_NEAR(mean[i], sum, 100 * epsilon) << s.n << " " << s.inner;
      ASSERT_NEAR(squares[i], exact, 64 * epsilon * exact + 1e-20)
          << s.n << " " << s.inner;
    }
  }
}

TYPED_TEST(MomentsTest, EqualElementsHaveNoVariance) {
  using T = TypeParam;
  for (const Sizes& s : kSizes) {
    const std::vector<T> x(s.outer * s.n * s.inner, T(0.1));
    std::vector<T> mean(s.outer * s.inner), squares(mean.size(), 1);
    Moments(s.outer, s.n, s.inner, x.data(), mean.data(), squares.data());
    ExpectSameBits(mean, std::vector<T>(mean.size(), T(0.1)));
    ExpectSameBits(squares, std::vector<T>(mean.size(), 0));
  }
}

TYPED_TEST(MomentsTest, OfNothing) {
  using T = TypeParam;
  for (int64_t inner : {1, 3}) {
    std::vector<T> mean(2 * inner), squares(2 * inner, 1);
    Moments<T>(2, 0, inner, nullptr, mean.data(), squares.data());
    for (T m : mean) EXPECT_TRUE(std::isnan(m));
    ExpectSameBits(squares, std::vector<T>(2 * inner, 0));
  }
}

TYPED_TEST(MomentsTest, BitsDependOnTheSliceAlone) {
  using T = TypeParam;
  for (int64_t n : {21, 300}) {
    const auto column = RandomVector<T>(n, 4);
    std::vector<T> first;
    for (int64_t outer : {1, 16}) {
      for (int64_t inner : {2, 64, 65, 1100}) {
        std::vector<T> x(outer * n * inner);
        for (size_t i = 0; i < x.size(); ++i) x[i] = column[i / inner % n];
        std::vector<T> mean(outer * inner), squares(outer * inner);
        Moments(outer, n, inner, x.data(), mean.data(), squares.data());
        if (first.empty()) first = {mean[0], squares[0]};
        ExpectSameBits(mean, std::vector<T>(mean.size(), first[0]));
        ExpectSameBits(squares, std::vector<T>(mean.size(), first[1]));
      }
    }
  }
  for (const Sizes& s : {Sizes{2, 100'000, 1}, {4, 300, 130}}) {
    const auto x = RandomVector<T>(s.outer * s.n * s.inner, 3);
    ExpectSameBitsForAnyThreads([&] {
      std::vector<T> y(2 * s.outer * s.inner);
      Moments(s.outer, s.n, s.inner, x.data(), y.data(),
              y.data() + s.outer * s.inner);
      return y;
    });
  }
}

}  // namespace
}  // namespace wengert::kernels
