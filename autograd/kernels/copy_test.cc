#include "autograd/kernels/copy.h"

#include <algorithm>
#include <cstdint>
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

// Results that are larger than caches are written past them.
TEST(PermuteTest, LargeResults) {
  for (const Shape& dims : {Shape{2064, 4099}, {2061, 4099}, {3, 1040, 2700}}) {
    const auto x = Iota<float>(NumElements(dims));
    std::vector<int> perm(dims.size());
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm.back(), perm[perm.size() - 2]);
    const auto want = PermuteByIndex(dims, perm, x);
    ExpectSameBitsForAnyThreads([&] {
      std::vector<float> y(x.size() + 16, -1);
      // At the start of a line, and not.
      const auto past = reinterpret_cast<uintptr_t>(y.data()) % 64 / 4;
      for (int64_t first : {(16 - past) % 16, (16 - past) % 16 + 1}) {
        if (first + x.size() > y.size()) continue;
        Permute<float>(dims, perm, x.data(), y.data() + first);
        EXPECT_TRUE(std::equal(want.begin(), want.end(), y.begin() + first));
      }
      return std::vector<float>(y.end() - 100, y.end());
    });
  }
}

TEST(CopyBlocksTest, LargeResults) {
  for (const auto& [outer, n] :
       {std::pair<int64_t, int64_t>{3000, 3001}, {1, 9000001}, {1000000, 9}}) {
    const auto x = RandomVector<float>(outer * n, 6);
    for (int64_t first : {0, 1, 5}) {
      std::vector<float> y(first + outer * (n + 2), -1), want = y;
      for (int64_t o = 0; o < outer; ++o) {
        std::copy_n(&x[o * n], n, &want[first + o * (n + 2)]);
      }
      CopyBlocks(outer, n, x.data(), n, y.data() + first, n + 2);
      EXPECT_TRUE(y == want) << outer << " " << first;
    }
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
