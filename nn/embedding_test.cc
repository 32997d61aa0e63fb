#include "nn/embedding.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"

namespace wengert::nn {
namespace {

using ::testing::HasSubstr;

TEST(EmbeddingTest, GivesRowsTimesSqrtDim) {
  ParameterStore store;
  const Embedding plain(store.root().Sub("plain"), 5, 4);
  const Embedding scaled(store.root().Sub("scaled"), 5, 4,
                         {.scale_by_sqrt_dim = true});
  const auto ids = Tensor::Of<int64_t>({2, 2}, {3, 0, 3, 4});
  for (const Embedding* layer : {&plain, &scaled}) {
    const Tensor y = (*layer)(ids);
    ASSERT_EQ(y.shape(), (Shape{2, 2, 4}));
    const float scale = layer == &scaled ? 2 : 1;
    for (int i = 0; i < 4; ++i) {
      for (int c = 0; c < 4; ++c) {
        EXPECT_EQ(
            y.data<float>()[i * 4 + c],
            scale *
                layer->weight().data<float>()[ids.data<int64_t>()[i] * 4 + c]);
      }
    }
  }
}

TEST(EmbeddingTest, Gradients) {
  const auto ids = Tensor::Of<int32_t>({2, 3}, {0, 2, 2, 1, 2, 0});
  for (bool scale : {false, true}) {
    for (int64_t padding_id : {-1, 0}) {
      ParameterStore store(DType::kFloat64, 3);
      const Embedding layer(
          store.root(), 4, 3,
          {.scale_by_sqrt_dim = scale, .padding_id = padding_id});
      if (padding_id < 0) {
        EXPECT_TRUE(CheckLayer(store, {}, [&](auto) { return layer(ids); }));
        continue;
      }
      // The row of the padding has no gradient, although the value has one.
      Tape tape;
      tape.Backward(Sum(layer(ids)));
      const double s = scale ? std::sqrt(3.0) : 1;
      ExpectNear(layer.weight().grad(),
                 Tensor::Of<double>(
                     {4, 3}, {0, 0, 0, s, s, s, 3 * s, 3 * s, 3 * s, 0, 0, 0}),
                 1e-15, "grad");
    }
  }
}

TEST(EmbeddingTest, OnlyRowZeroIsPadding) {
  ParameterStore store(DType::kFloat64);
  const Embedding layer(store.root(), 3, 1, {.padding_id = 0});
  Tape tape;
  tape.Backward(Sum(layer(Tensor::Of<int64_t>({3}, {0, 0, 2}))));
  EXPECT_EQ(layer.weight().grad().ToVector(), (std::vector<double>{0, 0, 1}));
}

TEST(EmbeddingTest, StartsNormalAndPaddingAtZero) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    ParameterStore plain_store(dtype, 5), padded_store(dtype, 5);
    const Embedding plain(plain_store.root(), 200, 50);
    const Embedding padded(padded_store.root(), 200, 50, {.padding_id = 3});
    const auto a = plain.weight().ToVector(), b = padded.weight().ToVector();
    double sum = 0, squares = 0;
    for (double x : a) sum += x, squares += x * x;
    EXPECT_NEAR(sum / a.size(), 0, 0.04);
    EXPECT_NEAR(squares / a.size(), 1, 0.06);
    for (int64_t i = 0; i < 200 * 50; ++i) {
      EXPECT_EQ(b[i], i / 50 == 3 ? 0 : a[i]);
    }
  }
}

TEST(EmbeddingTest, RefusesRowsThatAreNotThere) {
  ParameterStore store;
  const Embedding layer(store.root().Sub("words"), 3, 2);
  EXPECT_THAT(ErrorOf([&] {
                layer(Tensor::Of<int64_t>({2}, {0, 3}));
              }),
              HasSubstr("3"));
  for (int64_t padding_id : {-2, 3}) {
    EXPECT_THAT(ErrorOf([&] {
                  Embedding(store.root().Sub("more"), 3, 2,
                            {.padding_id = padding_id});
                }),
                HasSubstr("with a table of 3 rows"));
  }
  // The refused ones left nothing behind.
  EXPECT_EQ(store.size(), 1);
}

}  // namespace
}  // namespace wengert::nn
