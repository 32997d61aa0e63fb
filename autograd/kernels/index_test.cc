#include "autograd/kernels/index.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "autograd/kernels/dot.h"
#include "autograd/kernels/kernel_testlib.h"
#include "autograd/random.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

// Long and short axes, few and many terms, one column and many, several chunks.
const std::vector<AxisSizes> kSizes = {
    {1, 1, 1, 1},     {2, 3, 5, 4},      {3, 4, 0, 2},    {0, 3, 2, 2},
    {2, 3, 4, 0},     {1, 5, 70, 1},     {2, 7, 64, 3},   {2, 7, 65, 3},
    {1, 40000, 9, 2}, {1, 900, 800, 70}, {5000, 6, 5, 1}, {300, 20, 90, 1},
    {1, 3, 90000, 1}, {50, 11, 13, 37}};

std::vector<int32_t> Ids(const AxisSizes& s, bool shared) {
  std::vector<int32_t> ids(shared ? s.m : s.outer * s.m * s.inner);
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int32_t>(UniformInt(4, 0, i, s.n));
  }
  return ids;
}

// each(flat index of x, flat index of y) in the order of y.
template <class Each>
void ForEach(const AxisSizes& s, const std::vector<int32_t>& ids, bool shared,
             Each each) {
  int64_t at = 0;
  for (int64_t o = 0; o < s.outer; ++o) {
    for (int64_t j = 0; j < s.m; ++j) {
      for (int64_t i = 0; i < s.inner; ++i, ++at) {
        each((o * s.n + ids[shared ? j : at]) * s.inner + i, at);
      }
    }
  }
}

TEST(TakeAlongTest, AgreesWithIndexing) {
  for (const AxisSizes& s : kSizes) {
    const auto x = RandomVector<float>(s.outer * s.n * s.inner, 1);
    for (bool shared : {false, true}) {
      const std::vector<int32_t> ids = Ids(s, shared);
      std::vector<float> wanted(s.outer * s.m * s.inner);
      ForEach(s, ids, shared,
              [&](int64_t from, int64_t at) { wanted[at] = x[from]; });
      std::vector<float> y(wanted.size(), -9);
      TakeAlong<float, int32_t>(s, {ids.data(), shared}, x.data(), y.data());
      EXPECT_EQ(y, wanted) << s.outer << s.n << s.m << s.inner << shared;
    }
  }
}

TEST(AddAlongTest, AgreesWithIndexing) {
  for (const AxisSizes& s : kSizes) {
    // Whole numbers: their sums are exact in any order.
    std::vector<double> x, src;
    for (int64_t i = 0; i < s.outer * s.n * s.inner; ++i) {
      x.push_back(static_cast<double>(i % 13));
    }
    for (int64_t i = 0; i < s.outer * s.m * s.inner; ++i) {
      src.push_back(static_cast<double>(i % 17));
    }
    for (bool shared : {false, true}) {
      const std::vector<int32_t> ids = Ids(s, shared);
      for (bool zeros : {false, true}) {
        std::vector<double> wanted = x;
        if (zeros) wanted.assign(x.size(), 0);
        ForEach(s, ids, shared,
                [&](int64_t to, int64_t at) { wanted[to] += src[at]; });
        std::vector<double> y(x.size(), -9);
        AddAlong<double, int32_t>(s, {ids.data(), shared},
                                  zeros ? nullptr : x.data(), src.data(),
                                  y.data());
        EXPECT_EQ(y, wanted) << s.outer << s.n << s.m << s.inner << shared;
      }
    }
  }
}

TEST(AddAlongTest, SharedIdsAddAsEachRowsOwn) {
  for (int64_t m : {60, 900}) {
    const AxisSizes s = {301, 200, m, 1};
    const std::vector<int32_t> ids = Ids(s, true);
    std::vector<int32_t> own;
    for (int64_t o = 0; o < s.outer; ++o) {
      own.insert(own.end(), ids.begin(), ids.end());
    }
    const auto x = RandomVector<float>(s.outer * s.n, 8);
    const auto src = RandomVector<float>(s.outer * m, 9);
    std::vector<float> wanted(x.size());
    AddAlong<float, int32_t>(s, {own.data(), false}, x.data(), src.data(),
                             wanted.data());
    ExpectSameBitsForAnyThreads([&] {
      std::vector<float> y(x.size(), -9);
      AddAlong<float, int32_t>(s, {ids.data(), true}, x.data(), src.data(),
                               y.data());
      EXPECT_EQ(y, wanted);
      return y;
    });
  }
}

TEST(FirstOutsideTest, FindsTheFirst) {
  for (int64_t n_ids : {1, 5, 100000}) {
    std::vector<int32_t> ids(n_ids, 6);
    std::vector<int64_t> wide(ids.begin(), ids.end());
    EXPECT_EQ(FirstOutside(n_ids, ids.data(), 7), -1);
    EXPECT_EQ(FirstOutside(n_ids, wide.data(), 7), -1);
    EXPECT_EQ(FirstOutside(n_ids, ids.data(), 6), 0);
    EXPECT_EQ(FirstOutside(n_ids, ids.data(), 0), 0);
    for (int64_t bad : {int64_t{-1}, int64_t{7}, int64_t{1} << 32}) {
      wide[n_ids - 1] = bad;
      EXPECT_EQ(FirstOutside(n_ids, wide.data(), 7), n_ids - 1);
      wide[n_ids / 2] = bad;
      EXPECT_EQ(FirstOutside(n_ids, wide.data(), 7), n_ids / 2);
      wide.assign(n_ids, 6);
    }
    ids[n_ids - 1] = -1;
    EXPECT_EQ(FirstOutside(n_ids, ids.data(), int64_t{1} << 40), n_ids - 1);
  }
  constexpr int32_t kLargest = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(FirstOutside(1, &kLargest, int64_t{1} << 40), -1);
  EXPECT_EQ(FirstOutside<int32_t>(0, nullptr, 3), -1);
}

TEST(RowDotTest, KeepsFloatAccuracy) {
  for (int64_t n : {0, 1, 7, 33, 5000, 16384, 16385, 300000}) {
    const int64_t rows = n > 5000 ? 3 : 40;
    const auto a = RandomVector<float>(rows * n, 5, 0, 1);
    const auto b = RandomVector<float>(rows * n, 6, 0, 1);
    std::vector<float> y(rows, -1);
    RowDot(rows, n, a.data(), b.data(), y.data());
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t i = r * n; i < (r + 1) * n; ++i) {
        sum += static_cast<double>(a[i]) * b[i];
      }
      EXPECT_NEAR(y[r], sum, 1e-6 * sum) << n;
    }
  }
}

TEST(RowDotTest, SameBitsForAnyThreads) {
  const auto a = RandomVector<float>(3 * 300000, 7);
  ExpectSameBitsForAnyThreads([&] {
    std::vector<float> y(3);
    RowDot(3, 300000, a.data(), a.data(), y.data());
    return y;
  });
}

}  // namespace
}  // namespace wengert::kernels
