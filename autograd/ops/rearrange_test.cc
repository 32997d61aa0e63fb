// What moves elements: views, repetitions, borders, windows, triangles and
// diagonals.
#include "autograd/ops/ops_testlib.h"
#include "autograd/ops/reference_testlib.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr DType kAll[] = {DType::kFloat32, DType::kFloat64, DType::kInt32,
                          DType::kInt64, DType::kBool};
constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();

class ReferenceTest : public testing::Test {
 protected:
  const Tensor& At(const std::string& name) const { return all_.at(name); }
  void Expect(const Tensor& y, const std::string& name) const {
    EXPECT_EQ(y.shape(), At(name).shape()) << name;
    EXPECT_EQ(y.ToVector(), At(name).ToVector()) << name;
  }

 private:
  const TensorMap all_ = ReadReference("move_reference.txt");
};

TEST_F(ReferenceTest, Moves) {
  for (DType dtype : kFloats) {
    const Tensor x = At("x").To(dtype);
    const auto expect = [&](const Tensor& y, const std::string& name) {
      EXPECT_EQ(y.dtype(), dtype) << name;
      EXPECT_EQ(y.shape(), At(name).shape()) << name;
      EXPECT_TRUE(SameBits(y, At(name).To(dtype))) << name;
    };
    expect(Squeeze(Slice(x, 0, 0, 1), 0), "squeeze");
    expect(Unsqueeze(x, -1), "expand_dims");
    expect(Stack({x, x * -1}, -1), "stack");
    expect(Split(x, 3, 1).at(0), "split0");
    expect(Split(x, 3, 1).at(1), "split1");
    expect(Chunk(x, 3, 1).at(0), "chunk0");
    expect(Chunk(x, 3, 1).at(1), "chunk1");
    EXPECT_EQ(Chunk(x, 3, 1).size(), 2u);
    expect(Pad(x, {{0, 0}, {2, 1}, {0, 3}}, 7), "pad");
    expect(Pad(x, {{-1, 2}, {1, -2}}), "pad_and_cut");
    expect(Flip(x), "flip");
    expect(Flip(x, 1), "flip_middle");
    expect(Roll(x, -7, 1), "roll");
    expect(Tile(x, {2, 1, 1, 3}), "tile");
    expect(Repeat(x, 3, 1), "repeat");
    expect(Unfold(x, 1, 2, 1), "unfold");
    expect(Unfold(x, 0, 2, 3), "unfold_first");
    for (int k : {-5, -2, -1, 0, 1, 2, 5}) {
      const std::string number = absl::StrCat(k);
      expect(Tril(x, k), "tril" + number);
      expect(Triu(x, k), "triu" + number);
      expect(Diagonal(x, k), "diagonal" + number);
      expect(Diagonal(x, k, -1, 1), "diagonal_of_last" + number);
      expect(DiagEmbed(x, k), "diag_embed" + number);
    }
  }
}

TEST(RearrangeTest, AnyDType) {
  for (DType dtype : kAll) {
    const Tensor x = Values({2, 2}, {1, 0, 0, 1}, dtype);
    for (const Tensor& y :
         {Squeeze(x), Unsqueeze(x, 0), Expand(x, {2, 2}), Stack({x}),
          Split(x, 2)[0], Chunk(x, 1)[0], Pad(x, {{0, 0}}), Flip(x),
          Roll(x, 1, 0), Tile(x, {1}), Repeat(x, 1, 0), Unfold(x, 0, 2, 1),
          Tril(x), Triu(x), Diagonal(x), DiagEmbed(x)}) {
      EXPECT_EQ(y.dtype(), dtype);
    }
    EXPECT_THAT(Pad(x, {{1, -1}}, 1).ToVector(), ElementsAre(1, 1, 1, 0));
    EXPECT_THAT(Flip(x, 1).ToVector(), ElementsAre(0, 1, 1, 0));
    EXPECT_THAT(Roll(x, 3, 1).ToVector(), ElementsAre(0, 1, 1, 0));
    EXPECT_THAT(Tril(x, -1).ToVector(), ElementsAre(0, 0, 0, 0));
    EXPECT_THAT(Diagonal(x).ToVector(), ElementsAre(1, 1));
  }
}

