#include "autograd/kernels/reduce.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
using Shape = std::vector<int64_t>;

// Which dimensions to keep, from the bits of a number: std::vector<bool> is no
// array.
struct Keep {
  Keep(size_t rank, unsigned bits) : flags(new bool[rank]), rank(rank) {
    for (size_t i = 0; i < rank; ++i) flags[i] = bits >> i & 1;
  }
  operator absl::Span<const bool>() const {
    return absl::Span<const bool>(flags.get(), rank);
  }
  std::unique_ptr<bool[]> flags;
  size_t rank;
};

// For each element of the result, the flat indices that it is made of.
std::vector<std::vector<int64_t>> Terms(const Shape& dims, const Keep& keep) {
  int64_t size = 1;
  for (size_t i = 0; i < dims.size(); ++i) size *= keep.flags[i] ? dims[i] : 1;
  std::vector<std::vector<int64_t>> terms(size);
  for (int64_t flat = 0; flat < NumElements(dims); ++flat) {
    int64_t out = 0, out_stride = 1, rest = flat;
    for (size_t i = dims.size(); i-- > 0; rest /= dims[i]) {
      if (!keep.flags[i]) continue;
      out += rest % dims[i] * out_stride;
      out_stride *= dims[i];
    }
    terms[out].push_back(flat);
  }
  return terms;
}

const Shape kShapes[] = {
    {},           {1},           {5},
    {33},         {0},           {3, 0},
    {0, 3},       {3, 0, 2},     {27, 12},
    {1, 7, 1},    {64, 65},      {300, 3},
    {3, 300},     {2, 3, 4},     {5, 1, 6},
    {7, 300, 67}, {2, 3, 4, 5},  {3, 2, 70, 2, 3},
    {2, 17000},   {17000, 2},    {2, 2, 2, 2, 2, 2, 2},
    {70, 8},      {16, 5, 1030},
};

