#include "autograd/kernels/softmax_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

template <class T>
std::vector<T> MaximaOf(int rows, int64_t width, const std::vector<T>& x) {
  std::vector<T> max(gemm::kWidth<T>, T(0));
  RowMaxima(rows, width, x.data(), max.data());
  return max;
}

template <class T>
void TestMaxima() {
  for (int64_t width : {0, 1, 7, 8, 16, 17, 63, 64, 65, 130}) {
    for (int rows = 0; rows <= gemm::kWidth<T>; ++rows) {
      const auto x = RandomVector<T>(rows * width, width, -9, -1);
      const std::vector<T> max = MaximaOf(rows, width, x);
      for (int r = 0; r < gemm::kWidth<T>; ++r) {
        T most = -kInfinity<T>;
        for (int64_t j = 0; r < rows && j < width; ++j) {
          most = std::max(most, x[r * width + j]);
        }
        ASSERT_EQ(max[r], most) << rows << " x " << width << ", row " << r;
      }
    }
  }
}

TEST(RowMaximaTest, Float) { TestMaxima<float>(); }
TEST(RowMaximaTest, Double) { TestMaxima<double>(); }

TEST(RowMaximaTest, NanWinsWhereverItStands) {
  for (int64_t width : {1, 16, 17, 64, 65, 100}) {
    for (int64_t at = 0; at < width; ++at) {
      auto x = RandomVector<float>(2 * width, 1);
      x[at] = NAN;
      x[(at + 1) % width] = width > 1 ? INFINITY : NAN;
      const std::vector<float> max = MaximaOf(2, width, x);
      EXPECT_TRUE(std::isnan(max[0])) << at << " of " << width;
      EXPECT_FALSE(std::isnan(max[1]));
    }
  }
}

TEST(WriteRowsTest, StoresOrAddsTheRowsAlone) {
  for (bool accumulate : {false, true}) {
    std::vector<float> y(3 * 17 + 16, 1);
    const auto value = [](int r, auto) {
      return gemm::Vector<float>{} + static_cast<float>(r + 2);
    };
    WriteRows<float>(3, 17, accumulate, value, y.data());
    for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
      const int64_t r = i / 17;
      EXPECT_EQ(y[i], r >= 3 ? 1 : static_cast<float>(r + 2 + accumulate));
    }
  }
}

}  // namespace
}  // namespace wengert::kernels
