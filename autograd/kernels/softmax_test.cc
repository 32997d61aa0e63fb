#include "autograd/kernels/softmax.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kWidths[] = {1, 2, 7, 31, 32, 33, 64, 100, 1500};

std::vector<double> Reference(bool log, int64_t rows, int64_t width,
                              const std::vector<double>& x) {
  std::vector<double> y(x.size());
  for (int64_t r = 0; r < rows; ++r) {
    const double* from = x.data() + r * width;
    const double max = *std::max_element(from, from + width);
    double sum = 0;
    for (int64_t j = 0; j < width; ++j) sum += std::exp(from[j] - max);
    for (int64_t j = 0; j < width; ++j) {
      const double logp = from[j] - max - std::log(sum);
      y[r * width + j] = log ? logp : std::exp(logp);
    }
  }
  return y;
}

template <class T>
std::vector<T> To(const std::vector<double>& x) {
  return std::vector<T>(x.begin(), x.end());
}

template <class T>
class SoftmaxTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(SoftmaxTest, Types);

TYPED_TEST(SoftmaxTest, AgreesWithTheDefinitionAndItsSlopes) {
  using T = TypeParam;
  const double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-13;
  for (const int64_t width : kWidths) {
    for (const bool log : {false, true}) {
      const int64_t rows = 3, n = rows * width;
      // Floats, so that both types see the same numbers.
      const auto x = RandomVector<float>(n, 1, -5, 5);
      const auto dy = RandomVector<float>(n, 2);
      const auto u = RandomVector<double>(n, 3);
      const std::vector<double> xd(x.begin(), x.end());
      const auto expected = Reference(log, rows, width, xd);
      const std::vector<T> xt(x.begin(), x.end()), dyt(dy.begin(), dy.end());
      std::vector<T> y = xt;  // in place
      (log ? LogSoftmax<T> : Softmax<T>)(rows, width, y.data(), y.data());
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_NEAR(y[i], expected[i],
                    tolerance * std::max(1., std::abs(expected[i])));
      }
      std::vector<T> dx(n, T(NAN)), added(n, 10), in_place = dyt;
      const auto grad = log ? LogSoftmaxGrad<T> : SoftmaxGrad<T>;
      grad(rows, width, y.data(), dyt.data(), false, dx.data());
      grad(rows, width, y.data(), dyt.data(), true, added.data());
      grad(rows, width, y.data(), in_place.data(), false, in_place.data());
      EXPECT_EQ(in_place, dx);
      // Along a random direction, by central differences.
      constexpr double kStep = 1e-5;
      double slope = 0, got = 0;
      for (const double sign : {1, -1}) {
        std::vector<double> moved = xd;
        for (int64_t i = 0; i < n; ++i) moved[i] += sign * kStep * u[i];
        const auto at = Reference(log, rows, width, moved);
        for (int64_t i = 0; i < n; ++i) {
          slope += sign * at[i] * dy[i] / (2 * kStep);
        }
      }
      for (int64_t i = 0; i < n; ++i) {
        got += dx[i] * u[i];
        ASSERT_NEAR(added[i], dx[i] + 10, sizeof(T) == 4 ? 4e-6 : 1e-14);
      }
      EXPECT_NEAR(got, slope,
                  (sizeof(T) == 4 ? 1e-5 : 1e-8) * (1 + std::sqrt(n)))
          << width << " " << log;
    }
  }
}

TYPED_TEST(SoftmaxTest, KnownValues) {
  using T = TypeParam;
  const std::vector<T> zeros = {0, 0}, dy = {1, 2};
  std::vector<T> y(2), dx(2);
  Softmax<T>(1, 2, zeros.data(), y.data());
  EXPECT_EQ(y, To<T>({.5, .5}));
  SoftmaxGrad<T>(1, 2, y.data(), dy.data(), false, dx.data());
  EXPECT_EQ(dx, To<T>({-.25, .25}));  // of y0² + 2 y1²
  const std::vector<T> large = {1000, 1000};
  LogSoftmax<T>(1, 2, large.data(), y.data());
  EXPECT_NEAR(y[0], -std::log(2.), 1e-7);
}

