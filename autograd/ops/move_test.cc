// Views, permutations, slices, rows by index, and choice by mask.
#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr DType kAll[] = {DType::kFloat32, DType::kFloat64, DType::kInt32,
                          DType::kInt64, DType::kBool};

TEST(ReshapeTest, SharesMemory) {
  for (DType dtype : kAll) {
    const Tensor x = Tensor::Ones({2, 6}, dtype);
    const Tensor y = Reshape(x, {3, -1});
    EXPECT_EQ(y.shape(), (Shape{3, 4}));
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(y.impl()->data, x.impl()->data);
  }
  EXPECT_EQ(Reshape(Tensor::Zeros({2, 0}), {0, 5}).shape(), (Shape{0, 5}));
  EXPECT_EQ(Reshape(Tensor::Zeros({2, 0}), {2, -1}).shape(), (Shape{2, 0}));
  EXPECT_EQ(Reshape(Tensor::Zeros({1, 1}), Shape{}).shape(), Shape{});
}

TEST(ReshapeTest, Errors) {
  const Tensor x = Tensor::Zeros({2, 6});
  EXPECT_EQ(ErrorOf([&] {
              Reshape(x, {5, 2});
            }),
            "Reshape: float32 [2, 6] to [5, 2]; wanted as many elements");
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{5, -1}, {-1, -1}, {0, -1}, {-2, -1}}) {
    EXPECT_THAT(ErrorOf([&] { Reshape(x, dims); }),
                AllOf(StartsWith("Reshape: float32 [2, 6] to ["),
                      HasSubstr("wanted at most one -1")));
  }
  EXPECT_THAT(ErrorOf([&] { Reshape(Tensor(), {1}); }),
              StartsWith("Reshape: the operand is undefined"));
}

TEST(PermuteTest, KnownValues) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({2, 3}, {1, 2, 3, 4, 5, 6}, dtype);
    EXPECT_THAT(Transpose(x).ToVector(), ElementsAre(1, 4, 2, 5, 3, 6));
    const Tensor y =
        Permute(Values({1, 2, 3}, {1, 2, 3, 4, 5, 6}, dtype), {-1, 0, 1});
    EXPECT_EQ(y.shape(), (Shape{3, 1, 2}));
    EXPECT_THAT(y.ToVector(), ElementsAre(1, 4, 2, 5, 3, 6));
    EXPECT_THAT(Differentiate([](Inputs x) { return Transpose(x[0]); }, {x},
                              Values({3, 2}, {1, 2, 3, 4, 5, 6}, dtype))
                    .gradients[0]
                    .ToVector(),
                ElementsAre(1, 3, 5, 2, 4, 6));
  }
  for (DType dtype : {DType::kInt32, DType::kInt64, DType::kBool}) {
    const Tensor x = Values({2, 2}, {1, 0, 0, 0}, dtype);
    EXPECT_THAT(Transpose(x).ToVector(), ElementsAre(1, 0, 0, 0));
    EXPECT_THAT(Transpose(Values({2, 2}, {0, 1, 0, 0}, dtype)).ToVector(),
                ElementsAre(0, 0, 1, 0));
  }
  EXPECT_EQ(Permute(Tensor::Scalar(3), absl::Span<const int>()).item(), 3);
}

TEST(PermuteTest, Errors) {
  const Tensor x = Tensor::Zeros({2, 3, 4});
  for (const std::vector<int>& axes : {std::vector<int>{0, 1},
                                       {0, 1, 1},
                                       {0, 0, 2},
                                       {0, 1, 2, 2},
                                       {0, 1, -2}}) {
    EXPECT_THAT(ErrorOf([&] { Permute(x, axes); }),
                AllOf(StartsWith("Permute: axes ("),
                      HasSubstr("float32 [2, 3, 4]; wanted each of its axes "
                                "once")));
  }
  EXPECT_THAT(ErrorOf([&] {
                Permute(x, {0, 1, 3});
              }),
              AllOf(StartsWith("Permute: axis 3"), HasSubstr("[2, 3, 4]")));
  EXPECT_THAT(ErrorOf([&] { Transpose(Tensor::Zeros({3})); }),
              StartsWith("Transpose: float32 [3]; wanted rank 2 or more"));
  EXPECT_THAT(ErrorOf([&] { Transpose({}); }), StartsWith("Transpose: "));
  EXPECT_THAT(ErrorOf([&] { Permute(Tensor(), {0}); }),
              StartsWith("Permute: "));
}