TEST(RearrangeTest, ScalarsAndNothing) {
  const Tensor one = Tensor::Scalar(3), none = Tensor::Zeros({0, 2});
  EXPECT_EQ(Squeeze(one).shape(), Shape{});
  EXPECT_EQ(Unsqueeze(one, -1).shape(), Shape{1});
  EXPECT_EQ(Expand(one, {2, 0}).shape(), (Shape{2, 0}));
  EXPECT_EQ(Stack({one, one}).shape(), Shape{2});
  EXPECT_THAT(Pad(one, {}).ToVector(), ElementsAre(3));
  EXPECT_THAT(Flip(one).ToVector(), ElementsAre(3));
  EXPECT_THAT(Tile(one, {2}).ToVector(), ElementsAre(3, 3));
  EXPECT_EQ(Tile(one, {}).shape(), Shape{});
  EXPECT_THAT(Pad(none, {{1, 0}, {0, 0}}, 5).ToVector(), ElementsAre(5, 5));
  EXPECT_EQ(Flip(none).shape(), none.shape());
  EXPECT_EQ(Roll(none, 5, 0).shape(), none.shape());
  EXPECT_EQ(Tile(none, {2, 2}).shape(), (Shape{0, 4}));
  EXPECT_EQ(Tile(Tensor::Zeros({3}), {0}).shape(), Shape{0});
  EXPECT_EQ(Repeat(none, 4, 0).shape(), none.shape());
  EXPECT_EQ(Unfold(none, 1, 2, 1).shape(), (Shape{0, 1, 2}));
  EXPECT_EQ(Tril(none).shape(), none.shape());
  EXPECT_EQ(Diagonal(none).shape(), Shape{0});
  EXPECT_EQ(Diagonal(Tensor::Zeros({2, 3}), kHuge).shape(), Shape{0});
  EXPECT_EQ(Diagonal(Tensor::Zeros({2, 3}), kLowest).shape(), Shape{0});
  EXPECT_THAT(Tril(Tensor::Ones({1, 2}), kHuge).ToVector(), ElementsAre(1, 1));
  EXPECT_THAT(Triu(Tensor::Ones({1, 2}), kLowest).ToVector(),
              ElementsAre(1, 1));
  EXPECT_EQ(DiagEmbed(Tensor::Zeros({0}), -2).shape(), (Shape{2, 2}));
  EXPECT_EQ(Split(none, 3).size(), 1u);
  EXPECT_EQ(Chunk(none, kHuge)[0].shape(), none.shape());
  EXPECT_THAT(Split(none, std::vector<int64_t>(), 0), IsEmpty());
}

TEST(RearrangeTest, ViewsShareMemory) {
  const Tensor x = Tensor::Ones({3, 1, 2});
  for (const Tensor& y : {Squeeze(x), Squeeze(x, 1), Unsqueeze(x, 0),
                          Unsqueeze(x, -4), Split(x, 2)[0], Chunk(x, 3)[0]}) {
    EXPECT_EQ(y.impl()->data, x.impl()->data);
  }
}

TEST(RollTest, AnyShift) {
  const Tensor x = Values({1, 2, 3}, DType::kFloat32);
  EXPECT_THAT(Roll(x, 1, 0).ToVector(), ElementsAre(3, 1, 2));
  EXPECT_THAT(Roll(x, kHuge, 0).ToVector(), ElementsAre(3, 1, 2));
  EXPECT_THAT(Roll(x, kLowest, 0).ToVector(), ElementsAre(3, 1, 2));
}

