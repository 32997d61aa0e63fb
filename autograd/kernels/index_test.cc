#include "autograd/kernels/index.h"

#include <cstdint>
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
