// Sorting and top-k: order, ties, NaN, every dtype, gradients.
#include <algorithm>
#include <numeric>

#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr DType kAll[] = {DType::kFloat32, DType::kFloat64, DType::kInt32,
                          DType::kInt64, DType::kBool};

// The places of x, in the order that `descending` wants, by std::stable_sort.
std::vector<double> OrderOf(const std::vector<double>& x, bool descending) {
  std::vector<double> places(x.size());
  std::iota(places.begin(), places.end(), 0);
  const auto before = [&](double i, double j) {
    double a = x[static_cast<size_t>(i)], b = x[static_cast<size_t>(j)];
    if (descending) std::swap(a, b);
    return std::isnan(b) ? !std::isnan(a) : a < b;
  };
  std::stable_sort(places.begin(), places.end(), before);
  return places;
}

// Few values, so that many are equal, with NaN, infinities and both zeros.
std::vector<double> ManyTies(int64_t n, bool special) {
  const double kSpecial[] = {NAN, -kInf, kInf, -0.0, 0.0, -NAN};
  std::vector<double> x;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t v = UniformInt(n, 0, i, 40);
    x.push_back(special && v < 6 ? kSpecial[v] : static_cast<double>(v - 20));
  }
  return x;
}

void ExpectOrder(const Sorted& y, const std::vector<double>& x,
                 std::vector<double> places) {
  places.resize(y.indices.size());
  ASSERT_EQ(y.indices.ToVector(), places);
  const std::vector<double> values = y.values.ToVector();
  for (size_t i = 0; i < places.size(); ++i) {
    const double want = x[static_cast<size_t>(places[i])];
    ASSERT_TRUE(values[i] == want ||
                (std::isnan(values[i]) && std::isnan(want)))
        << i << ": " << values[i] << ", wanted " << want;
  }
}

TEST(SortTest, KnownValues) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({2, 3}, {3, 1, 2, 1, 5, 1}, dtype);
    const Sorted rows = Sort(x);
    EXPECT_THAT(rows.values.ToVector(), ElementsAre(1, 2, 3, 1, 1, 5));
    EXPECT_THAT(rows.indices.ToVector(), ElementsAre(1, 2, 0, 0, 2, 1));
    EXPECT_EQ(rows.indices.dtype(), DType::kInt64);
    EXPECT_EQ(rows.values.dtype(), dtype);
    const Sorted columns = Sort(x, 0, {.descending = true});
    EXPECT_THAT(columns.values.ToVector(), ElementsAre(3, 5, 2, 1, 1, 1));
    EXPECT_THAT(columns.indices.ToVector(), ElementsAre(0, 1, 0, 1, 0, 1));
    const Sorted top = TopK(x, 2);
    EXPECT_THAT(top.values.ToVector(), ElementsAre(3, 2, 5, 1));
    EXPECT_THAT(top.indices.ToVector(), ElementsAre(0, 2, 1, 0));
    EXPECT_THAT(TopK(x, 1, 0, {.largest = false}).values.ToVector(),
                ElementsAre(1, 1, 1));
    EXPECT_EQ(TopK(x, 1, 0).values.shape(), (Shape{1, 3}));
  }
}

TEST(SortTest, NanIsTheLargestAndZerosAreEqual) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({0.0, NAN, -0.0, kInf, -kInf, -NAN}, dtype);
    EXPECT_THAT(Sort(x).indices.ToVector(), ElementsAre(4, 0, 2, 3, 1, 5));
    EXPECT_THAT(Sort(x, 0, {.descending = true}).indices.ToVector(),
                ElementsAre(1, 5, 3, 0, 2, 4));
    EXPECT_THAT(TopK(x, 3).indices.ToVector(), ElementsAre(1, 5, 3));
    EXPECT_TRUE(std::signbit(Sort(x).values.ToVector()[2]));
  }
}

TEST(SortTest, AnyDTypeIsStable) {
  for (DType dtype : kAll) {
    for (int64_t n : {1, 2, 63, 511, 512, 513, 3000}) {
      const Tensor x =
          Values(ManyTies(n, IsFloat(dtype)), DType::kFloat64).To(dtype);
      const std::vector<double> values = x.ToVector();
      for (bool descending : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << Name(dtype) << " " << n << " " << descending);
        const std::vector<double> order = OrderOf(values, descending);
        ExpectOrder(Sort(x, -1, {descending}), values, order);
        for (int64_t k : {int64_t{0}, int64_t{1}, n / 20, n / 2, n - 1, n}) {
          ExpectOrder(TopK(x, k, 0, {.largest = descending}), values, order);
        }
      }
    }
  }
}

// All 64 bits count, and the sign.
TEST(SortTest, WideIntegers) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> x = {0, kMax, -1, kMax - 1, -kMax - 1, 1, 1 << 30};
  for (int64_t i = 0; i < 1000; ++i) {
    x.push_back(static_cast<int64_t>(RandomBits64(1, 0, i)));
  }
  const Tensor sorted = Sort(Tensor::From({1007}, x)).values;
  std::sort(x.begin(), x.end());
  EXPECT_TRUE(SameBits(sorted, Tensor::From({1007}, x)));
}

