#include "nn/encoder_layer.h"

#include <cmath>
#include <vector>

#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"

namespace wengert::nn {
namespace {

TEST(EncoderLayerTest, IsPyTorchs) {
  const auto all = ReadReference("encoder_layer.txt");
  const Tensor key_mask = ToBool(all.at("key_mask"));
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (Norm norm : {Norm::kPost, Norm::kPre}) {
      for (auto f : {Activation::kRelu, Activation::kGelu}) {
        const std::string name =
            std::string(norm == Norm::kPost ? "post" : "pre") +
            (f == Activation::kRelu ? "_relu." : "_gelu.");
        SCOPED_TRACE(name);
        ParameterStore store(dtype);
        const EncoderLayer layer(store.root(), {.d_model = 6,
                                                .n_heads = 2,
                                                .hidden = 9,
                                                .activation = f,
                                                .norm = norm});
        SetParameters(store, Under(all, "parameter."));
        const auto reference = Under(all, name);
        ExpectMatchesReference(store, reference, {"x"}, [&](auto x) {
          return layer(x[0], {.key_mask = key_mask});
        });
        ExpectMatchesReference(store, reference, {"x"}, [&](auto x) {
          return layer.WithWeights(x[0], {.key_mask = key_mask}).out;
        });
      }
    }
  }
}

TEST(EncoderLayerTest, Gradients) {
  for (Norm norm : {Norm::kPost, Norm::kPre}) {
    Generator generator(1);
    ParameterStore store(DType::kFloat64, 1);
    const EncoderLayer layer(store.root(), {.d_model = 4,
                                            .n_heads = 2,
                                            .hidden = 3,
                                            .dropout = 0.2,
                                            .activation = Activation::kGelu,
                                            .norm = norm});
    Randomise(store);
    EXPECT_TRUE(
        CheckLayer(store, {RandomTensor({1, 3, 4}, 2)},
                   [&](auto x) { return layer(x[0], {.causal = true}); },
                   {.generator = &generator, .subsets = false}));
  }
}

TEST(EncoderLayerTest, AWrongOptionLeavesNoHalfOfALayer) {
  const EncoderOptions good = {.d_model = 4, .n_heads = 2, .hidden = 6};
  std::vector<EncoderOptions> wrong(4, good);
  wrong[0].hidden = -1;
  wrong[1].n_heads = 3;
  wrong[2].d_model = 0;
  wrong[3].dropout = 2;
  ParameterStore store;
  for (const EncoderOptions& options : wrong) {
    EXPECT_THAT(ErrorOf([&] { EncoderLayer(store.root(), options); }),
                ::testing::StartsWith("EncoderLayer: d_model "));
    EXPECT_EQ(store.size(), 0);
  }
  EncoderLayer(store.root(), good);
}

TEST(EncoderLayerTest, DropoutIsOffInEvaluation) {
  ParameterStore store, plain_store;
  const EncoderOptions plain_options = {
      .d_model = 8, .n_heads = 2, .hidden = 16};
  EncoderOptions options = plain_options;
  options.dropout = 0.5;
  const EncoderLayer layer(store.root(), options);
  const EncoderLayer plain(plain_store.root(), plain_options);
  const Tensor x = RandomTensor({2, 3, 8}, 1, DType::kFloat32);
  const Tensor y = plain(x);
  EXPECT_TRUE(SameBits(layer(x), y));
  {
    Tape tape(Tape::kEval);
    EXPECT_TRUE(SameBits(layer(x), y));
  }
  Generator generator(1);
  Tape tape(generator);
  const Tensor once = layer(x), again = layer(x);
  EXPECT_FALSE(SameBits(once, y));
  EXPECT_FALSE(SameBits(once, again));
}

// With everything dropped each branch is gone and the norms are left.
TEST(EncoderLayerTest, BothBranchesAreDropped) {
  const Tensor x = RandomTensor({2, 3, 8}, 1, DType::kFloat32);
  Generator generator(1);
  for (Norm norm : {Norm::kPost, Norm::kPre}) {
    ParameterStore store;
    const EncoderLayer layer(
        store.root(),
        {.d_model = 8, .n_heads = 2, .hidden = 16, .dropout = 1, .norm = norm});
    Tape tape(generator);
    const uint64_t before = generator.offset();
    const Tensor y = layer(x);
    // Attention weights, hidden values and both branches draw.
    EXPECT_EQ(generator.offset() - before, 4u);
    const Tensor wanted =
        norm == Norm::kPost ? wengert::LayerNorm(wengert::LayerNorm(x)) : x;
    ExpectNear(y, wanted, 1e-6, "y");
  }
}

TEST(EncoderLayerTest, UsesItsEps) {
  const Tensor x = RandomTensor({2, 3, 4}, 1);
  ParameterStore store(DType::kFloat64);
  const EncoderLayer layer(
      store.root(), {.d_model = 4, .n_heads = 2, .hidden = 3, .eps = 1e12});
  // Such an eps divides what each norm gets by a million.
  for (double y : layer(x).ToVector()) EXPECT_LT(std::abs(y), 1e-5);
}

}  // namespace
}  // namespace wengert::nn
