#include "nn/layer_norm.h"

#include "gtest/gtest.h"
#include "nn/layer_testlib.h"

namespace wengert::nn {
namespace {

TEST(LayerNormTest, IsPyTorchs) {
  const auto reference = ReadReference("layer_norm.txt");
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    ParameterStore store(dtype);
    const LayerNorm layer(store.root(), 7);
    SetParameters(store, Under(reference, "parameter."));
    ExpectMatchesReference(store, reference, {"x"},
                           [&](auto x) { return layer(x[0]); });
  }
}

TEST(LayerNormTest, OfSeveralAxesIsPyTorchs) {
  const auto all = ReadReference("norms.txt");
  ParameterStore store(DType::kFloat64);
  const LayerNorm layer(store.root(), {3, 4});
  SetParameters(store, Under(all, "layer.parameter."));
  ExpectMatchesReference(store, Under(all, "layer."), {"x"},
                         [&](auto x) { return layer(x[0]); });
}

TEST(LayerNormTest, NormalisesSeveralAxesWithoutParameters) {
  ParameterStore store(DType::kFloat64);
  const LayerNorm layer(store.root(), {2, 2}, 1e-5,
                        {.weight = false, .bias = false});
  const Tensor x = RandomTensor({3, 2, 2}, 1);
  EXPECT_EQ(store.size(), 0);
  EXPECT_TRUE(SameBits(
      layer(x), Reshape(wengert::LayerNorm(Reshape(x, {3, 4})), x.shape())));
}

TEST(LayerNormTest, Gradients) {
  for (const auto& options :
       {LayerNormOptions{}, LayerNormOptions{.bias = false},
        LayerNormOptions{.weight = false},
        LayerNormOptions{.weight = false, .bias = false}}) {
    ParameterStore store(DType::kFloat64, 1);
    const LayerNorm layer(store.root(), 5, 1e-3, options);
    EXPECT_EQ(store.size(), options.weight + options.bias);
    Randomise(store);
    EXPECT_TRUE(CheckLayer(store, {RandomTensor({2, 2, 5}, 2)},
                           [&](auto x) { return layer(x[0]); }));
  }
}

TEST(LayerNormTest, StartsAsThePlainNorm) {
  ParameterStore store;
  const LayerNorm layer(store.root().Sub("norm"), 4);
  EXPECT_EQ(store.Find("norm.weight").ToVector(),
            (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(store.Find("norm.bias").ToVector(),
            (std::vector<double>{0, 0, 0, 0}));
  const Tensor y = layer(Tensor::Of({1, 4}, {20000, 20001, 20002, 20003}));
  ExpectNear(y,
             Tensor::Of<double>({1, 4},
                                {-1.3416354, -0.4472118, 0.4472118, 1.3416354}),
             1e-6, "y");
}

TEST(LayerNormTest, UsesItsEps) {
  ParameterStore store(DType::kFloat64);
  const LayerNorm layer(store.root(), 2, 3);  // variance 1: 1 / sqrt(1 + 3)
  EXPECT_EQ(layer(Tensor::Of<double>({2}, {4, 6})).ToVector(),
            (std::vector<double>{-0.5, 0.5}));
}

}  // namespace
}  // namespace wengert::nn
