#include "autograd/kernels/copy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

using Shape = std::vector<int64_t>;

template <class T>
std::vector<T> Iota(int64_t n) {
  std::vector<T> x(n);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<T>(i);
  return x;
}

// y of Permute, by indices.
template <class T>
std::vector<T> PermuteByIndex(Dims dims, const std::vector<int>& perm,
                              const std::vector<T>& x) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  std::vector<T> y(x.size());
  for (size_t flat = 0; flat < x.size(); ++flat) {
    int64_t rest = flat, from = 0;
    for (size_t i = perm.size(); i-- > 0; rest /= dims[perm[i]]) {
      from += rest % dims[perm[i]] * strides[perm[i]];
    }
    y[flat] = x[from];
  }
  return y;
}

template <class T>
void CheckPermute(const Shape& dims) {
  const auto x = Iota<T>(NumElements(dims));
  std::vector<int> perm(dims.size());
  std::iota(perm.begin(), perm.end(), 0);
  do {
    std::vector<T> y(x.size(), T{-1});
    Permute<T>(dims, perm, x.data(), y.data());
    ASSERT_EQ(y, PermuteByIndex(dims, perm, x)) << testing::PrintToString(perm);
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(PermuteTest, AgreesWithIndexing) {
  for (const Shape& dims : {Shape{},
                            {1},
                            {6},
                            {0},
                            {3, 0, 2},
                            {1, 1},
                            {2, 3},
                            {1, 5},
                            {33, 65},
                            {2, 3, 4},
                            {3, 1, 5},
                            {4, 37, 35},
                            {2, 3, 4, 5},
                            {5, 1, 2, 1, 3},
                            {1, 40, 1, 41},
                            {2, 3, 2, 3, 2, 3},
                            {3, 70, 2, 33},
                            {40, 300},
                            {300, 3},
                            {3, 200}}) {
    SCOPED_TRACE(testing::PrintToString(dims));
    CheckPermute<float>(dims);
    CheckPermute<double>(dims);
    CheckPermute<int32_t>(dims);
    CheckPermute<int64_t>(dims);
  }
}

TEST(PermuteTest, Bools) {
  const bool x[] = {true, false, false, true, true, false};
  const Shape dims = {2, 3};
  const int perm[] = {1, 0};
  bool y[6];
  Permute<bool>(dims, perm, x, y);
  const bool want[] = {true, true, false, true, false, false};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(y[i], want[i]) << i;
}

TEST(PermuteTest, BitsDoNotDependOnThreads) {
  const Shape dims = {4, 150, 5, 40};
  const auto x = Iota<float>(NumElements(dims));
  for (const std::vector<int>& perm :
       {std::vector<int>{0, 2, 1, 3}, {0, 2, 3, 1}, {3, 2, 1, 0}}) {
    const auto want = PermuteByIndex(dims, perm, x);
    ExpectSameBitsForAnyThreads([&] {
      std::vector<float> y(x.size());
      Permute<float>(dims, perm, x.data(), y.data());
      EXPECT_EQ(y, want);
      return y;
    });
  }
}

TEST(CopyBlocksTest, CopiesBlocks) {
  struct Case {
    int64_t outer, n, x_stride, y_stride;
  };
  for (const auto& [outer, n, x_stride, y_stride] :
       {Case{0, 3, 3, 3},
        {3, 0, 2, 2},
        {1, 5, 0, 0},
        {4, 3, 3, 3},
        {4, 3, 5, 3},
        {4, 3, 3, 7},
        {4, 1, 5, 1},
        {4, 1, 1, 3},
        {5, 3, 0, 4},
        {700, 37, 40, 50},
        {1, 50000, 50000, 50001}}) {
    const auto x = RandomVector<float>(outer * x_stride + n, 1);
    std::vector<float> y(outer * y_stride + n, 7), want = y;
    for (int64_t o = 0; o < outer; ++o) {
      std::copy_n(&x[o * x_stride], n, &want[o * y_stride]);
    }
    CopyBlocks(outer, n, x.data(), x_stride, y.data(), y_stride);
    ExpectSameBits(y, want);  // what lies between is left alone
  }
}

TEST(CopyBlocksTest, BitsDoNotDependOnThreads) {
  const auto x = RandomVector<double>(1000 * 60, 2);
  ExpectSameBitsForAnyThreads([&] {
    std::vector<double> y(1000 * 50, 1);
    CopyBlocks(1000, 50, x.data() + 7, 60, y.data(), 50);
    return y;
  });
}

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
    std::vector<T> dtable(n_rows * width, 1);
    std::vector<double> want(n_rows * width, 1), magnitude = want;
    for (int64_t i = 0; i < n_ids * width; ++i) {
      if (ids[i / width] == skip) continue;
      want[ids[i / width] * width + i % width] += dy[i];
      magnitude[ids[i / width] * width + i % width] += std::fabs(dy[i]);
    }
    ScatterAddRows(n_ids, width, n_rows, ids.data(), skip, dy.data(),
                   dtable.data());
    for (int64_t i = 0; i < n_rows * width; ++i) {
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
  ScatterAddRows(3, 1, 1, ids, -1, dy, &dtable);
  EXPECT_EQ(dtable, 7);
}

TEST(RowsTest, SkippedIdsAddNothing) {
  const int32_t ids[] = {0, 0, 2};
  const float dy[] = {1, 1, 1};
  float dtable[3] = {};
  ScatterAddRows(3, 1, 3, ids, 0, dy, dtable);
  EXPECT_EQ(dtable[0], 0);
  EXPECT_EQ(dtable[1], 0);
  EXPECT_EQ(dtable[2], 1);
  // So many that they are sorted.
  std::vector<int32_t> many(300);
  for (int i = 0; i < 300; ++i) many[i] = i % 3;
  const std::vector<float> ones(300, 1);
  std::vector<float> sums(3, 0);
  ScatterAddRows(300, 1, 3, many.data(), 1, ones.data(), sums.data());
  EXPECT_EQ(sums, (std::vector<float>{100, 0, 100}));
}

TEST(RowsTest, ManyRowsIntoOneKeepFloatAccuracy) {
  constexpr int64_t kIds = 1'000'000;
  const std::vector<int64_t> ids(kIds, 0);
  const std::vector<float> dy(kIds, 0.1f);
  float dtable = 0;
  ScatterAddRows(kIds, 1, 1, ids.data(), -1, dy.data(), &dtable);
  EXPECT_NEAR(dtable, kIds * double{0.1f}, 0.1);
}

TEST(RowsTest, BitsDoNotDependOnThreads) {
  constexpr int64_t kIds = 3000, kWidth = 130, kRows = 40;
  std::vector<int32_t> ids(kIds);
  for (int64_t i = 0; i < kIds; ++i) ids[i] = i * i % kRows;
  const auto dy = RandomVector<float>(kIds * kWidth, 5);
  ExpectSameBitsForAnyThreads([&] {
    std::vector<float> dtable(kRows * kWidth, 1);
    ScatterAddRows(kIds, kWidth, kRows, ids.data(), 3, dy.data(),
                   dtable.data());
    return dtable;
  });
  ExpectSameBitsForAnyThreads([&] {
    std::vector<float> y(kIds * kWidth);
    GatherRows(kIds, kWidth, ids.data(), dy.data(), y.data());
    return y;
  });
}

// y[i, j] = x[rows - 1 - i, columns - 1 - j], and into every other place.
TEST(CopyStridedTest, AnyStrides) {
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{1, 1}, {2, 3}, {3, 50000}, {30000, 3}}) {
    const auto x = Iota<float>(rows * columns);
    std::vector<float> y(x.size(), -1), apart(2 * x.size(), -1);
    const float* last = x.data() + x.size() - 1;
    CopyStrided({rows, columns}, last, {-columns, -1}, y.data(), {columns, 1});
    CopyStrided({rows, columns}, last, {-columns, -1}, apart.data(),
                {2 * columns, 2});
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i], x[x.size() - 1 - i]);
      ASSERT_EQ(apart[2 * i], y[i]);
      ASSERT_EQ(apart[2 * i + 1], -1);
    }
  }
}

