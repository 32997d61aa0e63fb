// What the training runtime does with frozen parameters: no step, no decay, no
// part in a norm; a checkpoint has their values.
#include <string>

#include "autograd/ops.h"
#include "autograd/tensor_testlib.h"
#include "gtest/gtest.h"
#include "nn/linear.h"
#include "train/adam.h"
#include "train/checkpoint.h"
#include "train/clip.h"

namespace wengert::train {
namespace {

struct Model {
  Model(nn::Params p) : up(p.Sub("up"), 3, 4), down(p.Sub("down"), 4, 2) {}
  // Adds to the gradients.
  void Backward() const {
    const Tensor x = Tensor::Of({2, 3}, {1, 2, 3, -4, 5, 6});
    Tape tape;
    tape.Backward(Sum(Square(down(Tanh(up(x))))));
  }
  nn::Linear up, down;
};

TEST(FreezeTest, AnOptimizerLeavesAFrozenParameter) {
  nn::ParameterStore store(DType::kFloat32, 1);
  const Model model(store.root());
  AdamW optimizer(store, {.lr = 0.1});
  model.Backward();
  optimizer.Step();  // its moments are not 0 when it is frozen
  store.Freeze("up.weight");
  const Tensor frozen = model.up.weight().Clone();
  const Tensor bias = model.up.bias().Clone();
  model.Backward();
  optimizer.Step();
  EXPECT_TRUE(SameBits(model.up.weight(), frozen));
  EXPECT_FALSE(SameBits(model.up.bias(), bias));
  const OptimizerState state = optimizer.State();
  EXPECT_EQ(state.parameters.at("up.weight").step, 1);
  EXPECT_EQ(state.parameters.at("up.bias").step, 2);
  store.Unfreeze("*");
  model.Backward();
  optimizer.Step();
  EXPECT_FALSE(SameBits(model.up.weight(), frozen));
}

// Also of one that had gathered a gradient when it was frozen.
TEST(FreezeTest, ANormLeavesItOut) {
  nn::ParameterStore store(DType::kFloat32, 1);
  const Model model(store.root());
  model.Backward();
  store.Freeze("up.*");
  store.Freeze("down.weight");
  double squares = 0;
  for (const double g : model.down.bias().grad().ToVector()) squares += g * g;
  const double norm = ClipGradNorm(store, 1e9).norm;
  EXPECT_FLOAT_EQ(norm * norm, squares);
}

// Values are loaded into it; whether it is frozen is the program's to say.
TEST(FreezeTest, AFileHasItsValuesAlone) {
  nn::ParameterStore store(DType::kFloat32, 1), other(DType::kFloat32, 2);
  const Model model(store.root()), copy(other.root());
  store.Freeze("up.*");
  other.Freeze("down.*");
  const std::string path = ::testing::TempDir() + "/frozen.safetensors";
  ASSERT_TRUE(SaveParameters(path, store).ok());
  ASSERT_TRUE(LoadParameters(path, other).ok());
  EXPECT_TRUE(SameBits(copy.down.weight(), model.down.weight()));
  EXPECT_TRUE(SameBits(copy.up.weight(), model.up.weight()));
  copy.Backward();
  EXPECT_TRUE(copy.up.weight().grad().defined());
  EXPECT_FALSE(copy.down.weight().grad().defined());
}

}  // namespace
}  // namespace wengert::train