// check(dims, keep, terms) for all shapes and all sets of dimensions.
template <class Check>
void ForAllCases(Check check) {
  for (const Shape& dims : kShapes) {
    for (unsigned bits = 0; bits < 1u << dims.size(); ++bits) {
      const Keep keep(dims.size(), bits);
      SCOPED_TRACE(testing::Message()
                   << "case " << &dims - kShapes << ", keep bits " << bits);
      check(dims, keep, Terms(dims, keep));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

template <class T>
class ReduceTest : public testing::Test {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(ReduceTest, Floats);

TYPED_TEST(ReduceTest, SumOverAnyDimensions) {
  using T = TypeParam;
  ForAllCases([](const Shape& dims, const Keep& keep, const auto& terms) {
    const auto x = RandomVector<T>(NumElements(dims), 1);
    std::vector<T> y(terms.size(), T(NAN)), added(terms.size(), 3);
    Sum<T>(dims, keep, x.data(), false, y.data());
    Sum<T>(dims, keep, x.data(), true, added.data());
    for (size_t i = 0; i < y.size(); ++i) {
      double sum = 0, magnitude = 0;
      for (int64_t flat : terms[i]) {
        sum += x[flat];
        magnitude += std::fabs(x[flat]);
      }
      const double epsilon = std::numeric_limits<T>::epsilon();
      ASSERT_NEAR(y[i], sum, 8 * epsilon * magnitude) << i;
      ASSERT_EQ(added[i], 3 + y[i]) << i;
    }
  });
}

TYPED_TEST(ReduceTest, MaxOverAnyDimensions) {
  using T = TypeParam;
  ForAllCases([](const Shape& dims, const Keep& keep, const auto& terms) {
    if (NumElements(dims) == 0) return;
    std::vector<T> x(NumElements(dims));
    for (size_t i = 0; i < x.size(); ++i) {  // many ties
      x[i] = static_cast<T>(RandomBits(1, 0, i) % 50) - 60;
    }
    std::vector<T> y(terms.size()), again(terms.size());
    std::vector<int64_t> arg(terms.size());
    Max<T>(dims, keep, x.data(), y.data(), arg.data());
    Max<T>(dims, keep, x.data(), again.data(), nullptr);
    ExpectSameBits(again, y);
    for (size_t i = 0; i < y.size(); ++i) {
      int64_t first = terms[i][0];
      for (int64_t flat : terms[i]) {
        if (x[flat] > x[first]) first = flat;
      }
      ASSERT_EQ(arg[i], first) << i;
      ASSERT_EQ(y[i], x[first]) << i;
    }
  });
}

TYPED_TEST(ReduceTest, MinIsMaxOfTheNegative) {
  using T = TypeParam;
  ForAllCases([](const Shape& dims, const Keep& keep, const auto& terms) {
    if (NumElements(dims) == 0) return;
    std::vector<T> x(NumElements(dims)), negative(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<T>(RandomBits(3, 0, i) % 50) - 20;
      negative[i] = -x[i];
    }
    std::vector<T> y(terms.size()), largest(terms.size());
    std::vector<int64_t> arg(terms.size()), wanted(terms.size());
    Min<T>(dims, keep, x.data(), y.data(), arg.data());
    Max<T>(dims, keep, negative.data(), largest.data(), wanted.data());
    EXPECT_EQ(arg, wanted);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], -largest[i]) << i;
  });
}

TYPED_TEST(ReduceTest, ProdOverAnyDimensions) {
  using T = TypeParam;
  ForAllCases([](const Shape& dims, const Keep& keep, const auto& terms) {
    auto x = RandomVector<T>(NumElements(dims), 4, 0.99, 1.01);
    for (size_t i = 0; i < x.size(); i += 3) x[i] = -x[i];
    std::vector<T> y(terms.size(), T(NAN));
    Prod<T>(dims, keep, x.data(), y.data());
    for (size_t i = 0; i < y.size(); ++i) {
      double product = 1;
      for (int64_t flat : terms[i]) product *= x[flat];
      const double epsilon = std::numeric_limits<T>::epsilon();
      const double n = 4 + static_cast<double>(terms[i].size());
      ASSERT_NEAR(y[i], product, n * epsilon * std::fabs(product)) << i;
    }
  });
}

TYPED_TEST(ReduceTest, BitsDoNotDependOnThreads) {
  using T = TypeParam;
  for (const Shape& dims : {Shape{1000, 130}, {131072}, {70, 40, 50}}) {
    const auto x = RandomVector<T>(NumElements(dims), 3);
    for (unsigned bits = 0; bits < (1u << dims.size()) - 1; ++bits) {
      const Keep keep(dims.size(), bits);
      const size_t size = Terms(dims, keep).size();
      std::vector<T> y(size);
      std::vector<int64_t> arg(size);
      ExpectSameBitsForAnyThreads([&] {
        Sum<T>(dims, keep, x.data(), false, y.data());
        return y;
      });
      ExpectSameBitsForAnyThreads([&] {
        Max<T>(dims, keep, x.data(), y.data(), arg.data());
        return arg;
      });
    }
  }
}

TYPED_TEST(ReduceTest, EqualRowsAndColumnsGiveEqualBitsAnywhere) {
  using T = TypeParam;
  for (int64_t n : {5, 31, 32, 33, 100, 1023, 1025, 20000}) {
    const auto row = RandomVector<T>(n, 4);
    constexpr int64_t kRows = 7;
    std::vector<T> x(kRows * n + 1), transposed(kRows * n + 1);
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t i = 0; i < n; ++i) {
        x[1 + r * n + i] = row[i];  // off by one element: other alignments
        transposed[1 + i * kRows + r] = row[i];
      }
    }
    std::vector<T> sums(kRows), column_sums(kRows), alone(1);
    const Keep rows(2, 0b01), columns(2, 0b10), none(1, 0);
    Sum<T>(Shape{kRows, n}, rows, &x[1], false, sums.data());
    Sum<T>(Shape{n, kRows}, columns, &transposed[1], false, column_sums.data());
    for (const auto& y : {sums, column_sums}) {
      ExpectSameBits(y, std::vector<T>(kRows, y[0]));
    }
    Sum<T>(Shape{n}, none, row.data(), false, alone.data());
    ExpectSameBits(alone, {sums[0]});
  }
}

TEST(SumTest, LongFloatSumsKeepFloatAccuracy) {
  constexpr int64_t kN = 10'000'019;
  // 0.1f rounds the same way in every addition of a running sum.
  const std::vector<float> tenths(kN, 0.1f);
  const double want = kN * double{0.1f};
  float y;
  Sum<float>(Shape{kN}, Keep(1, 0), tenths.data(), false, &y);
  EXPECT_NEAR(y, want, 1e-6 * want);
  const auto x = RandomVector<float>(kN, 5, 0, 1);
  double sum = 0;
  for (float v : x) sum += v;
  Sum<float>(Shape{kN}, Keep(1, 0), x.data(), false, &y);
  EXPECT_NEAR(y, sum, 2e-7 * sum);
  // As columns.
  constexpr int64_t kRows = kN / 5;
  float columns[5];
  Sum<float>(Shape{kRows, 5}, Keep(2, 0b10), tenths.data(), false, columns);
  for (float c : columns) EXPECT_NEAR(c, want / 5, 1e-6 * want / 5);
}

