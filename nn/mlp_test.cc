#include "nn/mlp.h"

#include "gtest/gtest.h"
#include "nn/layer_testlib.h"

namespace wengert::nn {
namespace {

TEST(MLPTest, IsTwoLinearsAroundTheActivation) {
  const Tensor x = RandomTensor({2, 5}, 1, DType::kFloat32);
  const auto through = [&](Activation f, Tensor (*g)(const Tensor&)) {
    ParameterStore store;
    const MLP layer(store.root().Sub("mlp"), 5, 7, {.activation = f});
    const Tensor up = wengert::Linear(x, store.Find("mlp.up.weight"),
                                      store.Find("mlp.up.bias"));
    const Tensor y = wengert::Linear(g(up), store.Find("mlp.down.weight"),
                                     store.Find("mlp.down.bias"));
    return SameBits(layer(x), y);
  };
  EXPECT_TRUE(through(Activation::kRelu, Relu));
  EXPECT_TRUE(through(Activation::kGelu, Gelu));
  EXPECT_TRUE(through(Activation::kGeluTanh, GeluTanh));
  EXPECT_TRUE(through(Activation::kSilu, Silu));
  EXPECT_FALSE(through(Activation::kGelu, GeluTanh));
}

TEST(MLPTest, Gradients) {
  for (auto f : {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                 Activation::kSilu}) {
    Generator generator(1);
    ParameterStore store(DType::kFloat64, 1);
    const MLP layer(store.root(), 3, 4, {.activation = f, .dropout = 0.3});
    EXPECT_TRUE(CheckLayer(store, {RandomTensor({2, 3}, 2)},
                           [&](auto x) { return layer(x[0]); },
                           {.generator = &generator}))
        << static_cast<int>(f);
  }
}

TEST(MLPTest, NamesCanBeOthers) {
  ParameterStore store;
  const MLP layer(store.root(), 2, 3,
                  {.bias = false, .up = "linear1", .down = "linear2"});
  EXPECT_EQ(store.size(), 2);
  EXPECT_EQ(store.Find("linear1.weight").shape(), (Shape{3, 2}));
  EXPECT_EQ(store.Find("linear2.weight").shape(), (Shape{2, 3}));
}

TEST(MLPTest, DropsTheHiddenValues) {
  Generator generator(1);
  ParameterStore store;
  const MLP layer(store.root(), 2, 3, {.dropout = 1});
  const Tensor x = RandomTensor({2, 2}, 1, DType::kFloat32);
  Tape tape(generator);
  // Nothing is left but the second bias.
  EXPECT_TRUE(SameBits(layer(x), BroadcastTo(store.Find("down.bias"), {2, 2})));
}

}  // namespace
}  // namespace wengert::nn