// y[i, j] = x[j, i] or x[i] for j < n, with n rows of y side by side or apart.
TEST(CopyStridedTest, NeighboursBecomeRows) {
  for (int64_t rows : {1, 2, 31, 20001}) {
    for (int64_t n : {1, 2, 3, 4, 5, 8, 32, 33, 70}) {
      const auto x = Iota<float>(rows * n);
      for (int64_t x_stride : {rows, int64_t{0}}) {
        for (int64_t y_stride : {n, n + 1}) {
          std::vector<float> y(rows * y_stride, -1);
          CopyStrided({rows, n}, x.data(), {1, x_stride}, y.data(),
                      {y_stride, 1});
          for (int64_t i = 0; i < rows * y_stride; ++i) {
            const int64_t r = i / y_stride, j = i % y_stride;
            ASSERT_EQ(y[i], j < n ? x[r + j * x_stride] : -1);
          }
        }
      }
    }
  }
}

TEST(CopyStridedTest, RowsOverlap) {
  const auto x = Iota<double>(1000);
  for (int64_t n : {1, 2, 4, 5, 8, 16, 17}) {
    constexpr int64_t kRows = 200;
    std::vector<double> y(kRows * n, -1);
    CopyStrided({kRows, n}, x.data(), {3, 1}, y.data(), {n, 1});
    for (int64_t i = 0; i < kRows * n; ++i) {
      ASSERT_EQ(y[i], x[i / n * 3 + i % n]) << n;
    }
  }
}

TEST(AddBlocksTest, AddsToPartOfEachRow) {
  for (const auto& [outer, n] :
       {std::pair<int64_t, int64_t>{2, 3}, {3, 0}, {40000, 2}, {2, 30001}}) {
    const auto x = Iota<double>(outer * n);
    std::vector<double> y(outer * (n + 2), 1);
    AddBlocks(outer, n, x.data(), n, y.data() + 1, n + 2);
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = -1; i <= n; ++i) {
        const double added = i < 0 || i == n ? 0 : x[o * n + i];
        ASSERT_EQ(y[o * (n + 2) + i + 1], 1 + added);
      }
    }
  }
}

}  // namespace
}  // namespace wengert::kernels
