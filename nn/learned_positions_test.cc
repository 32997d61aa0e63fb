#include "nn/learned_positions.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"

namespace wengert::nn {
namespace {

using ::testing::HasSubstr;

TEST(LearnedPositionsTest, AddsTheFirstRows) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    ParameterStore store(dtype, 1);
    const LearnedPositions layer(store.root().Sub("wpe"), 5, 3);
    const Tensor table = store.Find("wpe.weight");
    const Tensor x = RandomTensor({2, 2, 3}, 1, dtype);
    EXPECT_EQ(table.shape(), (Shape{5, 3}));
    EXPECT_TRUE(SameBits(layer(x), x + Slice(table, 0, 0, 2)));
    EXPECT_TRUE(SameBits(layer(x, 3), x + Slice(table, 0, 3, 2)));
  }
}

TEST(LearnedPositionsTest, Gradients) {
  Generator generator(1);
  ParameterStore store(DType::kFloat64, 1);
  const LearnedPositions layer(store.root(), 4, 2, {.dropout = 0.3});
  EXPECT_TRUE(CheckLayer(store, {RandomTensor({2, 3, 2}, 2)},
                         [&](auto x) { return layer(x[0], 1); },
                         {.generator = &generator}));
}

TEST(LearnedPositionsTest, Errors) {
  ParameterStore store;
  const LearnedPositions layer(store.root(), 4, 2);
  const Tensor x = Tensor::Zeros({1, 3, 2});
  EXPECT_THAT(ErrorOf([&] { layer(x, 2); }),
              HasSubstr("x float32 [1, 3, 2], offset 2; wanted [..., T, 2] "
                        "with offset + T at most 4"));
  EXPECT_THAT(ErrorOf([&] { layer(x, -1); }), HasSubstr("offset -1"));
  EXPECT_THAT(ErrorOf([&] {
                layer(Tensor::Zeros({3, 3}));
              }),
              HasSubstr("x float32 [3, 3]"));
  EXPECT_THAT(ErrorOf([&] { layer(Tensor::Zeros({2})); }),
              HasSubstr("x float32 [2]"));
}

}  // namespace
}  // namespace wengert::nn
