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

TEST(RowMaximaTest, LeavesNanOut) {
  for (int64_t width : {1, 16, 17, 64, 65, 100}) {
    for (int64_t at = 0; at < width; ++at) {
      std::vector<float> x(2 * width, 3);
      x[at] = NAN;
      const std::vector<float> max = MaximaOf(2, width, x);
      EXPECT_EQ(max[0], width == 1 ? -kInfinity<float> : 3) << at;
      EXPECT_EQ(max[1], 3);
    }
  }
}

TEST(ExpLanesTest, IsExpOfWhatIsNotPositive) {
  for (float v : {0.f, -1e-9f, -0.7f, -30.f, -100.f, -150.f, -kInfinity<float>,
                  float(NAN)}) {
    const auto e = ExpLanes<float>(gemm::Vector<float>{} + v);
    for (int l = 0; l < gemm::kWidth<float>; ++l) {
      ExpectSameBits(std::vector<float>{e[l]}, {Exp(v)});
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