TEST(SortTest, AllBitsOfFloatsCount) {
  for (DType dtype : kFloats) {
    Tensor x = Spread({3000}, -1, 1).To(dtype);
    x = x * Exp(30 * x);  // of all sizes
    const std::vector<double> values = x.ToVector();
    ExpectOrder(Sort(x), values, OrderOf(values, false));
    ExpectOrder(TopK(x, 100), values, OrderOf(values, true));
  }
}

// Rows that are in order, or in the opposite one, fill the pool all the time.
TEST(TopKTest, OfOrderedRows) {
  for (int64_t n : {1000, 5000}) {
    std::vector<double> up(n);
    std::iota(up.begin(), up.end(), 0);
    std::vector<double> down(up.rbegin(), up.rend());
    for (const auto& x : {up, down, std::vector<double>(n, 1)}) {
      for (bool largest : {false, true}) {
        for (int64_t k : {1, 7, 50}) {
          ExpectOrder(TopK(Values(x, DType::kFloat32), k, 0, {largest}), x,
                      OrderOf(x, largest));
        }
      }
    }
  }
}

TEST(SortTest, AnyAxis) {
  const Tensor x = Spread({3, 700, 5}, -1, 1);
  const auto moved = [](const Tensor& x) { return Permute(x, {0, 2, 1}); };
  for (int64_t k : {3, 400, 700}) {
    const Sorted middle = TopK(x, k, 1), last = TopK(moved(x), k, 2);
    EXPECT_TRUE(SameBits(moved(middle.values), last.values)) << k;
    EXPECT_TRUE(SameBits(moved(middle.indices), last.indices)) << k;
  }
}

TEST(SortTest, Nothing) {
  const Tensor none = Tensor::Zeros({2, 0});
  EXPECT_EQ(Sort(none, 1).values.shape(), (Shape{2, 0}));
  EXPECT_EQ(Sort(none, 0).indices.shape(), (Shape{2, 0}));
  EXPECT_THAT(TopK(Tensor::Ones({3}), 0).values.ToVector(), IsEmpty());
  EXPECT_EQ(TopK(none, 0, 1).values.shape(), (Shape{2, 0}));
}

TEST(SortTest, GradientGoesBackToItsPlaces) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({2, 3}, {3, 1, 2, 1, 5, 1}, dtype);
    const Tensor dy = Values({2, 3}, {10, 20, 30, 40, 50, 60}, dtype);
    for (bool recorded : {false, true}) {
      const auto sort = [](Inputs x) { return Sort(x[0]).values; };
      EXPECT_THAT(
          Differentiate(sort, {x}, dy, recorded).gradients[0].ToVector(),
          ElementsAre(30, 10, 20, 40, 60, 50));
      const auto top = [](Inputs x) { return TopK(x[0], 1, 0).values; };
      EXPECT_THAT(GradientOf(top, x, recorded), ElementsAre(1, 0, 1, 0, 1, 0));
    }
    Tape tape;
    tape.Watch(x);
    EXPECT_FALSE(tape.Tracks(Sort(x).indices));
  }
}

TEST(SortTest, Errors) {
  const Tensor x = Tensor::Zeros({2, 3});
  EXPECT_EQ(ErrorOf([&] { Sort(x, 2); }),
            "Sort: axis 2 is out of range for shape [2, 3]; wanted one in "
            "[-2, 2)");
  EXPECT_THAT(ErrorOf([&] { Sort({}); }), StartsWith("Sort: the operand is"));
  EXPECT_THAT(ErrorOf([&] { Sort(Tensor::Scalar(1)); }),
              StartsWith("Sort: axis -1 is out of range for shape []"));
  EXPECT_EQ(ErrorOf([&] { TopK(x, 4); }),
            "TopK: k = 4 along axis 1 of float32 [2, 3]; wanted one in [0, 3]");
  EXPECT_THAT(ErrorOf([&] { TopK(x, -1); }), StartsWith("TopK: k = -1 along"));
  EXPECT_THAT(ErrorOf([&] { TopK(x, 1, -3); }), StartsWith("TopK: axis -3"));
}

TEST(SortTest, SameBitsForAnyNumberOfThreads) {
  const Tensor x = Spread({50, 1200}, -1, 1);
  ExpectSameBitsForThreads(
      [](Inputs x) {
        return Concat(
            {{Sort(x[0]).values, Sort(x[0]).indices.To(DType::kFloat64),
              TopK(x[0], 5).values}},
            1);
      },
      {x});
  ExpectSameBitsForThreads([](Inputs x) { return Sort(x[0], 0).values; }, {x});
}

}  // namespace
}  // namespace wengert