TYPED_TEST(SoftmaxTest, InfinitiesAndNan) {
  using T = TypeParam;
  const std::vector<T> dy = {3, 4, 5};
  std::vector<T> y(3), dx(3, 7);
  const auto masked = To<T>({-kInf, -kInf, -kInf});
  Softmax<T>(1, 3, masked.data(), y.data());
  EXPECT_EQ(y, To<T>({0, 0, 0}));
  SoftmaxGrad<T>(1, 3, y.data(), dy.data(), false, dx.data());
  EXPECT_EQ(dx, To<T>({0, 0, 0}));
  LogSoftmax<T>(1, 3, masked.data(), y.data());
  EXPECT_EQ(y, masked);
  LogSoftmaxGrad<T>(1, 3, y.data(), dy.data(), true, dx.data());
  EXPECT_EQ(dx, To<T>({0, 0, 0}));
  dx = To<T>({7, 7, 7});
  LogSoftmaxGrad<T>(1, 3, y.data(), dy.data(), false, dx.data());
  EXPECT_EQ(dx, To<T>({0, 0, 0}));

  const auto partly = To<T>({-kInf, 2, -kInf});
  Softmax<T>(1, 3, partly.data(), y.data());
  EXPECT_EQ(y, To<T>({0, 1, 0}));
  LogSoftmax<T>(1, 3, partly.data(), y.data());
  EXPECT_EQ(y, To<T>({-kInf, 0, -kInf}));

  for (const double bad : {kInf, double(NAN)}) {
    for (const double others : {-1., -kInf}) {
      for (const int64_t width : {3, 100}) {
        for (const int64_t place : {int64_t{0}, width - 1}) {
          std::vector<T> x(width, T(others)), out(width);
          x[place] = T(bad);
          Softmax<T>(1, width, x.data(), out.data());
          for (const T v : out) EXPECT_TRUE(std::isnan(v));
          LogSoftmax<T>(1, width, x.data(), out.data());
          for (const T v : out) EXPECT_TRUE(std::isnan(v));
        }
      }
    }
  }
}

TYPED_TEST(SoftmaxTest, TheLargestIsFoundWhereverItStands) {
  using T = TypeParam;
  for (int64_t place = 0; place < 100; ++place) {
    std::vector<T> x(100, -1000), y(100), expected(100, 0);
    x[place] = 1000;
    expected[place] = 1;
    Softmax<T>(1, 100, x.data(), y.data());
    EXPECT_EQ(y, expected);
  }
}

// Rows side by side in a vector stay apart, at the end of a row too.
TYPED_TEST(SoftmaxTest, NanAndMaskedRowsStayApart) {
  using T = TypeParam;
  for (const int64_t width : {3, 16, 33, 130}) {
    const int64_t rows = 21;
    auto x = RandomVector<T>(rows * width, 1, -5, 5);
    const auto dy = RandomVector<T>(rows * width, 2);
    std::vector<T> y(x.size()), bad_y(x.size()), dx(x.size()), bad_dx(x.size());
    for (const bool log : {false, true}) {
      const auto f = log ? LogSoftmax<T> : Softmax<T>;
      const auto df = log ? LogSoftmaxGrad<T> : SoftmaxGrad<T>;
      std::vector<T> bad = x;
      bad[3 * width + width - 1] = T(NAN);
      std::fill_n(bad.begin() + 5 * width, width, T(-kInf));
      f(rows, width, x.data(), y.data());
      f(rows, width, bad.data(), bad_y.data());
      df(rows, width, y.data(), dy.data(), false, dx.data());
      df(rows, width, bad_y.data(), dy.data(), false, bad_dx.data());
      for (int64_t i = 0; i < rows * width; ++i) {
        if (i / width == 3) {
          EXPECT_TRUE(std::isnan(bad_y[i]) && std::isnan(bad_dx[i]));
        } else if (i / width == 5) {
          EXPECT_EQ(bad_y[i], log ? T(-kInf) : T(0));
          EXPECT_EQ(bad_dx[i], T(0));
        } else {
          EXPECT_EQ(bad_y[i], y[i]);
          EXPECT_EQ(bad_dx[i], dx[i]);
        }
      }
    }
  }
}

TEST(SoftmaxBitsTest, SameBitsForAnyNumberOfThreadsAndEqualRows) {
  const int64_t rows = 400, width = 131;
  auto x = RandomVector<float>(rows * width, 1);
  for (int64_t i = width; i < rows * width; ++i) x[i] = x[i % width];
  const auto dy = RandomVector<float>(rows * width, 2);
  ExpectSameBitsForAnyThreads([&] {
    std::vector<float> all, y(x.size()), dx(x.size());
    for (const bool log : {false, true}) {
      (log ? LogSoftmax<float> : Softmax<float>)(rows, width, x.data(),
                                                 y.data());
      (log ? LogSoftmaxGrad<float> : SoftmaxGrad<float>)(rows, width, y.data(),
                                                         dy.data(), false,
                                                         dx.data());
      for (int64_t i = width; i < rows * width; ++i) {
        EXPECT_EQ(y[i], y[i % width]);
      }
      all.insert(all.end(), y.begin(), y.end());
      all.insert(all.end(), dx.begin(), dx.end());
    }
    return all;
  });
}

}  // namespace
}  // namespace wengert::kernels