TEST(PadTest, KeepsWhatItPadsWith) {
  for (double value : {kInf, -0.0, 0.1}) {
    EXPECT_EQ(Pad(Tensor::Zeros({0}, DType::kFloat64), {{1, 0}}, value).item(),
              value);
  }
  const double most = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(Pad(Tensor::Zeros({0}, DType::kInt32), {{1, 0}}, most).item(),
            most);
  // Cut all of it, and lay on again.
  EXPECT_THAT(Pad(Tensor::Ones({2}), {{-2, 3}}).ToVector(),
              ElementsAre(0, 0, 0));
  EXPECT_EQ(Pad(Tensor::Ones({2}), {{-1, -1}}).shape(), Shape{0});
}

// Parts of one array add to one gradient, whatever else goes there.
TEST(SplitTest, GradientsOfManyParts) {
  const auto f = [](Inputs x) {
    Tensor y = Sum(x[0] * 100);
    double scale = 1;
    for (const Tensor& part : Split(x[0], 1, 1)) {
      y = y + Sum(part * scale);
      scale *= 2;
    }
    return y;
  };
  for (bool recorded : {false, true}) {
    EXPECT_THAT(GradientOf(f, Tensor::Ones({2, 3}), recorded),
                ElementsAre(101, 102, 104, 101, 102, 104));
  }
}

TEST(RearrangeTest, Errors) {
  const Tensor x = Tensor::Zeros({3, 1, 2});
  EXPECT_EQ(ErrorOf([&] { Squeeze(x, -1); }),
            "Squeeze: axis 2 of float32 [3, 1, 2] has size 2; wanted 1");
  EXPECT_THAT(ErrorOf([&] {
                Squeeze(x, {1, -2});
              }),
              StartsWith("Squeeze: axis -2 is named twice"));
  EXPECT_EQ(ErrorOf([&] { Unsqueeze(x, 4); }),
            "Unsqueeze: axis 4 is out of range for float32 [3, 1, 2]; wanted "
            "one in [-4, 3]");
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{1, 2}, {2, 1, 2}, {-1, 3, 1, 2}, {3, -2, 2}}) {
    EXPECT_THAT(ErrorOf([&] { Expand(x, dims); }),
                AllOf(StartsWith("Expand: float32 [3, 1, 2] to ["),
                      HasSubstr("wanted its sizes")));
  }
  EXPECT_THAT(ErrorOf([&] { Stack({}); }), StartsWith("Stack: no tensors"));
  EXPECT_EQ(ErrorOf([&] {
              Stack({x, Tensor::Zeros({3, 1, 3})});
            }),
            "Stack: float32 [3, 1, 2] and float32 [3, 1, 3]; wanted one dtype "
            "and one shape");
  EXPECT_THAT(ErrorOf([&] {
                Stack({x, x.To(DType::kFloat64)});
              }),
              StartsWith("Stack: "));
  EXPECT_THAT(ErrorOf([&] { Stack({x, Tensor()}); }), StartsWith("Stack: "));
  EXPECT_THAT(ErrorOf([&] { Stack({Tensor(), x}); }), StartsWith("Stack: "));
  EXPECT_THAT(
      ErrorOf([&] { Stack({x}, 4); }),
      StartsWith("Stack: axis 4 is out of range for float32 [3, 1, 2]"));
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{},
                                            {2},
                                            {2, 2},
                                            {4, -1},
                                            {kHuge, kHuge, 5},
                                            {-1, 4}}) {
    EXPECT_THAT(
        ErrorOf([&] { Split(x, sizes); }),
        AllOf(StartsWith("Split: sizes ["),
              HasSubstr("along axis 0 of float32 [3, 1, 2]; wanted sizes >= 0 "
                        "that sum to 3")));
  }
  EXPECT_THAT(ErrorOf([&] { Split(x, 0); }),
              StartsWith("Split: float32 [3, 1, 2] into parts of 0; wanted"));
  EXPECT_THAT(ErrorOf([&] { Chunk(x, 0); }),
              StartsWith("Chunk: float32 [3, 1, 2] into 0 parts; wanted"));
  EXPECT_THAT(ErrorOf([&] {
                Flip(x, {0, 0});
              }),
              StartsWith("Flip: axis 0 is named twice"));
  EXPECT_THAT(ErrorOf([&] { Roll(x, 1, 3); }), StartsWith("Roll: axis 3"));
  EXPECT_THAT(ErrorOf([&] { Unfold(x, 0, 4, 1); }),
              StartsWith("Unfold: windows of 4, 1 apart, along axis 0 of "
                         "float32 [3, 1, 2]; wanted 1 <= size <= 3"));
  for (const auto& [size, step] :
       {std::pair<int64_t, int64_t>{0, 1}, {1, 0}, {1, -1}, {-1, 1}}) {
    EXPECT_THAT(ErrorOf([&, n = size, s = step] { Unfold(x, 0, n, s); }),
                StartsWith("Unfold: windows of "));
  }
  EXPECT_EQ(Unfold(x, 0, 1, kHuge).shape(), (Shape{1, 1, 2, 1}));
  EXPECT_THAT(ErrorOf([&] { Tril(Tensor::Zeros({3})); }),
              StartsWith("Tril: float32 [3]; wanted rank 2 or more"));
  EXPECT_THAT(ErrorOf([&] { Triu({}); }), StartsWith("Triu: "));
  EXPECT_EQ(ErrorOf([&] { Diagonal(x, 0, 1, -2); }),
            "Diagonal: axes 1 and -2 of float32 [3, 1, 2] are one; wanted two");
  EXPECT_THAT(ErrorOf([&] { Diagonal(Tensor::Zeros({3})); }),
              StartsWith("Diagonal: axis 1 is out of range"));
  EXPECT_THAT(ErrorOf([&] { DiagEmbed(Tensor::Scalar(1)); }),
              StartsWith("DiagEmbed: float32 []; wanted rank 1 or more"));
}