TEST(SliceTest, KnownValues) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({3, 2}, {1, 2, 3, 4, 5, 6}, dtype);
    const Tensor rows = Slice(x, 0, 1, 2);
    EXPECT_THAT(rows.ToVector(), ElementsAre(3, 4, 5, 6));
    EXPECT_EQ(rows.impl()->data,
              static_cast<char*>(x.impl()->data) + 2 * ByteSize(dtype));
    EXPECT_THAT(Slice(x, -1, 1, 1).ToVector(), ElementsAre(2, 4, 6));
    EXPECT_EQ(Slice(x, -1, 1, 1).shape(), (Shape{3, 1}));
    EXPECT_EQ(Slice(x, 0, 3, 0).shape(), (Shape{0, 2}));
    // Another axis gives a new array, in a batch of one too.
    const Tensor one = Values({1, 3}, {1, 2, 3}, dtype);
    EXPECT_THAT(Slice(one, 1, 1, 2).ToVector(), ElementsAre(2, 3));
    EXPECT_TRUE(Slice(one, 1, 1, 2).unique());
    for (bool recorded : {false, true}) {
      EXPECT_THAT(GradientOf([](Inputs x) { return Slice(x[0], 1, 1, 1); }, x,
                             recorded),
                  ElementsAre(0, 1, 0, 1, 0, 1));
      EXPECT_THAT(GradientOf([](Inputs x) { return Slice(x[0], 0, 1, 1); }, x,
                             recorded),
                  ElementsAre(0, 0, 1, 1, 0, 0));
    }
  }
  EXPECT_THAT(
      Slice(Tensor::Of<int32_t>({2, 2}, {1, 2, 3, 4}), 1, 0, 1).ToVector(),
      ElementsAre(1, 3));
}

TEST(SliceTest, Errors) {
  const Tensor x = Tensor::Zeros({3, 2});
  for (const auto& [start, length] :
       {std::pair<int64_t, int64_t>{2, 2},
        {-1, 1},
        {0, -1},
        {4, 0},
        {1, std::numeric_limits<int64_t>::max()}}) {
    EXPECT_THAT(ErrorOf([&, s = start, n = length] { Slice(x, 0, s, n); }),
                AllOf(StartsWith("Slice: ["),
                      HasSubstr("along axis 0 lies outside float32 [3, 2]")));
  }
  EXPECT_THAT(ErrorOf([&] { Slice(x, 2, 0, 1); }),
              StartsWith("Slice: axis 2 is out of range"));
  EXPECT_THAT(ErrorOf([&] { Slice({}, 0, 0, 1); }), StartsWith("Slice: "));
}

TEST(ConcatTest, KnownValues) {
  for (DType dtype : kAll) {
    const Tensor a = Values({1, 2}, {1, 0}, dtype);
    const Tensor b = Values({1, 2}, {0, 1}, dtype);
    EXPECT_THAT(Concat({a, b}, 0).ToVector(), ElementsAre(1, 0, 0, 1));
    EXPECT_EQ(Concat({a, b}, 0).shape(), (Shape{2, 2}));
    EXPECT_EQ(Concat({a, b}, -1).shape(), (Shape{1, 4}));
  }
  const Tensor a = Values({2, 1}, {1, 2}), b = Values({2, 2}, {3, 4, 5, 6});
  EXPECT_THAT(Concat({a, b}, 1).ToVector(), ElementsAre(1, 3, 4, 2, 5, 6));
  const auto d = Differentiate([](Inputs x) { return Concat(x, 1); }, {a, b},
                               Values({2, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(1, 4));
  EXPECT_THAT(d.gradients[1].ToVector(), ElementsAre(2, 3, 5, 6));
}

TEST(ConcatTest, Errors) {
  const Tensor a = Tensor::Zeros({2, 3});
  EXPECT_THAT(ErrorOf([] { Concat({}, 0); }), StartsWith("Concat: no tensors"));
  EXPECT_THAT(
      ErrorOf([&] {
        Concat({a, Tensor::Zeros({2, 4})}, 0);
      }),
      AllOf(StartsWith("Concat: float32 [2, 3] and float32 [2, 4] along "
                       "axis 0; wanted")));
  EXPECT_THAT(ErrorOf([&] {
                Concat({a, Tensor::Zeros({2})}, 0);
              }),
              StartsWith("Concat: float32 [2, 3] and float32 [2] "));
  EXPECT_THAT(ErrorOf([&] {
                Concat({a, a.To(DType::kFloat64)}, 0);
              }),
              StartsWith("Concat: float32 [2, 3] and float64 [2, 3] "));
  EXPECT_THAT(ErrorOf([&] {
                Concat({a, Tensor()}, 0);
              }),
              StartsWith("Concat: float32 [2, 3] and undefined"));
  EXPECT_THAT(ErrorOf([&] {
                Concat({Tensor(), a}, 0);
              }),
              StartsWith("Concat: "));
  EXPECT_THAT(ErrorOf([&] { Concat({a}, 2); }), StartsWith("Concat: axis 2"));
}

TEST(EmbeddingTest, RepeatedIdsAddUp) {
  for (DType dtype : kFloats) {
    for (DType id_type : {DType::kInt32, DType::kInt64}) {
      const Tensor ids = Tensor::Zeros({3}, id_type);
      const auto f = [&](Inputs x) { return Embedding(x[0], ids); };
      const Tensor x = Values({5}, dtype), dy = Values({1, 2, 4}, dtype);
      for (bool recorded : {false, true}) {
        const auto d = Differentiate(f, {x}, dy, recorded);
        EXPECT_THAT(d.value.ToVector(), ElementsAre(5, 5, 5));
        EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(7));
      }
    }
    const Tensor table = Values({3, 2}, {1, 2, 3, 4, 5, 6}, dtype);
    const Tensor y = Embedding(table, Tensor::Of<int32_t>({1, 2}, {2, 0}));
    EXPECT_EQ(y.shape(), (Shape{1, 2, 2}));
    EXPECT_THAT(y.ToVector(), ElementsAre(5, 6, 1, 2));
  }
}

TEST(EmbeddingTest, PaddingGetsNoGradient) {
  for (DType dtype : kFloats) {
    const Tensor table = Values({3, 1}, {7, 8, 9}, dtype);
    const Tensor ids = Tensor::Of<int64_t>({3}, {0, 0, 2});
    const auto f = [&](Inputs x) { return Embedding(x[0], ids, 0); };
    for (bool recorded : {false, true}) {
      const auto d = Differentiate(f, {table}, {}, recorded);
      EXPECT_THAT(d.value.ToVector(), ElementsAre(7, 7, 9));
      EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(0, 0, 1));
    }
    // And adds to what is there already.
    const auto twice = [&](Inputs x) {
      return Sum(Embedding(x[0], ids, 0)) + Sum(x[0] * 10);
    };
    EXPECT_THAT(GradientOf(twice, table), ElementsAre(10, 10, 11));
  }
}

