#include "nn/encoder.h"

#include <algorithm>

#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/embedding.h"
#include "nn/layer_testlib.h"
#include "nn/positional_encoding.h"

namespace wengert::nn {
namespace {

using ::testing::HasSubstr;

constexpr EncoderOptions kPre = {
    .d_model = 4, .n_heads = 2, .hidden = 6, .norm = Norm::kPre};
constexpr EncoderOptions kPost = {.d_model = 4, .n_heads = 2, .hidden = 6};

TEST(EncoderTest, RefusesANegativeNumberOfLayers) {
  ParameterStore store;
  EXPECT_THAT(ErrorOf([&] { Encoder(store.root(), -1, kPost); }),
              HasSubstr("n_layers -1"));
}

TEST(EncoderTest, IsItsLayersInTurn) {
  const Tensor x = RandomTensor({2, 3, 4}, 1, DType::kFloat32);
  for (const EncoderOptions& options : {kPost, kPre}) {
    ParameterStore store, parts_store;
    const Encoder encoder(store.root().Sub("encoder"), 2, options);
    const Params p = parts_store.root().Sub("encoder");
    const EncoderLayer first(p.Sub("layers").Sub(0), options);
    const EncoderLayer second(p.Sub("layers").Sub(1), options);
    Tensor y = second(first(x));
    if (options.norm == Norm::kPre) y = LayerNorm(p.Sub("norm"), 4)(y);
    EXPECT_TRUE(SameBits(encoder(x), y));
    EXPECT_EQ(store.size(), parts_store.size());
    ExpectNear(encoder.WithWeights(x).out, y, 1e-6, "with weights");
  }
}

TEST(EncoderTest, GivesTheWeightsOfEachLayer) {
  ParameterStore store(DType::kFloat64);
  const Encoder encoder(store.root(), 3, kPost);
  const auto key_mask = Tensor::Of<bool>({2, 3}, {true, true, true,  //
                                                  true, false, true});
  const auto [out, weights] =
      encoder.WithWeights(RandomTensor({2, 3, 4}, 1), {.key_mask = key_mask});
  ASSERT_EQ(weights.size(), 3u);
  for (const Tensor& w : weights) {
    ASSERT_EQ(w.shape(), (Shape{2, 2, 3, 3}));
    ExpectNear(Sum(w, -1), Tensor::Ones({2, 2, 3}, DType::kFloat64), 1e-14,
               "the sum of the weights");
    for (int64_t i = 0; i < w.size(); ++i) {
      const bool hidden = i / 18 == 1 && i % 3 == 1;
      EXPECT_EQ(w.data<double>()[i] == 0, hidden);
    }
  }
  EXPECT_FALSE(SameBits(weights[0], weights[1]));
}

TEST(EncoderTest, Gradients) {
  for (EncoderOptions options : {kPost, kPre}) {
    options.activation = Activation::kGelu;
    ParameterStore store(DType::kFloat64, 1);
    const Encoder encoder(store.root(), 2, options);
    // Along random directions: there are 400 parameters.
    EXPECT_TRUE(CheckLayer(store, {RandomTensor({2, 2, 4}, 2)},
                           [&](auto x) { return encoder(x[0]); },
                           {.directions = 2, .subsets = false}));
  }
}

TEST(EncoderTest, TheTableNamesEveryParameter) {
  ParameterStore store;
  const Encoder encoder(store.root().Sub("encoder"), 2, kPre);
  EXPECT_EQ(store.size(), 2 * 12 + 2);
  const std::string table = store.Table();
  for (const char* path :
       {"encoder.layers.0.self_attn.in_proj_weight",
        "encoder.layers.0.self_attn.in_proj_bias",
        "encoder.layers.0.self_attn.out_proj.weight",
        "encoder.layers.0.self_attn.out_proj.bias",
        "encoder.layers.0.linear1.weight", "encoder.layers.0.linear1.bias",
        "encoder.layers.1.linear2.weight", "encoder.layers.1.linear2.bias",
        "encoder.layers.1.norm1.weight", "encoder.layers.1.norm1.bias",
        "encoder.layers.1.norm2.weight", "encoder.layers.1.norm2.bias",
        "encoder.norm.weight", "encoder.norm.bias"}) {
    EXPECT_THAT(table, HasSubstr(path));
  }
}

TEST(EncoderTest, OneMoreLayerChangesNoOthersStart) {
  ParameterStore two_store, three_store;
  const Encoder two(two_store.root(), 2, kPre);
  const Encoder three(three_store.root(), 3, kPre);
  for (const Parameter* p : two_store.parameters()) {
    EXPECT_TRUE(SameBits(p->value, three_store.Find(p->name))) << p->name;
  }
  EXPECT_FALSE(SameBits(two_store.Find("layers.0.linear1.weight"),
                        two_store.Find("layers.1.linear1.weight")));
}

// "one is one": without positions the same word gets the same row, with them
// it does not.
TEST(EncoderTest, EqualWordsGiveEqualRows) {
  ParameterStore store;
  const EncoderOptions options = {.d_model = 12, .n_heads = 3, .hidden = 24};
  const Embedding words(store.root().Sub("words"), 5, 12);
  const PositionalEncoding positions(store.root(), 3, 12);
  const Encoder encoder(store.root().Sub("encoder"), 2, options);
  const Tensor x = words(Tensor::Of<int64_t>({1, 3}, {2, 1, 2}));
  const auto row = [](const Tensor& y, int64_t t) {
    return Slice(Reshape(y, {3, 12}), 0, t, 1);
  };
  const Tensor y = encoder(x), with_weights = encoder.WithWeights(x).out;
  EXPECT_TRUE(SameBits(row(y, 0), row(y, 2)));
  EXPECT_TRUE(SameBits(row(with_weights, 0), row(with_weights, 2)));
  const Tensor z = encoder(positions(x));
  EXPECT_FALSE(SameBits(row(z, 0), row(z, 2)));
}

// What stands behind a key mask does not reach the other rows, bit for bit.
TEST(EncoderTest, PaddingDoesNotMatter) {
  ParameterStore store;
  const Encoder encoder(store.root(), 2, kPost);
  const auto key_mask = Tensor::Of<bool>({1, 3}, {true, true, false});
  const Tensor x = RandomTensor({1, 2, 4}, 1, DType::kFloat32);
  const auto padded = [&](uint64_t seed) {
    const Tensor pad = RandomTensor({1, 1, 4}, seed, DType::kFloat32);
    return Slice(encoder(Concat({x, pad}, 1), {.key_mask = key_mask}), 1, 0, 2);
  };
  EXPECT_TRUE(SameBits(padded(2), padded(3)));
  ExpectNear(padded(2), encoder(x), 1e-6, "without the padding");
}

TEST(EncoderTest, CausalRowsDoNotSeeLaterOnes) {
  ParameterStore store;
  const Encoder encoder(store.root(), 2, kPre);
  const Tensor x = RandomTensor({1, 4, 4}, 1, DType::kFloat32);
  const Tensor y = encoder(x, {.causal = true});
  const Tensor z = encoder(Slice(x, 1, 0, 2), {.causal = true});
  ExpectNear(Slice(y, 1, 0, 2), z, 1e-6, "the first rows");
}

TEST(EncoderTest, NamesTheLayerOfAFault) {
  ParameterStore store;
  const Encoder encoder(store.root().Sub("encoder"), 2, kPost);
  // Gains so large that the norm overflows.
  Tensor gain = store.Find("encoder.layers.1.norm1.weight");
  std::fill_n(gain.mutable_data<float>(), 4, 3e38f);
  Tape tape;
  tape.set_check_finite(true);
  EXPECT_THAT(ErrorOf([&] {
                encoder(RandomTensor({1, 2, 4}, 1, DType::kFloat32));
              }),
              HasSubstr("encoder.layers.1.norm1"));
}

}  // namespace
}  // namespace wengert::nn
