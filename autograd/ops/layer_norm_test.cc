// Layer normalisation, fused and composed.
#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Op = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, double);

constexpr Op kBoth[] = {LayerNorm, LayerNormComposed};

TEST(LayerNormTest, KnownGradient) {
  for (DType dtype : kFloats) {
    for (Op op : kBoth) {
      const auto f = [&](Inputs x) {
        return Slice(op(x[0], {}, {}, 1e-5), 0, 0, 1);
      };
      for (bool recorded : {false, true}) {
        EXPECT_THAT(GradientOf(f, Values({1, 2, 4}, dtype), recorded),
                    ElementsAre(DoubleNear(0.2290823, 2e-7),
                                DoubleNear(-0.3436200, 2e-7),
                                DoubleNear(0.1145377, 2e-7)));
      }
    }
  }
}

TEST(LayerNormTest, GainAndBias) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({1, 2}, {1, 3}, dtype);  // normalises to -1, 1
    const Tensor gain = Values({2, 3}, dtype), bias = Values({10, 20}, dtype);
    for (Op op : kBoth) {
      const auto f = [&](Inputs x) { return op(x[0], x[1], x[2], 1e-12); };
      const auto d =
          Differentiate(f, {x, gain, bias}, Values({1, 2}, {5, 7}, dtype));
      EXPECT_THAT(d.value.ToVector(),
                  ElementsAre(DoubleNear(8, 1e-5), DoubleNear(23, 1e-5)));
      EXPECT_THAT(d.gradients[0].ToVector(), Each(DoubleNear(0, 1e-5)));
      EXPECT_THAT(d.gradients[1].ToVector(),
                  ElementsAre(DoubleNear(-5, 1e-5), DoubleNear(7, 1e-5)));
      EXPECT_THAT(d.gradients[2].ToVector(), ElementsAre(5, 7));
      EXPECT_THAT(op(x, gain, {}, 1e-12).ToVector(),
                  ElementsAre(DoubleNear(-2, 1e-5), DoubleNear(3, 1e-5)));
      EXPECT_THAT(op(x, {}, bias, 1e-12).ToVector(),
                  ElementsAre(DoubleNear(9, 1e-5), DoubleNear(21, 1e-5)));
    }
  }
}

TEST(LayerNormTest, SeveralAxesAreOneLongRow) {
  for (DType dtype : kFloats) {
    const Tensor x = Spread({2, 3, 4}, -1, 1).To(dtype);
    const Tensor gain = Spread({3, 4}, -1, 1, 1).To(dtype);
    const Tensor bias = Spread({3, 4}, -1, 1, 2).To(dtype);
    for (Op op : kBoth) {
      const Tensor y =
          op(Reshape(x, {2, 12}), Reshape(gain, {12}), Reshape(bias, {12}), 1);
      EXPECT_TRUE(SameBits(op(x, gain, bias, 1), Reshape(y, x.shape())));
      const Tensor z = op(Reshape(x, {2, 12}), {}, Reshape(bias, {12}), 1);
      EXPECT_TRUE(SameBits(op(x, {}, bias, 1), Reshape(z, x.shape())));
    }
  }
}

// A variance in one pass misses this.
TEST(LayerNormTest, LargeMeanInFloat) {
  const Tensor x = Tensor::Of<float>({4}, {20000, 20001, 20002, 20003});
  for (Op op : kBoth) {
    ExpectRelative(op(x, {}, {}, 1e-5).ToVector(),
                   {-1.3416354, -0.4472118, 0.4472118, 1.3416354}, 1e-6);
  }
}

TEST(LayerNormTest, EqualValuesGiveExactlyZero) {
  for (Op op : kBoth) {
    for (double value : {777.7, 0.1, -3e7}) {
      for (int64_t width : {1, 2, 3, 100, 768, 1999}) {
        for (DType dtype : kFloats) {
          const Tensor x = Tensor::Full({3, width}, value, dtype);
          EXPECT_THAT(op(x, {}, {}, 1e-5).ToVector(), Each(0))
              << value << " " << width << " " << Name(dtype);
          const Tensor bias = Tensor::Full({width}, 2.5, dtype);
          EXPECT_THAT(op(x, {}, bias, 1e-5).ToVector(), Each(2.5));
        }
      }
    }
  }
}

TEST(LayerNormTest, EqualValuesHaveFiniteGradients) {
  for (DType dtype : kFloats) {
    for (Op op : kBoth) {
      const auto f = [&](const Tensor& x) {
        return op(x, {}, {}, 1e-5) * Values({1, -2, 5}, x.dtype());
      };
      for (const auto& d : Derivatives(f, Values({4, 4, 4}, dtype), 3)) {
        for (double v : d) EXPECT_TRUE(std::isfinite(v));
      }
    }
  }
}

TEST(LayerNormTest, Errors) {
  const Tensor x = Tensor::Zeros({4, 3}), good = Tensor::Zeros({3});
  const Tensor bad = Tensor::Zeros({4});
  EXPECT_EQ(ErrorOf([&] { LayerNorm(x, bad); }),
            "LayerNorm: x float32 [4, 3], gain float32 [4], bias undefined; "
            "wanted x [..., C], gain [C], bias [C], where C may be several "
            "axes");
  EXPECT_THAT(
      ErrorOf([&] {
        LayerNorm(Tensor::Zeros({2, 4, 3}), Tensor::Zeros({4, 3}), good);
      }),
      HasSubstr("gain float32 [4, 3], bias float32 [3]"));
  EXPECT_THAT(ErrorOf([&] { LayerNorm(x, Tensor::Scalar(1)); }),
              HasSubstr("gain float32 []"));
  EXPECT_THAT(ErrorOf([&] {
                LayerNorm(good, Tensor::Zeros({4, 3}));
              }),
              HasSubstr("x float32 [3], gain float32 [4, 3]"));
  EXPECT_THAT(ErrorOf([&] { LayerNorm(x, good, bad); }),
              AllOf(StartsWith("LayerNorm: x float32 [4, 3], gain float32 [3], "
                               "bias float32 [4]")));
  EXPECT_THAT(ErrorOf([&] {
                LayerNorm(x, Tensor::Zeros({1, 3}));
              }),
              HasSubstr("gain float32 [1, 3]"));
  EXPECT_THAT(ErrorOf([&] { LayerNorm(Tensor::Scalar(1)); }),
              StartsWith("LayerNorm: x float32 []"));
  for (Op op : {LayerNorm, LayerNormComposed}) {
    EXPECT_EQ(ErrorOf([&] { op(x, {}, {}, -1e-5); }),
              "LayerNorm: eps -1e-05; wanted at least 0");
    EXPECT_EQ(ErrorOf([&] { op(x, {}, {}, NAN); }),
              "LayerNorm: eps nan; wanted at least 0");
    op(x, {}, {}, 0);
  }
  EXPECT_THAT(ErrorOf([&] { LayerNorm({}); }),
              StartsWith("LayerNorm: got undefined"));
  EXPECT_THAT(ErrorOf([&] { LayerNorm(x, good.To(DType::kFloat64)); }),
              StartsWith("LayerNorm: got float32 [4, 3], float64 [3]"));
}

TEST(LayerNormTest, SameBitsForAnyNumberOfThreads) {
  for (DType dtype : kFloats) {
    ExpectSameBitsForThreads(
        [](Inputs x) { return LayerNorm(x[0], x[1], x[2]); },
        {Spread({5, 137, 132}, -1, 1, 1).To(dtype),
         Spread({132}, -1, 1, 2).To(dtype), Spread({132}, -1, 1, 3).To(dtype)});
  }
}

}  // namespace
}  // namespace wengert
