// Running sums and products, and whole products.
#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::StartsWith;

TEST(CumSumTest, KnownValues) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, dtype);
    EXPECT_THAT(CumSum(x, -1).ToVector(),
                ElementsAre(1, 3, 3, 7, 5, 11, 7, 15));
    EXPECT_THAT(CumSum(x, 1).ToVector(), ElementsAre(1, 2, 4, 6, 5, 6, 12, 14));
    EXPECT_THAT(CumSum(x, 0).ToVector(), ElementsAre(1, 2, 3, 4, 6, 8, 10, 12));
    EXPECT_EQ(CumSum(Tensor::Zeros({2, 0}, dtype), 1).shape(), (Shape{2, 0}));
    EXPECT_THAT(CumSum(Values({1, kInf, 1, -kInf}, dtype), 0).ToVector(),
                ElementsAre(1, kInf, kInf, testing::IsNan()));
  }
}

// Against the plain loop, of all lengths that end anywhere in a group of eight,
// in either direction: the gradient runs backwards.
TEST(CumSumTest, AnyLength) {
  for (DType dtype : kFloats) {
    for (int64_t n : {1, 2, 3, 7, 8, 9, 15, 16, 17, 100, 40000}) {
      for (int64_t inner : {1, 3}) {
        std::vector<double> values, sums, backward;
        for (int64_t i = 0; i < n * inner; ++i)
          values.push_back(i * 7 % 19 - 9);
        for (int64_t i = 0; i < n * inner; ++i) {
          sums.push_back(values[i] + (i < inner ? 0 : sums[i - inner]));
          backward.push_back(n - i / inner);
        }
        const Tensor x = Values({n, inner}, values, dtype);
        EXPECT_EQ(CumSum(x, 0).ToVector(), sums) << n << " " << inner;
        EXPECT_EQ(GradientOf([](Inputs x) { return CumSum(x[0], 0); }, x),
                  backward);
      }
    }
  }
}

TEST(CumSumTest, LongFloatSumsStayExact) {
  constexpr int64_t n = (1 << 20) + 3;
  for (int64_t inner : {1, 2}) {
    const Tensor y = CumSum(Tensor::Full({n, inner}, 0.1), 0);
    const float* sums = y.data<float>();
    for (int64_t i = 0; i < n; i += 997) {
      const double wanted =
          static_cast<double>(0.1f) * static_cast<double>(i + 1);
      ASSERT_EQ(sums[i * inner], static_cast<float>(wanted)) << i;
    }
  }
}

TEST(CumProdTest, KnownValues) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({2, 3}, {2, 3, -1, 4, 0, 5}, dtype);
    EXPECT_THAT(CumProd(x, 1).ToVector(), ElementsAre(2, 6, -6, 4, 0, 0));
    EXPECT_THAT(CumProd(x, 0).ToVector(), ElementsAre(2, 3, -1, 8, 0, -5));
    // A product that is 0 stays so, whatever the rest would come to.
    std::vector<double> huge(20, dtype == DType::kFloat32 ? 1e38 : 1e200);
    huge[0] = 0;
    EXPECT_THAT(CumProd(Values(huge, dtype), 0).ToVector(), Each(0));
  }
  const Tensor x = Tensor::Of({3}, {1e30f, 1e30f, 1e-30f});
  EXPECT_THAT(CumProd(x, 0).ToVector(),
              ElementsAre(1e30f, kInf, testing::DoubleNear(1e30, 1e24)));
}

TEST(CumProdTest, GradientWithZeros) {
  const auto f = [](Inputs x) { return CumProd(x[0], 0); };
  for (DType dtype : kFloats) {
    for (bool recorded : {false, true}) {
      // y = a, ab, abc, abcd
      EXPECT_THAT(GradientOf(f, Values({2, 0, 3, 5}, dtype), recorded),
                  ElementsAre(1, 38, 0, 0));
      EXPECT_THAT(GradientOf(f, Values({0, 2, 0, 5}, dtype), recorded),
                  ElementsAre(3, 0, 0, 0));
    }
  }
}

TEST(ProdTest, KnownValues) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({2, 3}, {2, 3, -1, 4, 0.5, 5}, dtype);
    EXPECT_EQ(Prod(x).item(), -60);
    EXPECT_THAT(Prod(x, 0).ToVector(), ElementsAre(8, 1.5, -5));
    EXPECT_THAT(Prod(x, {1}, {.keep_dims = true}).ToVector(),
                ElementsAre(-6, 10));
    EXPECT_EQ(Prod(x, {1}, {.keep_dims = true}).shape(), (Shape{2, 1}));
    const Tensor y = Values({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, dtype);
    EXPECT_THAT(Prod(y, {0, 2}).ToVector(), ElementsAre(60, 672));
    const Tensor none = Tensor::Zeros({2, 0}, dtype);
    EXPECT_THAT(Prod(none, 1).ToVector(), ElementsAre(1, 1));
    EXPECT_THAT(ProdComposed(none, 1).ToVector(), ElementsAre(1, 1));
    EXPECT_EQ(Prod(Values({}, {7}, dtype)).item(), 7);
  }
}

