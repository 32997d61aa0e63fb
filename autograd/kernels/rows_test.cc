#include "autograd/kernels/rows.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "autograd/random.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

template <class T, class I>
void CheckGatherAndScatter(int64_t n_ids, int64_t width, int64_t n_rows) {
  std::vector<I> ids(n_ids);
  for (int64_t i = 0; i < n_ids; ++i) {  // small ids are frequent
    ids[i] = static_cast<I>(n_rows * Uniform01(1, 0, i) * Uniform01(2, 0, i));
  }
  const auto table = RandomVector<T>(n_rows * width, 3);
  std::vector<T> y(n_ids * width);
  GatherRows(n_ids, width, ids.data(), table.data(), y.data());
  for (int64_t i = 0; i < n_ids * width; ++i) {
    ASSERT_EQ(y[i], table[ids[i / width] * width + i % width]);
  }
  const auto dy = RandomVector<T>(n_ids * width, 4);
  for (int64_t skip : {int64_t{-1}, int64_t{0}, n_rows - 1, n_rows + 5}) {
    std::vector<T> dtable(n_rows * width, 1), alone(n_rows * width, -1);
    std::vector<double> want(n_rows * width, 1), magnitude = want;
    for (int64_t i = 0; i < n_ids * width; ++i) {
      if (ids[i / width] == skip) continue;
      want[ids[i / width] * width + i % width] += dy[i];
      magnitude[ids[i / width] * width + i % width] += std::fabs(dy[i]);
    }
    ScatterAddRows(n_ids, width, n_rows, ids.data(), skip, dy.data(),
                   dtable.data(), dtable.data());
    ScatterAddRows<T, I>(n_ids, width, n_rows, ids.data(), skip, dy.data(),
                         nullptr, alone.data());
    const std::vector<T> ones(n_rows * width, 1);
    std::vector<T> beside(n_rows * width, -1);
    ScatterAddRows(n_ids, width, n_rows, ids.data(), skip, dy.data(),
                   ones.data(), beside.data());
    ExpectSameBits(beside, dtable);
    for (int64_t i = 0; i < n_rows * width; ++i) {
      ASSERT_NEAR(alone[i], want[i] - 1,
                  8 * std::numeric_limits<T>::epsilon() * magnitude[i]);
      ASSERT_NEAR(dtable[i], want[i],
                  8 * std::numeric_limits<T>::epsilon() * magnitude[i]);
    }
  }
}

TEST(RowsTest, GatherAndScatterAgreeWithLoops) {
  for (auto [n_ids, width, n_rows] : {std::array<int64_t, 3>{0, 3, 4},
                                      {3, 0, 4},
                                      {1, 1, 1},
                                      {27, 12, 9},
                                      {100, 65, 500},
                                      {200, 1100, 250},
                                      {5000, 70, 3}}) {
    CheckGatherAndScatter<float, int32_t>(n_ids, width, n_rows);
    CheckGatherAndScatter<float, int64_t>(n_ids, width, n_rows);
    CheckGatherAndScatter<double, int32_t>(n_ids, width, n_rows);
    CheckGatherAndScatter<double, int64_t>(n_ids, width, n_rows);
  }
}

TEST(RowsTest, RepeatedIdsAdd) {
  const int64_t ids[] = {0, 0, 0};
  const float dy[] = {1, 2, 4};
  float dtable = 0;
  ScatterAddRows(3, 1, 1, ids, -1, dy, &dtable, &dtable);
  EXPECT_EQ(dtable, 7);
}

TEST(RowsTest, SkippedIdsAddNothing) {
  const int32_t ids[] = {0, 0, 2};
  const float dy[] = {1, 1, 1};
  float dtable[3] = {};
  ScatterAddRows(3, 1, 3, ids, 0, dy, dtable, dtable);
  EXPECT_EQ(dtable[0], 0);
  EXPECT_EQ(dtable[1], 0);
  EXPECT_EQ(dtable[2], 1);
  // So many that they are sorted.
  std::vector<int32_t> many(300);
  for (int i = 0; i < 300; ++i) many[i] = i % 3;
  const std::vector<float> ones(300, 1);
  std::vector<float> sums(3, 0);
  ScatterAddRows(300, 1, 3, many.data(), 1, ones.data(), sums.data(),
                 sums.data());
  EXPECT_EQ(sums, (std::vector<float>{100, 0, 100}));
}

TEST(RowsTest, ManyRowsIntoOneKeepFloatAccuracy) {
  constexpr int64_t kIds = 1'000'000;
  const std::vector<int64_t> ids(kIds, 0);
  const std::vector<float> dy(kIds, 0.1f);
  float dtable = 0;
  ScatterAddRows(kIds, 1, 1, ids.data(), -1, dy.data(), &dtable, &dtable);
  EXPECT_NEAR(dtable, kIds * double{0.1f}, 0.1);
}

TEST(RowsTest, BitsDoNotDependOnThreads) {
  constexpr int64_t kIds = 3000, kWidth = 130, kRows = 40;
  std::vector<int32_t> ids(kIds);
  for (int64_t i = 0; i < kIds; ++i) ids[i] = i * i % kRows;
  const auto dy = RandomVector<float>(kIds * kWidth, 5);
  ExpectSameBitsForAnyThreads([&] {
    std::vector<float> dtable(kRows * kWidth, 1);
    ScatterAddRows(kIds, kWidth, kRows, ids.data(), 3, dy.data(), dtable.data(),
                   dtable.data());
    return dtable;
  });
  ExpectSameBitsForAnyThreads([&] {
    std::vector<float> y(kIds * kWidth);
    GatherRows(kIds, kWidth, ids.data(), dy.data(), y.data());
    return y;
  });
}

}  // namespace
}  // namespace wengert::kernels
