#include "nn/transformer.h"

#include <string>

#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"

namespace wengert::nn {
namespace {

TransformerOptions Options(Norm norm) {
  return {.n_encoder_layers = 1,
          .n_decoder_layers = 2,
          .layer = {.d_model = 4, .n_heads = 2, .hidden = 6, .norm = norm}};
}

TEST(TransformerTest, IsPyTorchs) {
  const auto all = ReadReference("transformer.txt");
  const DecoderMasks masks = {
      .key_mask = ToBool(all.at("key_mask")),
      .memory_key_mask = ToBool(all.at("memory_key_mask"))};
  for (Norm norm : {Norm::kPost, Norm::kPre}) {
    const std::string name = norm == Norm::kPost ? "post." : "pre.";
    SCOPED_TRACE(name);
    ParameterStore store(DType::kFloat64);
    const Transformer model(store.root(), Options(norm));
    SetParameters(store, Under(all, "parameter."));
    ExpectMatchesReference(store, Under(all, name), {"source", "target"},
                           [&](auto x) { return model(x[0], x[1], masks); });
  }
}

TEST(TransformerTest, Gradients) {
  ParameterStore store(DType::kFloat64, 1);
  TransformerOptions options = Options(Norm::kPre);
  options.n_decoder_layers = 1;
  options.layer.activation = Activation::kGelu;
  const Transformer model(store.root(), options);
  EXPECT_TRUE(CheckLayer(
      store, {RandomTensor({2, 3, 4}, 2), RandomTensor({2, 2, 4}, 3)},
      [&](auto x) { return model(x[0], x[1]); },
      {.directions = 2, .subsets = false}));
}

TEST(TransformerTest, ADecoderHasItsEncodersNorms) {
  for (const bool last_norm : {false, true}) {
    for (const Norm norm : {Norm::kPost, Norm::kPre}) {
      ParameterStore store;
      const EncoderOptions options = {.d_model = 4,
                                      .n_heads = 2,
                                      .hidden = 6,
                                      .norm = norm,
                                      .last_norm = last_norm};
      const Encoder encoder(store.root().Sub("encoder"), 1, options);
      EXPECT_EQ(store.size(), norm == Norm::kPre || last_norm ? 14 : 12);
      const Decoder decoder(store.root().Sub("decoder"), 1, options);
      EXPECT_EQ(store.size(), norm == Norm::kPre || last_norm ? 34 : 30);
    }
  }
}

TEST(TransformerTest, GivesTheWeightsOnTheMemory) {
  ParameterStore store(DType::kFloat64);
  const Transformer model(store.root(), Options(Norm::kPost));
  const Tensor source = RandomTensor({1, 3, 4}, 1);
  const Tensor target = RandomTensor({1, 2, 4}, 2);
  const auto memory_key_mask = Tensor::Of<bool>({1, 3}, {true, false, true});
  const auto [out, weights] = model.decoder().WithWeights(
      target, model.encoder()(source, {.key_mask = memory_key_mask}),
      {.memory_key_mask = memory_key_mask});
  ExpectNear(out, model(source, target, {.memory_key_mask = memory_key_mask}),
             1e-12, "out");
  ASSERT_EQ(weights.size(), 2u);
  for (const Tensor& w : weights) {
    ASSERT_EQ(w.shape(), (Shape{1, 2, 2, 3}));
    ExpectNear(Sum(w, -1), Tensor::Ones({1, 2, 2}, DType::kFloat64), 1e-14,
               "the sum of the weights");
    for (int64_t i = 1; i < w.size(); i += 3) {
      EXPECT_EQ(w.data<double>()[i], 0);
    }
  }
}

TEST(TransformerTest, RefusesANegativeNumberOfLayers) {
  ParameterStore store;
  EXPECT_THAT(ErrorOf([&] {
                Decoder(store.root(), -1,
                        {.d_model = 4, .n_heads = 2, .hidden = 6});
              }),
              ::testing::HasSubstr("Decoder: n_layers -1"));
}

}  // namespace
}  // namespace wengert::nn
