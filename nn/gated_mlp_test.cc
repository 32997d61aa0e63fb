#include "nn/gated_mlp.h"

#include "gtest/gtest.h"
#include "nn/layer_testlib.h"

namespace wengert::nn {
namespace {

TEST(GatedMLPTest, IsPyTorchs) {
  const auto all = ReadReference("gated_mlp.txt");
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const bool silu : {true, false}) {
      const std::string name = silu ? "silu." : "gelu.";
      ParameterStore store(dtype);
      const GatedMLP layer(
          store.root(), 5, 7,
          {.activation = silu ? Activation::kSilu : Activation::kGelu,
           .bias = !silu});
      SetParameters(store, Under(all, name + "parameter."));
      ExpectMatchesReference(store, Under(all, name), {"x"},
                             [&](auto x) { return layer(x[0]); });
    }
  }
}

TEST(GatedMLPTest, Gradients) {
  for (auto f : {Activation::kSilu, Activation::kGelu}) {
    Generator generator(1);
    ParameterStore store(DType::kFloat64, 1);
    const GatedMLP layer(store.root(), 3, 4, {.activation = f, .dropout = 0.3});
    EXPECT_TRUE(CheckLayer(store, {RandomTensor({2, 3}, 2)},
                           [&](auto x) { return layer(x[0]); },
                           {.generator = &generator}));
  }
}

TEST(GatedMLPTest, NamesCanBeOthers) {
  ParameterStore store;
  const GatedMLP layer(store.root(), 2, 3,
                       {.gate = "wi_0", .up = "wi_1", .down = "wo"});
  EXPECT_EQ(store.size(), 3);
  EXPECT_EQ(store.Find("wi_0.weight").shape(), (Shape{3, 2}));
  EXPECT_EQ(store.Find("wi_1.weight").shape(), (Shape{3, 2}));
  EXPECT_EQ(store.Find("wo.weight").shape(), (Shape{2, 3}));
}

}  // namespace
}  // namespace wengert::nn
