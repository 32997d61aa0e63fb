#include "nn/decoder_layer.h"

#include <string>

#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"

namespace wengert::nn {
namespace {

TEST(DecoderLayerTest, IsPyTorchs) {
  const auto all = ReadReference("decoder_layer.txt");
  const DecoderMasks masks = {
      .key_mask = ToBool(all.at("key_mask")),
      .memory_key_mask = ToBool(all.at("memory_key_mask"))};
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (Norm norm : {Norm::kPost, Norm::kPre}) {
      const std::string name = norm == Norm::kPost ? "post" : "pre";
      SCOPED_TRACE(name);
      ParameterStore store(dtype);
      const DecoderLayer layer(store.root(), {.d_model = 6,
                                              .n_heads = 2,
                                              .hidden = 9,
                                              .activation = Activation::kGelu,
                                              .norm = norm});
      SetParameters(store, Under(all, "parameter."));
      const auto reference = Under(all, name + ".");
      ExpectMatchesReference(store, reference, {"x", "memory"},
                             [&](auto x) { return layer(x[0], x[1], masks); });
      ExpectMatchesReference(store, reference, {"x", "memory"}, [&](auto x) {
        return layer.WithWeights(x[0], x[1], masks).out;
      });
      ExpectMatchesReference(
          store, Under(all, name + "_open."), {"x", "memory"},
          [&](auto x) { return layer(x[0], x[1], {.causal = false}); });
    }
  }
}

TEST(DecoderLayerTest, Gradients) {
  for (Norm norm : {Norm::kPost, Norm::kPre}) {
    Generator generator(1);
    ParameterStore store(DType::kFloat64, 1);
    const DecoderLayer layer(store.root(), {.d_model = 4,
                                            .n_heads = 2,
                                            .hidden = 3,
                                            .dropout = 0.2,
                                            .activation = Activation::kGelu,
                                            .norm = norm});
    Randomise(store);
    EXPECT_TRUE(CheckLayer(
        store, {RandomTensor({1, 3, 4}, 2), RandomTensor({1, 2, 4}, 3)},
        [&](auto x) { return layer(x[0], x[1]); },
        {.directions = 2, .generator = &generator, .subsets = false}));
  }
}

TEST(DecoderLayerTest, AWrongOptionLeavesNoHalfOfALayer) {
  ParameterStore store;
  const std::string message = ErrorOf([&] {
    DecoderLayer(store.root(), {.d_model = 4, .n_heads = 3, .hidden = 6});
  });
  EXPECT_THAT(message, ::testing::StartsWith("DecoderLayer: d_model 4"));
  EXPECT_EQ(store.size(), 0);
}

TEST(DecoderLayerTest, SeesNothingLaterUnlessAsked) {
  ParameterStore store;
  const DecoderLayer layer(store.root(),
                           {.d_model = 8, .n_heads = 2, .hidden = 16});
  const Tensor x = RandomTensor({1, 3, 8}, 1, DType::kFloat32);
  const Tensor memory = RandomTensor({1, 2, 8}, 2, DType::kFloat32);
  const auto first = [](const Tensor& y) { return Slice(y, 1, 0, 2); };
  EXPECT_TRUE(SameBits(first(layer(x, memory)), layer(first(x), memory)));
  EXPECT_FALSE(SameBits(first(layer(x, memory, {.causal = false})),
                        layer(first(x), memory, {.causal = false})));
}

// Attention to each, hidden values and the three branches draw: 2 + 1 + 3.
TEST(DecoderLayerTest, EachBranchIsDropped) {
  const Tensor x = RandomTensor({2, 3, 8}, 1, DType::kFloat32);
  Generator generator(1);
  ParameterStore store;
  const DecoderLayer layer(store.root(), {.d_model = 8,
                                          .n_heads = 2,
                                          .hidden = 16,
                                          .dropout = 1,
                                          .norm = Norm::kPre});
  Tape tape(generator);
  const uint64_t before = generator.offset();
  ExpectNear(layer(x, x), x, 0, "y");
  EXPECT_EQ(generator.offset() - before, 6u);
}

}  // namespace
}  // namespace wengert::nn
