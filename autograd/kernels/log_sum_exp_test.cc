#include "autograd/kernels/log_sum_exp.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Sizes {
  int64_t outer, n, inner;
  int64_t size() const { return outer * n * inner; }
};

template <class T>
struct Results {
  Results(const Sizes& s, const std::vector<T>& x)
      : s(s), x(x), y(s.outer * s.inner, T(NAN)), shift(y), sum(y) {
    LogSumExp(s.outer, s.n, s.inner, x.data(), y.data(), shift.data(),
              sum.data());
  }
  std::vector<T> Gradient(const std::vector<T>& dy, bool accumulate = false,
                          T before = T(NAN)) const {
    std::vector<T> dx(x.size(), before);
    LogSumExpGrad(s.outer, s.n, s.inner, x.data(), shift.data(), sum.data(),
                  dy.data(), accumulate, dx.data());
    return dx;
  }
  Sizes s;
  std::vector<T> x, y, shift, sum;
};

// `of` copies of x as rows, and as columns.
template <class T>
std::vector<Results<T>> AsRowsAndColumns(const std::vector<T>& x, int64_t of) {
  const int64_t n = static_cast<int64_t>(x.size());
  std::vector<T> rows, columns;
  for (int64_t i = 0; i < of * n; ++i) {
    rows.push_back(x[i % n]);
    columns.push_back(x[i / of]);
  }
  return {Results<T>({of, n, 1}, rows), Results<T>({1, n, of}, columns)};
}

