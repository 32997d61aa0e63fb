// Reading and writing by index, and arrays that are rules.
#include "autograd/ops/ops_testlib.h"
#include "autograd/ops/reference_testlib.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr DType kAll[] = {DType::kFloat32, DType::kFloat64, DType::kInt32,
                          DType::kInt64, DType::kBool};
constexpr DType kIdTypes[] = {DType::kInt32, DType::kInt64};
constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

Tensor Ids(std::vector<double> values) {
  return Values(std::move(values), DType::kInt64);
}

TEST(IndexTest, AgreesWithNumpyAndPyTorch) {
  const TensorMap all = ReadReference("move_reference.txt");
  const auto expect = [&](const Tensor& y, const std::string& name,
                          double tolerance) {
    ExpectClose(y, all.at(name), tolerance, name.c_str());
  };
  for (DType id_type : kIdTypes) {
    const auto ids_of = [&](const std::string& name) {
      return all.at(name).To(id_type);
    };
    const std::vector<Tensor> places = {ids_of("places0"), ids_of("places1")};
    for (DType dtype : kFloats) {
      const Tensor x = all.at("x").To(dtype), put = all.at("put").To(dtype);
      const double tolerance = dtype == DType::kFloat32 ? 1e-6 : 1e-15;
      expect(IndexSelect(x, 1, ids_of("ids")), "index_select", tolerance);
      expect(TakeAlongAxis(x, ids_of("along"), 1), "take_along_axis",
             tolerance);
      expect(ScatterAdd(x, 1, ids_of("along"), all.at("src").To(dtype)),
             "scatter_add", tolerance);
      expect(IndexPut(x, places, put), "index_put", tolerance);
      expect(IndexPut(x, places, put, {.accumulate = true}),
             "index_put_accumulate", tolerance);
    }
    expect(OneHot(ids_of("ids"), 4), "one_hot", 0);
  }
  expect(Arange(-1, 2, 0.1, DType::kFloat64), "arange", 1e-15);
  expect(Arange(5, -2, -1.5), "arange_down", 0);
  expect(Linspace(-1, 2, 11, DType::kFloat64), "linspace", 1e-15);
  expect(Eye(3, 5), "eye", 0);
}

TEST(IndexTest, AnyDType) {
  for (DType dtype : kAll) {
    const Tensor x = Values({2, 2}, {1, 0, 0, 0}, dtype);
    const Tensor one = Tensor::Ones({2, 1}, dtype);
    const Tensor ids = Tensor::Of<int32_t>({2, 1}, {1, 0});
    EXPECT_THAT(IndexSelect(x, 1, Ids({1, 0, 0})).ToVector(),
                ElementsAre(0, 1, 1, 0, 0, 0));
    EXPECT_THAT(TakeAlongAxis(x, ids, 1).ToVector(), ElementsAre(0, 0));
    EXPECT_THAT(ScatterAdd(x, 1, ids, one).ToVector(), ElementsAre(1, 1, 1, 0));
    EXPECT_THAT(IndexPut(x, {Ids({1})}, Tensor::Ones({}, dtype)).ToVector(),
                ElementsAre(1, 0, 1, 1));
    EXPECT_THAT(OneHot(Ids({1}), 3, dtype).ToVector(), ElementsAre(0, 1, 0));
    EXPECT_THAT(Eye(2, -1, dtype).ToVector(), ElementsAre(1, 0, 0, 1));
    EXPECT_EQ(Eye(2, -1, dtype).dtype(), dtype);
  }
}

