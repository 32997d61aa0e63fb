#include "autograd/kernels/dropout.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "autograd/random.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

constexpr int64_t kLong = 50003;

template <class T>
std::vector<T> Dropped(std::vector<T> x, double p, uint64_t seed = 1,
                       uint64_t offset = 2) {
  std::vector<T> y(x.size(), T(NAN));
  Dropout<T>(x.size(), p, seed, offset, x.data(), false, y.data());
  return y;
}

TEST(DropoutTest, BitsAreThoseOfPhilox) {
  const uint64_t seed = 0x123456789abcdef, offset = (uint64_t{7} << 40) + 3;
  for (double p : {0.1, 0.5, 0.93}) {
    const auto x = RandomVector<float>(kLong, 3, 1, 2);
    const auto y = Dropped(x, p, seed, offset);
    for (int64_t i = 0; i < kLong; ++i) {
      const uint32_t word = Philox::Block(seed, i / 4, offset)[i % 4];
      const bool keep = word >= std::llround(p * 4294967296.0);
      ASSERT_EQ(y[i], keep ? x[i] * static_cast<float>(1 / (1 - p)) : 0) << i;
    }
  }
}

TEST(DropoutTest, DropsTheShareThatItIsAskedFor) {
  for (double p : {0.01, 0.3, 0.8}) {
    const auto y = Dropped(std::vector<double>(kLong, 1), p);
    int64_t dropped = 0;
    for (double v : y) dropped += v == 0;
    // Five standard deviations.
    EXPECT_NEAR(dropped, kLong * p, 5 * std::sqrt(kLong * p * (1 - p)));
  }
}

TEST(DropoutTest, NothingAndEverything) {
  const std::vector<float> x = {1, -2, INFINITY, NAN, 5};
  ExpectSameBits(Dropped(x, 0), x);
  ExpectSameBits(Dropped(x, 1), std::vector<float>(5, 0));
}

TEST(DropoutTest, ADroppedNanIsZero) {
  const auto y = Dropped(std::vector<float>(1000, NAN), 0.5);
  int64_t zeros = 0, nans = 0;
  for (float v : y) (v == 0 ? zeros : nans) += 1;
  EXPECT_GT(zeros, 400);
  EXPECT_GT(nans, 400);
}

TEST(DropoutTest, FloatAndDoubleDropTheSame) {
  const auto y32 = Dropped(std::vector<float>(1000, 1), 0.1);
  const auto y64 = Dropped(std::vector<double>(1000, 1), 0.1);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(y32[i], static_cast<float>(y64[i]));
}

TEST(DropoutTest, AccumulatesAndWorksInPlace) {
  const auto x = RandomVector<float>(kLong, 4);
  const auto y = Dropped(x, 0.4);
  std::vector<float> sum(kLong, 10), in_place = x;
  Dropout<float>(kLong, 0.4, 1, 2, x.data(), true, sum.data());
  for (int64_t i = 0; i < kLong; ++i) ASSERT_EQ(sum[i], 10 + y[i]);
  Dropout<float>(kLong, 0.4, 1, 2, in_place.data(), false, in_place.data());
  ExpectSameBits(in_place, y);
}

TEST(DropoutTest, BitsDoNotDependOnThreads) {
  const auto x = RandomVector<float>(kLong, 5);
  ExpectSameBitsForAnyThreads([&] { return Dropped(x, 0.5); });
}

TEST(DropoutTest, MaskRowsAreTheSameBits) {
  const auto mask = Dropped(std::vector<double>(2000, 1), 0.3, 9, 8);
  for (int64_t first : {0, 1, 2, 3, 62, 63, 64, 777}) {
    for (int64_t n : {0, 1, 5, 63, 64, 65, 200}) {
      std::vector<double> row(n);
      DropoutMaskRow<double>(9, 8, first, n, 0.3, row.data());
      ExpectSameBits(row, {mask.begin() + first, mask.begin() + first + n});
    }
  }
  float scale[3] = {1, 1, 1};
  DropoutMaskRow<float>(9, 8, 0, 3, 1, scale);
  for (float s : scale) EXPECT_EQ(s, 0);
}

TEST(DropoutTest, BlocksCountBeyond32Bits) {
  const int64_t first = (int64_t{4} << 32) - 30;
  double row[60];
  DropoutMaskRow<double>(9, 8, first, 60, 0.5, row);
  for (int64_t i = 0; i < 60; ++i) {
    const auto block = Philox::Block(9, (first + i) / 4, 8);
    EXPECT_EQ(row[i], block[(first + i) % 4] >> 31 ? 2 : 0) << i;
  }
}

}  // namespace
}  // namespace wengert::kernels
