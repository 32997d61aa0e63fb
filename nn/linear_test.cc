#include "nn/linear.h"

#include "gtest/gtest.h"
#include "nn/layer_testlib.h"

namespace wengert::nn {
namespace {

TEST(LinearTest, IsPyTorchs) {
  const auto reference = ReadReference("linear.txt");
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    ParameterStore store(dtype);
    const Linear layer(store.root(), 5, 3);
    SetParameters(store, Under(reference, "parameter."));
    ExpectMatchesReference(store, reference, {"x"},
                           [&](auto x) { return layer(x[0]); });
  }
}

TEST(LinearTest, Gradients) {
  for (const Shape& shape : {Shape{3}, Shape{1, 3}, Shape{2, 2, 3}}) {
    for (bool bias : {true, false}) {
      ParameterStore store(DType::kFloat64, 1);
      const Linear layer(store.root(), 3, 2, {.bias = bias});
      EXPECT_EQ(store.size(), bias ? 2 : 1);
      EXPECT_TRUE(CheckLayer(store, {RandomTensor(shape, 2)},
                             [&](auto x) { return layer(x[0]); }))
          << shape << bias;
    }
  }
}

TEST(LinearTest, StartsUniformInTheRangeOfItsInputs) {
  ParameterStore store(DType::kFloat32, 7);
  const Linear layer(store.root(), 100, 400);
  for (const Tensor& p : {layer.weight(), layer.bias()}) {
    const auto values = p.ToVector();
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    EXPECT_GE(*low, -0.1);
    EXPECT_LT(*high, 0.1);
    EXPECT_LT(*low, -0.099);
    EXPECT_GT(*high, 0.099);
    double squares = 0;
    for (double x : values) squares += x * x;
    // The variance of a uniform number in [-b, b] is b²/3.
    EXPECT_NEAR(squares / values.size(), 0.01 / 3, 0.05 * 0.01);
  }
}

TEST(LinearTest, AnotherLayerChangesNoStart) {
  ParameterStore one(DType::kFloat32, 7), two(DType::kFloat32, 7);
  const Linear alone(one.root().Sub("last"), 5, 6);
  const Linear first(two.root().Sub("first"), 3, 2);
  const Linear last(two.root().Sub("last"), 5, 6);
  EXPECT_TRUE(SameBits(alone.weight(), last.weight()));
  EXPECT_TRUE(SameBits(alone.bias(), last.bias()));
  ParameterStore other(DType::kFloat32, 8);
  const Linear another(other.root().Sub("last"), 5, 6);
  EXPECT_FALSE(SameBits(alone.weight(), another.weight()));
}

TEST(LinearTest, NamesShapesAndNoInputs) {
  ParameterStore store;
  const Linear layer(store.root().Sub("up"), 4, 2);
  EXPECT_EQ(store.Find("up.weight").shape(), (Shape{2, 4}));
  EXPECT_EQ(store.Find("up.bias").shape(), (Shape{2}));
  const Linear empty(store.root().Sub("empty"), 0, 2);
  EXPECT_EQ(empty(Tensor::Zeros({3, 0})).ToVector(),
            std::vector<double>(6, 0.0));
  EXPECT_EQ(layer(Tensor::Zeros({0, 4})).shape(), (Shape{0, 2}));
}

}  // namespace
}  // namespace wengert::nn