TEST(IndexTest, Broadcasts) {
  const Tensor x = Values({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor ids = Tensor::Of<int64_t>({1, 2}, {2, 0});
  EXPECT_THAT(TakeAlongAxis(x, ids, 1).ToVector(), ElementsAre(3, 1, 6, 4));
  const Tensor row = Slice(x, 0, 0, 1);
  const Tensor rows = Tensor::Of<int64_t>({2, 1}, {2, 0});
  EXPECT_THAT(TakeAlongAxis(row, rows, -1).ToVector(), ElementsAre(3, 1));
  EXPECT_THAT(
      GradientOf([&](Inputs x) { return TakeAlongAxis(x[0], rows, -1); }, row),
      ElementsAre(1, 0, 1));
}

// Few terms are added one way, many another: both to the same sums, which do
// not lose small terms beside large ones.
TEST(ScatterAddTest, KeepsFloatAccuracy) {
  for (int64_t n : {3, 64, 65, 100000}) {
    const Tensor ids = Tensor::Zeros({n, 1}, DType::kInt32);
    const Tensor src = Tensor::Full({n, 1}, 0.1f);
    const Tensor x = Tensor::Full({2, 1}, 1);
    const std::vector<double> y = ScatterAdd(x, 0, ids, src).ToVector();
    const double exact = 1 + static_cast<double>(n) * 0.1f;
    EXPECT_NEAR(y[0], exact, 3e-6 * exact) << n;
    EXPECT_EQ(y[1], 1);
  }
}

TEST(ScatterAddTest, IntegersWrapAndBoolsTakeTheOr) {
  const int32_t most = std::numeric_limits<int32_t>::max();
  for (int64_t n : {2, 100}) {
    std::vector<int32_t> terms(n, 0);
    terms[0] = most;
    terms[1] = 2;
    const Tensor ids = Tensor::Zeros({n}, DType::kInt64);
    const Tensor y = ScatterAdd(Tensor::Zeros({1}, DType::kInt32), 0, ids,
                                Tensor::From({n}, terms));
    EXPECT_EQ(y.item(), static_cast<double>(most) * -1 + 0.0);
    EXPECT_EQ(ScatterAdd(Tensor::Zeros({1}, DType::kBool), 0, ids,
                         Tensor::Ones({n}, DType::kBool))
                  .item(),
              1);
  }
}

TEST(IndexPutTest, LastOfEqualsWinsAndAloneHasAGradient) {
  const Tensor x = Values({10, 20, 30}, DType::kFloat64);
  const Tensor values = Values({1, 2, 3}, DType::kFloat64);
  const std::vector<Tensor> ids = {Ids({2, 0, 2})};
  for (bool recorded : {false, true}) {
    const auto d = Differentiate(
        [&](Inputs in) { return IndexPut(in[0], ids, in[1]); }, {x, values},
        Values({5, 6, 7}, DType::kFloat64), recorded);
    EXPECT_THAT(d.value.ToVector(), ElementsAre(2, 20, 3));
    EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(0, 6, 0));
    EXPECT_THAT(d.gradients[1].ToVector(), ElementsAre(0, 5, 7));
  }
  EXPECT_THAT(x.ToVector(), ElementsAre(10, 20, 30));
}

TEST(IndexTest, Nothing) {
  const Tensor x = Tensor::Ones({2, 3}), none = Tensor::Zeros({0, 3});
  const Tensor no_ids = Tensor::Zeros({0}, DType::kInt64);
  EXPECT_EQ(IndexSelect(x, 1, no_ids).shape(), (Shape{2, 0}));
  EXPECT_EQ(IndexSelect(none, 0, no_ids).shape(), (Shape{0, 3}));
  EXPECT_EQ(IndexSelect(none, 1, Ids({2})).shape(), (Shape{0, 1}));
  EXPECT_EQ(TakeAlongAxis(x, Tensor::Zeros({0, 3}, DType::kInt64), 0).shape(),
            (Shape{0, 3}));
  EXPECT_THAT(
      ScatterAdd(x, 0, Tensor::Zeros({0, 3}, DType::kInt64), none).ToVector(),
      Each(1));
  EXPECT_THAT(IndexPut(x, {no_ids}, Tensor::Zeros({0, 3})).ToVector(), Each(1));
  EXPECT_THAT(IndexPut(x, {no_ids}, Tensor::Zeros({1})).ToVector(), Each(1));
  EXPECT_EQ(OneHot(no_ids, 0).shape(), (Shape{0, 0}));
  EXPECT_EQ(OneHot(Tensor::Scalar(1, DType::kInt32), 2).shape(), Shape{2});
  EXPECT_EQ(Eye(0).shape(), (Shape{0, 0}));
  EXPECT_EQ(Eye(3, 0).shape(), (Shape{3, 0}));
}

TEST(IndexTest, Errors) {
  const Tensor x = Tensor::Zeros({2, 3}), ids = Ids({0, 3, 9});
  const Tensor column = Tensor::Of<int32_t>({2, 1}, {0, -1});
  EXPECT_EQ(ErrorOf([&] { IndexSelect(x, 1, ids); }),
            "IndexSelect: id 3 at position 1 of int64 [3] is out of range; "
            "wanted one in [0, 3)");
  EXPECT_EQ(ErrorOf([&] { TakeAlongAxis(x, column, 1); }),
            "TakeAlongAxis: id -1 at position 1 of int32 [2, 1] is out of "
            "range; wanted one in [0, 3)");
  EXPECT_THAT(ErrorOf([&] {
                ScatterAdd(x, 1, column, Tensor::Zeros({2, 1}));
              }),
              StartsWith("ScatterAdd: id -1 at position 1"));
  EXPECT_EQ(ErrorOf([&] {
              IndexPut(x, {Ids({1}), ids}, Tensor::Zeros({}));
            }),
            "IndexPut, axis 1: id 3 at position 1 of int64 [3] is out of "
            "range; wanted one in [0, 3)");
  EXPECT_THAT(ErrorOf([&] { OneHot(ids, 3); }),
              StartsWith("OneHot: id 3 at position 1"));
  EXPECT_THAT(ErrorOf([&] { IndexSelect(x, 0, x); }),
              StartsWith("IndexSelect: ids are float32 [2, 3]; wanted int32"));
  EXPECT_THAT(ErrorOf([&] { IndexSelect(x, 0, {}); }),
              StartsWith("IndexSelect: ids are undefined"));
  EXPECT_EQ(ErrorOf([&] {
              IndexSelect(x, 0, Tensor::Zeros({2, 1}, DType::kInt32));
            }),
            "IndexSelect: ids int32 [2, 1] along axis 0 of float32 [2, 3]; "
            "wanted ids of rank 1");
  EXPECT_EQ(ErrorOf([&] { TakeAlongAxis(x, Ids({0}), 1); }),
            "TakeAlongAxis: float32 [2, 3] by ids int64 [1] along axis 1; "
            "wanted one rank");
  EXPECT_THAT(
      ErrorOf([&] {
        TakeAlongAxis(x, Tensor::Zeros({3, 3}, DType::kInt32), 1);
      }),
      AllOf(StartsWith("TakeAlongAxis: "), HasSubstr("do not broadcast")));
  const Tensor zero = Tensor::Zeros({2, 1}, DType::kInt32);
  for (const Tensor& src :
       {Tensor::Zeros({2, 2}), Tensor::Zeros({2, 1}, DType::kFloat64), Tensor(),
        Tensor::Zeros({2})}) {
    EXPECT_THAT(
        ErrorOf([&] { ScatterAdd(x, 1, zero, src); }),
        AllOf(StartsWith("ScatterAdd: to float32 [2, 3] along axis 1 by ids "
                         "int32 [2, 1] of "),
              HasSubstr("; wanted ids and src of one shape")));
  }
  EXPECT_THAT(ErrorOf([&] {
                ScatterAdd(x, 0, zero, Tensor::Zeros({2, 1}));
              }),
              StartsWith("ScatterAdd: to "));
  EXPECT_THAT(ErrorOf([&] { IndexPut(x, {}, x); }),
              StartsWith("IndexPut: 0 arrays of ids"));
  EXPECT_THAT(ErrorOf([&] {
                IndexPut(x, {zero, zero, zero}, x);
              }),
              StartsWith("IndexPut: 3 arrays of ids"));
  EXPECT_THAT(ErrorOf([&] { IndexPut(x, {zero}, x.To(DType::kFloat64)); }),
              StartsWith("IndexPut: 1 arrays of ids and values float64"));
  EXPECT_EQ(ErrorOf([&] { IndexPut(x, {zero}, Tensor::Zeros({2})); }),
            "IndexPut: values float32 [2] for ids [2, 1] of float32 [2, 3]; "
            "wanted values that broadcast to [2, 1, 3]");
  EXPECT_THAT(ErrorOf([&] {
                IndexPut(x, {Ids({0, 1, 0}), Ids({0, 1})}, Tensor::Zeros({}));
              }),
              StartsWith("IndexPut: shapes [3] and [2]"));
  EXPECT_THAT(ErrorOf([&] { IndexSelect({}, 0, ids); }),
              StartsWith("IndexSelect: "));
  EXPECT_THAT(ErrorOf([&] { TakeAlongAxis({}, ids, 0); }),
              StartsWith("TakeAlongAxis: "));
  EXPECT_THAT(ErrorOf([&] { ScatterAdd({}, 0, ids, x); }),
              StartsWith("ScatterAdd: "));
  EXPECT_THAT(ErrorOf([&] { IndexPut({}, {ids}, x); }),
              StartsWith("IndexPut: "));
  EXPECT_THAT(ErrorOf([&] { OneHot({}, 3); }), StartsWith("OneHot: "));
  EXPECT_THAT(ErrorOf([&] { OneHot(Ids({}), -1); }),
              StartsWith("OneHot: -1 classes"));
  EXPECT_THAT(ErrorOf([&] { OneHot(Ids({1}), kHuge); }),
              StartsWith("OneHot: a result of shape [1, "));
  EXPECT_THAT(ErrorOf([&] { Eye(-2); }), StartsWith("Eye: [-2, -2]; wanted"));
  EXPECT_THAT(ErrorOf([&] { Eye(kHuge); }),
              StartsWith("Eye: a result of shape ["));
}

TEST(ArangeTest, EndsBeforeTheEnd) {
  // NumPy's has four elements, of which the last is the end.
  EXPECT_EQ(Arange(1, 1.3, 0.1, DType::kFloat64).size(), 3);
  EXPECT_THAT(Arange(0, 3, 1, DType::kInt64).ToVector(), ElementsAre(0, 1, 2));
  EXPECT_THAT(Arange(3, 0, -2, DType::kInt32).ToVector(), ElementsAre(3, 1));
  EXPECT_THAT(Arange(3, 0).ToVector(), IsEmpty());
  EXPECT_THAT(Arange(0, 0).ToVector(), IsEmpty());
  EXPECT_THAT(Arange(0, 1e-300).ToVector(), ElementsAre(0));
  EXPECT_EQ(Arange(0, 1, 0.1).size(), 10);
  // Not a sum of a million roundings.
  EXPECT_EQ(Arange(0, 1e5, 0.1, DType::kFloat64).ToVector().back(),
            std::fma(999999, 0.1, 0));
}

TEST(ArangeTest, Errors) {
  EXPECT_THAT(ErrorOf([] { Arange(0, 1, 0); }),
              StartsWith("Arange: from 0 to 1 by 0 of float32; wanted finite"));
  for (double bad : {double{NAN}, kInf, -kInf}) {
    EXPECT_THAT(ErrorOf([&] { Arange(bad, 1); }), StartsWith("Arange: "));
    EXPECT_THAT(ErrorOf([&] { Arange(0, bad); }), StartsWith("Arange: "));
    EXPECT_THAT(ErrorOf([&] { Arange(0, 1, bad); }), StartsWith("Arange: "));
    EXPECT_THAT(ErrorOf([&] { Linspace(bad, 1, 2); }),
                StartsWith("Linspace: "));
    EXPECT_THAT(ErrorOf([&] { Linspace(0, bad, 2); }),
                StartsWith("Linspace: "));
  }
  for (const auto& [end, step] : {std::pair<double, double>{1e300, 1},
                                  {1e18, 1},
                                  {1, 1e-300},
                                  {1, 5e-324},
                                  {1e308, 1e-308}}) {
    EXPECT_THAT(ErrorOf([end = end, step = step] { Arange(-end, end, step); }),
                HasSubstr("has too many elements"));
  }
  EXPECT_THAT(ErrorOf([] { Arange(0, 2, 1, DType::kBool); }),
              StartsWith("Arange: "));
  for (const auto& [begin, step] :
       {std::pair<double, double>{0, 0.5}, {0.5, 1}, {0x1p31, 1}}) {
    EXPECT_THAT(ErrorOf([begin = begin, step = step] {
                  Arange(begin, begin + 2, step, DType::kInt32);
                }),
                HasSubstr("wanted whole numbers within the dtype"));
  }
  EXPECT_THAT(ErrorOf([] { Linspace(0, 1, -1); }),
              StartsWith("Linspace: -1 values from 0 to 1 of float32; wanted"));
  EXPECT_THAT(ErrorOf([] { Linspace(0, 1, 3, DType::kInt32); }),
              StartsWith("Linspace: "));
  EXPECT_THAT(ErrorOf([] { Linspace(0, 1, kHuge); }),
              StartsWith("Linspace: a result of shape ["));
}

TEST(LinspaceTest, BothEndsAreExact) {
  const double largest = std::numeric_limits<double>::max();
  for (const auto& [begin, end] : {std::pair<double, double>{0.1, 0.7},
                                   {-largest, largest},
                                   {3, -3},
                                   {1e-300, 1e300}}) {
    for (int64_t n : {1, 2, 3, 7, 100}) {
      const auto y = Linspace(begin, end, n, DType::kFloat64).ToVector();
      EXPECT_EQ(y.front(), begin);
      EXPECT_EQ(y.back(), n > 1 ? end : begin);
      for (double v : y) EXPECT_TRUE(std::isfinite(v));
    }
  }
  EXPECT_THAT(Linspace(1, 2, 0).ToVector(), IsEmpty());
}

TEST(IndexTest, SameBitsForAnyNumberOfThreads) {
  const auto ids_of = [](const Shape& shape, int64_t n) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < shape.size(); ++i) ids.push_back(i * i % 97 % n);
    return Tensor::From(shape, ids);
  };
  const Tensor columns = ids_of({200}, 90), rows = ids_of({300}, 80);
  const Tensor along = ids_of({80, 100, 30}, 90);
  const std::vector<Tensor> places = {ids_of({500, 1}, 80), ids_of({7}, 90)};
  const auto f = [&](Inputs x) {
    const Tensor put = Slice(Reshape(x[1], {8000, 30}), 0, 0, 3500);
    const Tensor values = Reshape(put, {500, 7, 30});
    return Sum(Square(IndexSelect(x[0], 1, columns))) +
           Sum(Square(IndexSelect(x[0], 0, rows))) +
           Sum(Square(TakeAlongAxis(x[0], along, 1))) +
           Sum(Square(ScatterAdd(x[0], 1, along, x[1]))) +
           Sum(Square(IndexPut(x[0], places, values))) +
           Sum(Square(IndexPut(x[0], places, values, {.accumulate = true})));
  };
  for (DType dtype : kFloats) {
    ExpectSameBitsForThreads(f, {Spread({80, 90, 30}, -1, 1).To(dtype),
                                 Spread({80, 100, 30}, -1, 1, 1).To(dtype)});
  }
}

}  // namespace
}  // namespace wengert
