#include "nn/positional_encoding.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"

namespace wengert::nn {
namespace {

using ::testing::HasSubstr;

TEST(SinusoidalPositionsTest, Values) {
  const Tensor odd = SinusoidalPositions(2, 3, DType::kFloat64);
  ExpectNear(
      odd,
      Tensor::Of<double>({2, 3}, {0, 1, 0, 0.8414710, 0.5403023, 0.0021544}),
      5e-8, "d = 3");
  // 10000^(2/4) = 100.
  const Tensor even = SinusoidalPositions(8, 4, DType::kFloat64);
  for (int t = 0; t < 8; ++t) {
    const double* row = even.data<double>() + t * 4;
    EXPECT_DOUBLE_EQ(row[0], std::sin(t));
    EXPECT_DOUBLE_EQ(row[1], std::cos(t));
    EXPECT_DOUBLE_EQ(row[2], std::sin(t / 100.0));
    EXPECT_DOUBLE_EQ(row[3], std::cos(t / 100.0));
  }
}

TEST(SinusoidalPositionsTest, EdgesAndFloatAccuracy) {
  EXPECT_EQ(SinusoidalPositions(0, 4).shape(), (Shape{0, 4}));
  EXPECT_EQ(SinusoidalPositions(2, 1).shape(), (Shape{2, 1}));
  EXPECT_EQ(SinusoidalPositions(2, 4).dtype(), DType::kFloat32);
  // Each value is the rounded exact one, at far positions too.
  EXPECT_TRUE(SameBits(
      SinusoidalPositions(5000, 6),
      SinusoidalPositions(5000, 6, DType::kFloat64).To(DType::kFloat32)));
}

TEST(PositionalEncodingTest, AddsTheFirstRows) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    ParameterStore store(dtype);
    const PositionalEncoding layer(store.root(), 10, 4);
    EXPECT_EQ(store.size(), 0);
    const Tensor x = RandomTensor({2, 3, 4}, 1, dtype);
    EXPECT_TRUE(SameBits(layer(x), x + SinusoidalPositions(3, 4, dtype)));
  }
}

TEST(PositionalEncodingTest, Gradients) {
  Generator generator(1);
  ParameterStore store(DType::kFloat64);
  const PositionalEncoding layer(store.root(), 10, 3, 0.4);
  EXPECT_TRUE(CheckLayer(store, {RandomTensor({2, 2, 3}, 1)},
                         [&](auto x) { return layer(x[0]); },
                         {.generator = &generator}));
}

TEST(PositionalEncodingTest, RefusesLongerAndOtherInputs) {
  ParameterStore store;
  const PositionalEncoding layer(store.root(), 5, 4);
  EXPECT_EQ(layer(Tensor::Zeros({5, 4})).shape(), (Shape{5, 4}));
  for (const Shape& shape : {Shape{1, 6, 4}, Shape{1, 5, 3}, Shape{4}}) {
    const std::string message = ErrorOf([&] { layer(Tensor::Zeros(shape)); });
    EXPECT_THAT(message, HasSubstr(shape.ToString()));
    EXPECT_THAT(message, HasSubstr("[..., T, 4] with T at most 5"));
  }
}

}  // namespace
}  // namespace wengert::nn