TEST(PadTest, Errors) {
  const Tensor x = Tensor::Zeros({2, 3});
  EXPECT_EQ(ErrorOf([&] {
              Pad(x, {{1, 1}, {1, 1}, {1, 1}});
            }),
            "Pad: float32 [2, 3] by (1, 1), (1, 1), (1, 1); wanted a pair for "
            "each of its last axes, and no more");
  for (const auto& pair : {std::pair<int64_t, int64_t>{-4, 0},
                           {0, -4},
                           {-2, -2},
                           {-4, 9},
                           {kLowest, 0},
                           {kLowest, kLowest},
                           {kHuge, kLowest}}) {
    EXPECT_THAT(ErrorOf([&] { Pad(x, {pair}); }),
                AllOf(StartsWith("Pad: float32 [2, 3] by ("),
                      HasSubstr("cuts off more than the 3 of axis 1")));
  }
  for (double value : {0.5, double{NAN}, kInf, 0x1p31}) {
    EXPECT_THAT(ErrorOf([&] {
                  Pad(x.To(DType::kInt32), {{1, 0}}, value);
                }),
                AllOf(StartsWith("Pad: "),
                      HasSubstr(" for int32; wanted a value of its dtype")));
  }
}

// Sizes beyond all memory are refused by name, and do not wrap.
TEST(RearrangeTest, HostileSizes) {
  const Tensor x = Tensor::Zeros({3, 2});
  EXPECT_THAT(ErrorOf([&] { Tile(x, {kHuge, 1}); }), StartsWith("Tile: "));
  EXPECT_THAT(ErrorOf([&] {
                Tile(x, {int64_t{1} << 31, int64_t{1} << 31});
              }),
              StartsWith("Tile: a result of shape ["));
  EXPECT_THAT(ErrorOf([&] {
                Tile(x, {-1, 1});
              }),
              StartsWith("Tile: float32 [3, 2] by (-1, 1); wanted"));
  EXPECT_THAT(ErrorOf([&] { Repeat(x, kHuge, 0); }), StartsWith("Repeat: "));
  EXPECT_THAT(ErrorOf([&] { Repeat(x, kLowest, 0); }),
              StartsWith("Repeat: float32 [3, 2] "));
  EXPECT_THAT(ErrorOf([&] { Pad(x, {{kHuge, 0}}); }), StartsWith("Pad: "));
  EXPECT_THAT(ErrorOf([&] {
                Pad(x, {{kHuge / 2, kHuge / 2}});
              }),
              StartsWith("Pad: "));
  EXPECT_THAT(ErrorOf([&] {
                Pad(x, {{int64_t{1} << 40, 0}, {int64_t{1} << 40, 0}});
              }),
              StartsWith("Pad: a result of shape ["));
  EXPECT_THAT(ErrorOf([&] { DiagEmbed(x, kHuge); }), StartsWith("DiagEmbed: "));
  EXPECT_THAT(ErrorOf([&] { DiagEmbed(x, kLowest); }),
              StartsWith("DiagEmbed: "));
  EXPECT_THAT(ErrorOf([&] { DiagEmbed(x, int64_t{1} << 40); }),
              StartsWith("DiagEmbed: a result of shape ["));
}