TYPED_TEST(ReduceTest, TheFirstNanIsTheMaximum) {
  using T = TypeParam;
  for (int64_t n : {3, 32, 33, 100, 20000}) {
    for (int64_t inner : {1, 3}) {
      std::vector<T> x = RandomVector<T>(n * inner, 6);
      std::vector<T> y(inner);
      std::vector<int64_t> arg(inner);
      const Keep keep(2, 0b10);
      for (int64_t at : {n - 1, n / 2, int64_t{0}}) {
        x[at * inner] = T(NAN);  // later NaNs stay behind
        Max<T>(Shape{n, inner}, keep, x.data(), y.data(), arg.data());
        EXPECT_TRUE(std::isnan(y[0]));
        EXPECT_EQ(arg[0], at * inner);
        EXPECT_EQ(std::isnan(y.back()), inner == 1);
      }
    }
  }
}

TYPED_TEST(ReduceTest, MaxOfZerosIsTheFirst) {
  using T = TypeParam;
  for (int64_t n : {2, 40}) {
    std::vector<T> x(n, 0);
    x[0] = -T{0};
    T y;
    int64_t arg;
    Max<T>(Shape{n}, Keep(1, 0), x.data(), &y, &arg);
    EXPECT_TRUE(std::signbit(y));
    EXPECT_EQ(arg, 0);
  }
  const T infinite[] = {T(-kInf), T(-kInf)};
  T y;
  int64_t arg;
  Max<T>(Shape{2}, Keep(1, 0), infinite, &y, &arg);
  EXPECT_EQ(y, -kInf);
  EXPECT_EQ(arg, 0);
}

// Columns in strips of any width: each as if it were alone.
TYPED_TEST(ReduceTest, EqualColumnsGiveEqualBitsInAnyStrip) {
  using T = TypeParam;
  for (int64_t n : {1, 3, 21, 300}) {
    const auto column = RandomVector<T>(n, 4, 0.9, 1.1);
    std::vector<T> first;
    for (int64_t outer : {1, 16}) {
      for (int64_t inner : {2, 63, 64, 65, 130, 1023, 1100}) {
        std::vector<T> x(outer * n * inner);
        for (size_t i = 0; i < x.size(); ++i) x[i] = column[i / inner % n];
        const Shape dims = {outer, n, inner};
        const Keep keep(3, 0b101);
        std::vector<T> y(outer * inner), results;
        std::vector<int64_t> arg(outer * inner);
        const auto check = [&] {
          ExpectSameBits(y, std::vector<T>(y.size(), y[0]));
          results.push_back(y[0]);
        };
        Sum<T>(dims, keep, x.data(), false, y.data());
        check();
        Prod<T>(dims, keep, x.data(), y.data());
        check();
        Min<T>(dims, keep, x.data(), y.data(), arg.data());
        check();
        for (int64_t i = 0; i < outer * inner; ++i) {
          ASSERT_EQ(arg[i] % inner, i % inner);
          ASSERT_EQ(x[arg[i]], y[0]);
        }
        if (first.empty()) first = results;
        ExpectSameBits(results, first);
      }
    }
  }
}

// Whole numbers, whose sums are exact: many sums of few terms.
TEST(SumTest, FewTerms) {
  for (int64_t n = 1; n <= 9; ++n) {
    for (int64_t inner : {1, 3, 700}) {
      const int64_t outer = 40000 / inner;
      std::vector<float> x(outer * n * inner), wanted(outer * inner, 5);
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<float>(i * 7 % 101);
        wanted[i / (n * inner) * inner + i % inner] += x[i];
      }
      ExpectSameBitsForAnyThreads([&] {
        std::vector<float> y(wanted.size(), 5), alone(wanted.size(), -1);
        Sum<float>({outer, n, inner}, {true, false, true}, x.data(), true,
                   y.data());
        Sum<float>({outer, n, inner}, {true, false, true}, x.data(), false,
                   alone.data());
        EXPECT_EQ(y, wanted) << n << ", " << inner;
        for (float& v : alone) v += 5;
        EXPECT_EQ(alone, wanted) << n << ", " << inner;
        return y;
      });
    }
  }
}

}  // namespace
}  // namespace wengert::kernels
