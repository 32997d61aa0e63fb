#include "autograd/kernels/row_sums.h"

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

constexpr int64_t kWidths[] = {0,  1,  2,  7,   8,   15,   16,   17,
                               63, 64, 65, 127, 128, 2047, 2048, 4099};

// The sums and the sums of squares of some rows.
template <class T>
std::pair<std::vector<T>, std::vector<T>> SumsOf(int rows, int64_t width,
                                                 const T* x) {
  const auto add = [=](int r, auto place, gemm::Vector<T>* part) {
    const gemm::Vector<T> v = place.Load(x + r * width);
    part[0] += v;
    part[1] += v * v;
  };
  const auto [sum, squares] = RowSums<T, 2>(rows, width, add);
  std::pair<std::vector<T>, std::vector<T>> sums;
  for (int r = 0; r < gemm::kWidth<T>; ++r) {
    sums.first.push_back(sum[r]);
    sums.second.push_back(squares[r]);
  }
  return sums;
}

template <class T>
void TestRowSums(double tolerance) {
  for (int64_t width : kWidths) {
    for (int rows = 0; rows <= gemm::kWidth<T>; ++rows) {
      const auto x = RandomVector<T>(rows * width, 1, 0.5, 1);
      const auto [sum, squares] = SumsOf(rows, width, x.data());
      for (int r = 0; r < gemm::kWidth<T>; ++r) {
        long double s = 0, q = 0;
        for (int64_t j = 0; r < rows && j < width; ++j) {
          const long double v = x[r * width + j];
          s += v;
          q += v * v;
        }
        ASSERT_NEAR(static_cast<double>(sum[r] - s), 0, tolerance * s)
            << width << ", row " << r;
        ASSERT_NEAR(static_cast<double>(squares[r] - q), 0, tolerance * q)
            << width << ", row " << r;
      }
    }
  }
}

TEST(RowSumsTest, Float) { TestRowSums<float>(1e-6); }
TEST(RowSumsTest, Double) { TestRowSums<double>(1e-15); }

TEST(RowSumsTest, ARowsSumDependsOnItAlone) {
  for (int64_t width : kWidths) {
    const int most = gemm::kWidth<float>;
    const auto x = RandomVector<float>(most * width, 2);
    const auto together = SumsOf(most, width, x.data()).first;
    for (int r = 0; r < most; ++r) {
      EXPECT_EQ(SumsOf(1, width, x.data() + r * width).first[0], together[r])
          << width << ", row " << r;
    }
  }
}

TEST(RowSumsTest, NanStaysInItsRow) {
  for (int64_t width : {1, 16, 65}) {
    std::vector<float> x(3 * width, 1);
    x[2 * width - 1] = NAN;
    const auto sum = SumsOf(3, width, x.data()).first;
    EXPECT_EQ(sum[0], width);
    EXPECT_TRUE(std::isnan(sum[1]));
    EXPECT_EQ(sum[2], width);
  }
}

TEST(FoldLanesTest, LaneIsTheFoldOfItsRowByHalves) {
  constexpr int kWidth = gemm::kWidth<double>;
  gemm::Vector<double> v[kWidth];
  double expected[kWidth];
  for (int r = 0; r < kWidth; ++r) {
    std::vector<double> row = RandomVector<double>(kWidth, r);
    for (int l = 0; l < kWidth; ++l) v[r][l] = row[l];
    // Not symmetric: the first half must stand first.
    for (int n = kWidth / 2; n > 0; n /= 2) {
      for (int l = 0; l < n; ++l) row[l] = row[l] - 3 * row[l + n];
    }
    expected[r] = row[0];
  }
  const auto fold = [](auto a, auto b) { return a - 3 * b; };
  const gemm::Vector<double> folded = FoldLanes<double>(v, fold);
  for (int r = 0; r < kWidth; ++r) EXPECT_EQ(folded[r], expected[r]) << r;
}

// Every element of begin .. end - 1 is visited once, and no other is stored.
TEST(ForEachVectorTest, VisitsEachElementOnce) {
  for (int64_t begin : {0, 3}) {
    for (int64_t width : {0, 1, 7, 8, 9, 16, 17, 33}) {
      std::vector<double> x(begin + width + 20, 1);
      ForEachVector<double>(begin, begin + width, [&](auto place) {
        place.Store(x.data(), place.Load(x.data()) + 1);
      });
      for (int64_t j = 0; j < static_cast<int64_t>(x.size()); ++j) {
        EXPECT_EQ(x[j], j >= begin && j < begin + width ? 2 : 1) << j;
      }
    }
  }
}

TEST(PartVectorTest, RestAndZeroStandBehind) {
  const std::vector<float> x(gemm::kWidth<float>, 5);
  for (int n = 1; n < gemm::kWidth<float>; ++n) {
    const PartVector<float> place = {0, n};
    const gemm::Vector<float> v = gemm::Load(x.data());
    const auto rest = place.Or(v, v * 2), zero = place.OrZero(v);
    for (int l = 0; l < gemm::kWidth<float>; ++l) {
      EXPECT_EQ(rest[l], l < n ? 5 : 10) << n;
      EXPECT_EQ(zero[l], l < n ? 5 : 0) << n;
    }
  }
}

TEST(ForEachGroupTest, GroupsAreWholeAndOfBoundedSize) {
  for (int64_t width : {0, 1, 100, 10000}) {
    int64_t next = 5;
    ForEachGroup<float>(5, 50, width, 1 << 13, [&](int64_t r, int n) {
      EXPECT_EQ(r, next);
      EXPECT_GT(n, 0);
      EXPECT_LE(n, gemm::kWidth<float>);
      if (n > 4) {
        EXPECT_LE(n * width * 4, 1 << 13);
      }
      next += n;
    });
    EXPECT_EQ(next, 50);
  }
}

}  // namespace
}  // namespace wengert::kernels
