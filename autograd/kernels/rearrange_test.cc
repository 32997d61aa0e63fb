#include "autograd/kernels/rearrange.h"

#include <array>
#include <cstdint>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

using Shape = std::vector<int64_t>;

// y of Pad, by indices.
std::vector<float> PadByIndex(const Shape& dims, const Shape& before,
                              const Shape& after, float value,
                              const std::vector<float>& x) {
  Shape size;
  for (size_t d = 0; d < dims.size(); ++d) {
    size.push_back(before[d] + dims[d] + after[d]);
  }
  std::vector<float> y(NumElements(size), value);
  for (size_t flat = 0; flat < y.size(); ++flat) {
    int64_t rest = flat, from = 0, stride = 1;
    bool inside = true;
    for (size_t d = dims.size(); d-- > 0;) {
      const int64_t i = rest % size[d] - before[d];
      rest /= size[d];
      inside = inside && i >= 0 && i < dims[d];
      from += i * stride;
      stride *= dims[d];
    }
    if (inside) y[flat] = x[from];
  }
  return y;
}

// A result that is larger than caches is written past them.
TEST(PadTest, LargeResults) {
  constexpr int64_t kRows = 3001, kColumns = 3003, kWide = kColumns + 5;
  const auto x = RandomVector<float>(kRows * kColumns, 3);
  ExpectSameBitsForAnyThreads([&] {
    std::vector<float> y((kRows + 3) * kWide, -9), want(y.size(), 7);
    for (int64_t r = 0; r < kRows; ++r) {
      std::copy_n(&x[r * kColumns], kColumns, &want[(r + 1) * kWide + 3]);
    }
    Pad<float>({kRows, kColumns}, {1, 3}, {2, 2}, 7, x.data(), y.data());
    EXPECT_TRUE(y == want);
    return std::vector<float>(y.end() - 100, y.end());
  });
}

TEST(PadTest, AgreesWithIndexing) {
  struct Case {
    Shape dims, before, after;
  };
  // The last ones are several chunks long, whose ends fall in borders too.
  for (const Case& c :
       std::vector<Case>{{{}, {}, {}},
                         {{3}, {0}, {0}},
                         {{3}, {2}, {1}},
                         {{3}, {-1}, {4}},
                         {{3}, {-3}, {2}},
                         {{0}, {2}, {1}},
                         {{2, 0}, {1, 0}, {0, 3}},
                         {{2, 3}, {1, 0}, {1, 0}},
                         {{2, 3}, {1, -1}, {-1, 2}},
                         {{2, 3, 4}, {0, 2, 0}, {1, 0, 0}},
                         {{2, 3, 4}, {1, 1, 1}, {0, -2, 1}},
                         {{40000}, {50000}, {30000}},
                         {{3, 20011}, {1, 7000}, {2, -11}},
                         {{90, 41, 17}, {3, 20, 0}, {0, 5, 0}},
                         {{90, 41, 17}, {-3, 2, 9}, {4, 0, 1}}}) {
    const auto x = RandomVector<float>(NumElements(c.dims), 1);
    const auto wanted = PadByIndex(c.dims, c.before, c.after, 9, x);
    std::vector<float> y(wanted.size(), -1);
    Pad<float>(c.dims, c.before, c.after, 9, x.data(), y.data());
    EXPECT_EQ(y, wanted) << testing::PrintToString(c.dims);
  }
}

TEST(TriangleTest, AgreesWithIndexing) {
  for (const auto& [batch, m, n] : std::vector<std::array<int64_t, 3>>{
           {1, 3, 5}, {2, 5, 3}, {3, 1, 1}, {200, 23, 19}, {0, 2, 2}}) {
    const auto x = RandomVector<float>(batch * m * n, 2);
    for (int64_t k : {-30, -2, 0, 1, 4, 30}) {
      for (bool lower : {true, false}) {
        std::vector<float> y(x.size(), -1), wanted(x);
        Triangle(lower, k, batch, m, n, x.data(), y.data());
        for (size_t at = 0; at < x.size(); ++at) {
          const int64_t i = at / n % m, j = at % n;
          if (lower ? j > i + k : j < i + k) wanted[at] = 0;
        }
        EXPECT_EQ(y, wanted) << lower << k;
      }
    }
  }
}

template <class T>
void CheckSteps() {
  for (int64_t n : {0, 1, 17, 50001}) {
    std::vector<T> y(n, T{9});
    Steps(n, -5, 7.25, 3.0, y.data());
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(y[i], static_cast<T>(3 * static_cast<double>(i - 5) + 7.25));
    }
  }
}

TEST(StepsTest, AgreesWithFormula) {
  CheckSteps<float>();
  CheckSteps<double>();
  CheckSteps<int32_t>();
  CheckSteps<int64_t>();
}

template <class T>
void CheckFold(const Windows& s) {
  SCOPED_TRACE(testing::Message() << s.n << " x " << s.inner << ", windows of "
                                  << s.size << ", " << s.step << " apart");
  const int64_t count = s.count();
  const auto y = RandomVector<T>(s.outer * count * s.inner * s.size, 3);
  std::vector<T> wanted(s.outer * s.n * s.inner, 0);
  for (int64_t o = 0; o < s.outer; ++o) {
    for (int64_t w = 0; w < count; ++w) {
      for (int64_t i = 0; i < s.inner; ++i) {
        for (int64_t j = 0; j < s.size; ++j) {
          wanted[(o * s.n + w * s.step + j) * s.inner + i] +=
              y[((o * count + w) * s.inner + i) * s.size + j];
        }
      }
    }
  }
  std::vector<T> x(wanted.size(), -1);
  Fold(s, y.data(), x.data());
  EXPECT_EQ(x, wanted);
}

TEST(FoldTest, AgreesWithIndexing) {
  for (const Windows& s : std::vector<Windows>{{1, 5, 1, 3, 1},
                                               {2, 7, 1, 2, 3},
                                               {2, 7, 3, 4, 2},
                                               {1, 4, 2, 4, 9},
                                               {3, 6, 0, 2, 1},
                                               {0, 6, 2, 2, 1},
                                               {1, 50000, 1, 16, 4},
                                               {3, 30011, 1, 5, 7},
                                               {2, 9001, 3, 200, 100},
                                               {4000, 11, 1, 3, 2},
                                               {3, 9001, 1, 21, 8},
                                               {2, 5000, 1, 48, 12},
                                               {2, 300, 40, 4, 4},
                                               {2, 101, 37, 2, 2},
                                               {1, 99, 19, 3, 3},
                                               {1, 99, 150, 8, 8},
                                               {2, 100, 70, 40, 3},
                                               {70, 64, 1, 16, 16}}) {
    CheckFold<float>(s);
    CheckFold<double>(s);
  }
}

TEST(FoldTest, BitsDoNotDependOnThreads) {
  for (const Windows& s : std::vector<Windows>{
           {1, 50000, 1, 16, 4}, {3, 30011, 1, 5, 7}, {2, 9001, 3, 200, 100}}) {
    const auto y =
        RandomVector<float>(s.outer * s.count() * s.inner * s.size, 3);
    ExpectSameBitsForAnyThreads([&] {
      std::vector<float> x(s.outer * s.n * s.inner, -1);
      Fold(s, y.data(), x.data());
      return x;
    });
  }
}

}  // namespace
}  // namespace wengert::kernels