TEST(ProdTest, GradientWithZeros) {
  const auto f = [](Inputs x) { return Prod(x[0], 0); };
  for (DType dtype : kFloats) {
    for (bool recorded : {false, true}) {
      EXPECT_THAT(GradientOf(f, Values({2, 3, 4}, dtype), recorded),
                  ElementsAre(12, 8, 6));
      EXPECT_THAT(GradientOf(f, Values({2, 0, 4}, dtype), recorded),
                  ElementsAre(0, 8, 0));
      EXPECT_THAT(GradientOf(f, Values({0, 0, 4}, dtype), recorded), Each(0));
      EXPECT_THAT(GradientOf(f, Values({0}, dtype), recorded), Each(1));
    }
    // d2 (abc) / da db = c, with both of them 0.
    Tape tape;
    const Tensor x = Values({0, 0, 4}, dtype);
    tape.Watch(x);
    const Tensor first = tape.Gradient(Prod(x), x, {.create_graph = true});
    EXPECT_THAT(
        tape.Gradient(Sum(first * Values({1, 0, 0}, dtype)), x).ToVector(),
        ElementsAre(0, 4, 0));
  }
}

// Of thousands, where no gradient may be 0 / 0.
TEST(ProdTest, LongRows) {
  for (DType dtype : kFloats) {
    const Tensor x = Affine(Spread({3, 5001}, -1e-3, 1e-3), 1, 1).To(dtype);
    const auto fused =
        Differentiate([](Inputs x) { return Prod(x[0], 1); }, {x});
    const auto composed =
        Differentiate([](Inputs x) { return ProdComposed(x[0], 1); }, {x});
    const double tolerance = dtype == DType::kFloat32 ? 1e-5 : 1e-13;
    ExpectClose(fused.value, composed.value, tolerance, "value");
    ExpectClose(fused.gradients[0], composed.gradients[0], tolerance,
                "gradient");
  }
}

// Fused against composed where there are several tiles of columns.
TEST(ScanTest, WideShapesAgreeWithTheComposition) {
  const Tensor x = Spread({2, 30, 150}, -1.5, 1.5);
  const std::pair<Function, Function> cases[] = {
      {[](Inputs x) { return Prod(x[0], 1); },
       [](Inputs x) { return ProdComposed(x[0], 1); }},
      {[](Inputs x) {
         return Prod(x[0], {0, 1});
       },
       [](Inputs x) {
         return ProdComposed(x[0], {0, 1});
       }},
      {[](Inputs x) { return CumProd(x[0], 1); },
       [](Inputs x) { return CumProdComposed(x[0], 1); }},
      {[](Inputs x) { return CumProd(x[0], 2); },
       [](Inputs x) { return CumProdComposed(x[0], 2); }}};
  for (const auto& [f, g] : cases) {
    const auto fused = Differentiate(f, {x}), composed = Differentiate(g, {x});
    ExpectClose(fused.value, composed.value, 1e-13, "value");
    ExpectClose(fused.gradients[0], composed.gradients[0], 1e-12, "gradient");
  }
}

TEST(ScanTest, Errors) {
  const Tensor x = Tensor::Zeros({2, 3}), ids = x.To(DType::kInt64);
  EXPECT_EQ(ErrorOf([&] { CumSum(x, 2); }),
            "CumSum: axis 2 is out of range for shape [2, 3]; wanted one in "
            "[-2, 2)");
  EXPECT_THAT(ErrorOf([&] { CumProd(x, -3); }), StartsWith("CumProd: axis -3"));
  EXPECT_THAT(ErrorOf([&] { CumSum(Tensor::Scalar(1), 0); }),
              StartsWith("CumSum: axis 0 is out of range for shape []"));
  EXPECT_THAT(ErrorOf([&] { CumSum(ids, 0); }),
              StartsWith("CumSum: got int64 [2, 3]; wanted float"));
  EXPECT_THAT(ErrorOf([&] { CumProd({}, 0); }),
              StartsWith("CumProd: got undefined"));
  EXPECT_THAT(ErrorOf([&] {
                Prod(x, {0, -2});
              }),
              StartsWith("Prod: axis -2 is named twice"));
  EXPECT_THAT(ErrorOf([&] { Prod(ids); }), StartsWith("Prod: got int64"));
}

TEST(ScanTest, SameBitsForAnyNumberOfThreads) {
  for (DType dtype : kFloats) {
    const Tensor x = Affine(Spread({2, 41, 1021}, -0.1, 0.1), 1, 1).To(dtype);
    ExpectSameBitsForThreads(
        [](Inputs x) {
          return CumSum(x[0], -1) + CumSum(x[0], 1) + CumProd(x[0], -1) +
                 CumProd(x[0], 1) + Prod(x[0], {1}, {true}) +
                 Reshape(CumSum(Reshape(x[0], {-1}), 0), x[0].shape());
        },
        {x});
  }
}

}  // namespace
}  // namespace wengert