constexpr Sizes kSizes[] = {{1, 1, 1},    {3, 7, 1},      {2, 1024, 1},
                            {2, 1025, 1}, {1, 40'000, 1}, {2, 3, 5},
                            {3, 16, 64},  {1, 17, 65},    {2, 300, 130},
                            {16, 3, 10},  {16, 40, 1030}};

template <class T>
class LogSumExpTest : public testing::Test {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(LogSumExpTest, Floats);

TYPED_TEST(LogSumExpTest, ValuesAndGradients) {
  using T = TypeParam;
  const double epsilon = std::numeric_limits<T>::epsilon();
  for (const Sizes& s : kSizes) {
    for (double range : {1.0, 100.0}) {  // double holds e^100
      const auto x = RandomVector<T>(s.size(), 2, -range, range);
      const auto dy = RandomVector<T>(s.outer * s.inner, 3);
      const Results<T> got(s, x);
      const auto dx = got.Gradient(dy), more = got.Gradient(dy, true, 3);
      for (int64_t i = 0; i < s.outer * s.inner; ++i) {
        const int64_t at = i / s.inner * s.n * s.inner + i % s.inner;
        double sum = 0;
        for (int64_t k = 0; k < s.n; ++k) {
          sum += std::exp(double{x[at + k * s.inner]});
        }
        const double want = std::log(sum);
        ASSERT_NEAR(got.y[i], want, 4 * epsilon * (1 + std::fabs(want)))
            << s.n << " " << s.inner;
        for (int64_t k = at; k < at + s.n * s.inner; k += s.inner) {
          // The difference from the largest is rounded where it is large.
          const double p = std::exp(double{x[k]}) / sum;
          ASSERT_NEAR(dx[k], dy[i] * p,
                      20 * epsilon * std::fabs(dy[i]) * std::sqrt(p));
          ASSERT_EQ(more[k], 3 + dx[k]);
        }
      }
    }
  }
}

// A new largest element in each block, and the largest first.
TYPED_TEST(LogSumExpTest, SortedEitherWay) {
  using T = TypeParam;
  constexpr int64_t n = 5000;
  for (double slope : {0.125, -0.125}) {
    std::vector<T> x;
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      const auto v = static_cast<double>(i - n / 2) * slope;
      x.push_back(static_cast<T>(v));
      sum += std::exp(v);
    }
    for (const auto& got : AsRowsAndColumns(x, 3)) {
      for (T y : got.y) {
        EXPECT_NEAR(y, std::log(sum), 3e-7 * (sizeof(T) == 4 ? 312 : 1e-6));
      }
    }
  }
}

TYPED_TEST(LogSumExpTest, AtTheEdges) {
  using T = TypeParam;
  const auto check = [](std::vector<T> pair, double want,
                        std::vector<double> slopes) {
    for (int64_t n : {2, 50, 3000}) {
      pair.resize(n, T(-kInf));  // adds nothing
      slopes.resize(n, std::isnan(want) ? NAN : 0);
      for (const auto& got : AsRowsAndColumns(pair, 3)) {
        const auto dx = got.Gradient(std::vector<T>(3, 1));
        for (T y : got.y) {
          if (std::isfinite(want)) {
            EXPECT_NEAR(y, want, 1e-7 * std::fabs(want));
          } else {
            ExpectSameBits<double>({y}, {want});
          }
        }
        for (int64_t i = 0; i < 3 * n; ++i) {
          const double slope = slopes[got.s.inner == 1 ? i % n : i / 3];
          if (std::isnan(slope)) {
            ASSERT_TRUE(std::isnan(dx[i])) << want << " " << i;
          } else {
            ASSERT_NEAR(dx[i], slope, 1e-7) << want << " " << i;
          }
        }
      }
    }
  };
  check({1000, 1000}, 1000.6931471805599, {0.5, 0.5});
  check({-1000, -1000}, -999.30685281944, {0.5, 0.5});
  check({T(-kInf), T(-kInf)}, -kInf, {0, 0});
  check({T(-kInf), 3}, 3, {0, 1});
  check({T(kInf), 3}, kInf, {NAN, 0});
  check({T(kInf), T(-kInf)}, kInf, {NAN, 0});
  check({T(kInf), T(kInf)}, kInf, {NAN, NAN});
  check({T(NAN), T(kInf)}, NAN, {NAN, NAN});
  check({1, T(NAN)}, NAN, {NAN, NAN});
  const T none[] = {0};
  T y[3], shift[3], sum[3];
  for (int64_t inner : {1, 3}) {
    LogSumExp<T>(1, 0, inner, none, y, shift, sum);
    for (int64_t j = 0; j < inner; ++j) EXPECT_EQ(y[j], -kInf);
  }
}

TYPED_TEST(LogSumExpTest, BitsDependOnTheSliceAlone) {
  using T = TypeParam;
  for (int64_t n : {3, 33, 1023, 1025, 20'000}) {
    const auto x = RandomVector<T>(n, 4, -5, 5);
    for (int64_t copies : {2, 7, 64, 130}) {
      if (n * copies > 200'000) continue;
      const auto one = AsRowsAndColumns(x, 1)[0];
      const auto columns = AsRowsAndColumns(x, 2)[1];
      const auto many = AsRowsAndColumns(x, copies);
      ExpectSameBits(many[0].y, std::vector<T>(copies, one.y[0]));
      ExpectSameBits(many[1].y, std::vector<T>(copies, columns.y[0]));
      ExpectSameBits(many[1].sum, std::vector<T>(copies, columns.sum[0]));
    }
  }
  for (const Sizes& s : {Sizes{2, 100'000, 1}, {4, 300, 130}}) {
    const auto x = RandomVector<T>(s.size(), 3);
    const std::vector<T> dy(s.outer * s.inner, 1);
    ExpectSameBitsForAnyThreads([&] { return Results<T>(s, x).y; });
    ExpectSameBitsForAnyThreads([&] { return Results<T>(s, x).Gradient(dy); });
  }
}

TYPED_TEST(LogSumExpTest, GradientsOfAnySizeKeepTheirDigits) {
  using T = TypeParam;
  const double smallest = std::numeric_limits<T>::min();
  for (double dy : {8 * smallest, 1e-16, 1e30}) {
    for (const auto& r : AsRowsAndColumns<T>({1, 1, -3}, 20)) {
      const std::vector<T> dx = r.Gradient(std::vector<T>(20, dy));
      const double want = dy / (2 + std::exp(-4.0));
      EXPECT_NEAR(dx[0], want, 1e-6 * want);
    }
    for (const auto& r : AsRowsAndColumns<T>({T(-kInf), T(-kInf)}, 20)) {
      for (T d : r.Gradient(std::vector<T>(20, dy))) EXPECT_EQ(d, 0);
    }
  }
}

}  // namespace
}  // namespace wengert::kernels