TEST(EmbeddingTest, ScatterIsItsMirror) {
  const Tensor x = Values({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor ids = Tensor::Of<int32_t>({3}, {1, 0, 1});
  EXPECT_THAT(ScatterRows(x, ids, 3).ToVector(), ElementsAre(3, 4, 6, 8, 0, 0));
  EXPECT_THAT(ScatterRows(x, ids, 3, 0).ToVector(),
              ElementsAre(0, 0, 6, 8, 0, 0));
  EXPECT_THAT(
      Differentiate([&](Inputs x) { return ScatterRows(x[0], ids, 3, 0); }, {x},
                    Values({3, 2}, {1, 2, 3, 4, 5, 6}))
          .gradients[0]
          .ToVector(),
      ElementsAre(3, 4, 0, 0, 3, 4));
}

TEST(EmbeddingTest, Errors) {
  const Tensor table = Tensor::Zeros({3, 2});
  EXPECT_EQ(
      ErrorOf([&] {
        Embedding(table, Tensor::Of<int32_t>({2}, {0, 3}));
      }),
      "Embedding: id 3 at position 1 of int32 [2] is out of range; wanted "
      "one in [0, 3)");
  EXPECT_THAT(
      ErrorOf([&] { Embedding(table, Tensor::Of<int64_t>({1}, {-1})); }),
      StartsWith("Embedding: id -1 at position 0 of int64 [1]"));
  EXPECT_EQ(ErrorOf([&] { Embedding(table, Tensor::Zeros({2})); }),
            "Embedding: ids are float32 [2]; wanted int32 or int64");
  EXPECT_THAT(ErrorOf([&] { Embedding(table, {}); }),
              StartsWith("Embedding: ids are undefined"));
  const Tensor ids = Tensor::Zeros({2}, DType::kInt32);
  EXPECT_EQ(ErrorOf([&] { Embedding(ids, ids); }),
            "Embedding: the table is int32 [2]; wanted float [n, ...]");
  EXPECT_THAT(ErrorOf([&] { Embedding(Tensor::Scalar(1), ids); }),
              StartsWith("Embedding: the table is float32 []"));
  EXPECT_THAT(ErrorOf([&] { Embedding({}, ids); }),
              StartsWith("Embedding: the table is undefined"));
  EXPECT_THAT(ErrorOf([&] { ScatterRows(table, ids, 3); }),
              AllOf(StartsWith("ScatterRows: x float32 [3, 2] with ids int32 "
                               "[2]; wanted")));
  EXPECT_THAT(ErrorOf([&] { ScatterRows(table, {}, 3); }),
              StartsWith("ScatterRows: x float32 [3, 2] with ids undefined"));
  EXPECT_THAT(ErrorOf([&] {
                ScatterRows(Tensor::Zeros({2, 2}), ids, 0);
              }),
              StartsWith("ScatterRows: id 0 at position 0"));
}

TEST(WhereTest, KnownValues) {
  const Tensor mask = Tensor::Of<bool>({3}, {true, false, true});
  for (DType dtype : kAll) {
    const Tensor a = Tensor::Ones({3}, dtype), b = Tensor::Zeros({3}, dtype);
    EXPECT_THAT(Where(mask, a, b).ToVector(), ElementsAre(1, 0, 1));
    EXPECT_EQ(Where(mask, a, b).dtype(), dtype);
  }
  for (DType dtype : kFloats) {
    const Tensor a = Values({1, 2, 3}, dtype);
    EXPECT_THAT(MaskedFill(a, mask, -kInf).ToVector(),
                ElementsAre(-kInf, 2, -kInf));
    const Tensor b = Values({2, 1}, {10, 20}, dtype);
    const auto d = Differentiate(
        [&](Inputs x) { return Where(mask, x[0], x[1]); }, {a, b});
    EXPECT_THAT(d.value.ToVector(), ElementsAre(1, 10, 3, 1, 20, 3));
    EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(2, 0, 2));
    EXPECT_THAT(d.gradients[1].ToVector(), ElementsAre(1, 1));
    // What is not chosen has gradient 0, whatever stands there.
    const Tensor bad = Values({NAN, 1, kInf}, dtype);
    EXPECT_THAT(
        GradientOf([&](Inputs x) { return MaskedFill(x[0], mask, 0); }, bad),
        ElementsAre(0, 1, 0));
  }
}

TEST(WhereTest, Errors) {
  const Tensor a = Tensor::Zeros({2}), mask = SomeTrue({2});
  EXPECT_EQ(
      ErrorOf([&] { Where(a, a, a); }),
      "Where: condition float32 [2], a float32 [2], b float32 [2]; wanted "
      "bool, and a and b of one dtype");
  EXPECT_THAT(ErrorOf([&] { Where(mask, a, a.To(DType::kFloat64)); }),
              AllOf(StartsWith("Where: "), HasSubstr("b float64 [2]")));
  EXPECT_THAT(ErrorOf([&] { Where(mask, a, Tensor::Zeros({3})); }),
              AllOf(StartsWith("Where: "), HasSubstr("[2]"), HasSubstr("[3]")));
  EXPECT_THAT(ErrorOf([&] { Where(SomeTrue({3}), a, a); }),
              AllOf(StartsWith("Where: "), HasSubstr("[3]"), HasSubstr("[2]")));
  EXPECT_THAT(ErrorOf([&] { Where({}, a, a); }),
              StartsWith("Where: condition undefined"));
  EXPECT_EQ(ErrorOf([&] { MaskedFill(a.To(DType::kInt32), mask, 1.5); }),
            "MaskedFill: 1.5 for int32; wanted a value of its dtype");
  EXPECT_THAT(ErrorOf([&] { MaskedFill(a, {}, 0); }),
              StartsWith("MaskedFill: mask undefined"));
  EXPECT_THAT(ErrorOf([&] { MaskedFill({}, mask, 0); }),
              StartsWith("MaskedFill: "));
  EXPECT_THAT(ErrorOf([&] { MaskedFill(a.To(DType::kInt64), mask, 0.5); }),
              HasSubstr("0.5 for int64"));
}

TEST(MoveTest, SameBitsForAnyNumberOfThreads) {
  const Tensor ids =
      Tensor::From({40, 30}, std::vector<int64_t>(Permutation(3, 0, 1200)))
          .To(DType::kInt32);
  std::vector<int64_t> repeated;
  for (int64_t i = 0; i < 1200; ++i) repeated.push_back(i * i % 97);
  const Tensor rows = Tensor::From({40, 30}, repeated);
  for (DType dtype : kFloats) {
    ExpectSameBitsForThreads(
        [&](Inputs x) {
          return Embedding(x[0], rows) * Embedding(x[0], ids) +
                 Reshape(Transpose(x[0]), {40, 30, 33}) +
                 Slice(Concat({x[1], x[1] * x[1]}, 2), 2, 5, 33);
        },
        {Spread({1200, 33}, -1, 1, 1).To(dtype),
         Spread({40, 30, 21}, -1, 1, 2).To(dtype)});
  }
}

}  // namespace
}  // namespace wengert