TEST(RearrangeTest, UndefinedOperands) {
  const Tensor none;
  EXPECT_THAT(ErrorOf([&] { Squeeze(none); }), StartsWith("Squeeze: "));
  EXPECT_THAT(ErrorOf([&] { Unsqueeze(none, 0); }), StartsWith("Unsqueeze: "));
  EXPECT_THAT(ErrorOf([&] { Expand(none, {1}); }), StartsWith("Expand: "));
  EXPECT_THAT(ErrorOf([&] { Split(none, 1); }), StartsWith("Split: "));
  EXPECT_THAT(ErrorOf([&] { Chunk(none, 1); }), StartsWith("Chunk: "));
  EXPECT_THAT(ErrorOf([&] { Pad(none, {}); }), StartsWith("Pad: "));
  EXPECT_THAT(ErrorOf([&] { Flip(none); }), StartsWith("Flip: "));
  EXPECT_THAT(ErrorOf([&] { Roll(none, 1, 0); }), StartsWith("Roll: "));
  EXPECT_THAT(ErrorOf([&] { Tile(none, {1}); }), StartsWith("Tile: "));
  EXPECT_THAT(ErrorOf([&] { Repeat(none, 1, 0); }), StartsWith("Repeat: "));
  EXPECT_THAT(ErrorOf([&] { Unfold(none, 0, 1, 1); }), StartsWith("Unfold: "));
  EXPECT_THAT(ErrorOf([&] { Diagonal(none); }), StartsWith("Diagonal: "));
  EXPECT_THAT(ErrorOf([&] { DiagEmbed(none); }), StartsWith("DiagEmbed: "));
}

TEST(RearrangeTest, SameBitsForAnyNumberOfThreads) {
  const auto f = [](Inputs x) {
    const Tensor y = Pad(Flip(x[0], {0, 2}), {{3, -2}, {1, 4}, {-1, 2}}, 0.5);
    const Tensor z = Roll(Tril(y, 2), 17, 1) + Triu(Tile(y, {1, 1, 1}), -3);
    return Sum(Square(Unfold(z, 1, 8, 3))) + Sum(Unfold(z, 2, 5, 2)) +
           Sum(Square(Diagonal(z, 1, 1, 2))) + Sum(Square(Repeat(z, 2, 0)));
  };
  for (DType dtype : kFloats) {
    ExpectSameBitsForThreads(f, {Spread({40, 60, 50}, -1, 1).To(dtype)});
  }
}

}  // namespace
}  // namespace wengert
