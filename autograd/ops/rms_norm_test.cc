// RMS norm, fused and composed.
#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Op = Tensor (*)(const Tensor&, const Tensor&, std::optional<double>);

constexpr Op kBoth[] = {RmsNorm, RmsNormComposed};

TEST(RmsNormTest, KnownValues) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({1, 7}, dtype);  // mean square 25
    for (Op op : kBoth) {
      ExpectRelative(op(x, {}, 0).ToVector(), {0.2, 1.4}, 1e-7);
      ExpectRelative(op(x, Values({10, -1}, dtype), 24).ToVector(),
                     {10.0 / 7, -1}, 1e-6);
    }
  }
}

// The default is the epsilon of the type, as in PyTorch.
TEST(RmsNormTest, DefaultEps) {
  for (Op op : kBoth) {
    const Tensor x = Tensor::Of<float>({1}, {0x1p-20f});  // x² = 2^-40
    const double eps = 0x1p-23;
    ExpectRelative(op(x, {}, {}).ToVector(),
                   {0x1p-20 / std::sqrt(0x1p-40 + eps)}, 1e-6);
    ExpectRelative(op(x.To(DType::kFloat64), {}, {}).ToVector(),
                   {0x1p-20 / std::sqrt(0x1p-40 + 0x1p-52)}, 1e-12);
  }
}

TEST(RmsNormTest, ZerosStayZerosWithFiniteGradients) {
  for (DType dtype : kFloats) {
    for (Op op : kBoth) {
      const auto f = [&](const Tensor& x) {
        return op(x, {}, {}) * Values({1, -2, 5}, x.dtype());
      };
      const auto all = Derivatives(f, Tensor::Zeros({3}, dtype), 2);
      EXPECT_THAT(all[0], Each(0));
      for (const auto& d : all) {
        for (double v : d) EXPECT_TRUE(std::isfinite(v));
      }
    }
  }
}

TEST(RmsNormTest, Errors) {
  const Tensor x = Tensor::Zeros({4, 3});
  for (Op op : kBoth) {
    EXPECT_EQ(ErrorOf([&] { op(x, Tensor::Zeros({4}), {}); }),
              "RmsNorm: x float32 [4, 3], gain float32 [4]; wanted x [..., C], "
              "gain [C], where C may be several axes");
    EXPECT_EQ(ErrorOf([&] { op(x, {}, -1.); }),
              "RmsNorm: eps -1; wanted at least 0");
    EXPECT_EQ(ErrorOf([&] { op(x, {}, NAN); }),
              "RmsNorm: eps nan; wanted at least 0");
    EXPECT_THAT(ErrorOf([&] { op(Tensor::Scalar(1), {}, {}); }),
                HasSubstr("x float32 []"));
    EXPECT_THAT(
        ErrorOf([&] { op(x, Tensor::Zeros({3}, DType::kFloat64), {}); }),
        StartsWith("RmsNorm: got float32 [4, 3], float64 [3]"));
  }
}

TEST(RmsNormTest, SameBitsForAnyNumberOfThreadsAndEqualRows) {
  for (DType dtype : kFloats) {
    for (int64_t width : {5, 132}) {
      const Tensor row = Spread({1, width}, -1, 1, 1).To(dtype);
      const Tensor y = RmsNorm(BroadcastTo(row, {601, width}));
      EXPECT_TRUE(SameBits(y, BroadcastTo(Slice(y, 0, 0, 1), y.shape())));
      ExpectSameBitsForThreads([](Inputs x) { return RmsNorm(x[0], x[1]); },
                               {Spread({1601, width}, -1, 1, 1).To(dtype),
                                Spread({width}, -1, 1, 2).To(dtype)});
    }
  }
}

}  // namespace
}  // namespace wengert
