#include "nn/forward_hook.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"
#include "nn/nn.h"

namespace wengert::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A model with every layer that has a path.
struct Model {
  explicit Model(Params p)
      : words(p.Sub("words"), 5, 8),
        positions(p.Sub("positions"), 4, 8),
        transformer(p.Sub("transformer"),
                    {.n_encoder_layers = 1,
                     .n_decoder_layers = 1,
                     .layer = {.d_model = 8, .n_heads = 2, .hidden = 6}}),
        head(p.Sub("head"), 8, 5),
        path(p.layer_path()) {}

  Tensor operator()(const Tensor& ids) const {
    const auto scope = path.Open();
    const Tensor x = positions(words(ids));
    return path.Out(head(transformer(x, x)));
  }

  Embedding words;
  PositionalEncoding positions;
  Transformer transformer;
  Linear head;
  LayerPath path;
};

const Tensor& Ids() {
  static const Tensor& ids =
      *new Tensor(Tensor::Of<int64_t>({1, 3}, {0, 3, 4}));
  return ids;
}

// A function that notes the paths it is called with.
auto NotePaths(std::vector<std::string>& paths) {
  return [&](const std::string& path, const Tensor&) {
    paths.push_back(path);
    return Tensor();
  };
}

TEST(ForwardHookTest, EveryLayerShowsItsResult) {
  ParameterStore store;
  const Model model(store.root());
  std::vector<std::string> paths;
  const ForwardHook hook(store, "*", NotePaths(paths));
  const std::string encoder = "transformer.encoder",
                    decoder = "transformer.decoder";
  const std::vector<std::string> wanted = {
      "words", "positions", encoder + ".layers.0.self_attn",
      encoder + ".layers.0.norm1", encoder + ".layers.0.linear1",
      encoder + ".layers.0.linear2",
      // The MLP lies on the layer's own path.
      encoder + ".layers.0", encoder + ".layers.0.norm2", encoder + ".layers.0",
      encoder + ".norm", encoder, decoder + ".layers.0.self_attn",
      decoder + ".layers.0.norm1", decoder + ".layers.0.multihead_attn",
      decoder + ".layers.0.norm2", decoder + ".layers.0.linear1",
      decoder + ".layers.0.linear2", decoder + ".layers.0",
      decoder + ".layers.0.norm3", decoder + ".layers.0", decoder + ".norm",
      decoder, "transformer", "head", ""};
  model(Ids());
  EXPECT_EQ(paths, wanted);
  paths.clear();
  Tape tape;
  model(Ids());
  EXPECT_EQ(paths, wanted);
}

TEST(ForwardHookTest, LayersOfOtherModelsDoToo) {
  ParameterStore store;
  const Params p = store.root();
  const RMSNorm rms(p.Sub("rms"), 8);
  const GroupNorm group(p.Sub("group"), 2, 8);
  const GatedMLP mlp(p.Sub("mlp"), 8, 6);
  const LearnedPositions positions(p.Sub("positions"), 4, 8);
  const RelativeBias bias(p.Sub("bias"), 2);
  std::vector<std::string> paths;
  const ForwardHook hook(store, "*", NotePaths(paths));
  rms(Tensor::Ones({3, 8}));
  group(Tensor::Ones({1, 8, 3}));
  mlp(Tensor::Ones({3, 8}));
  positions(Tensor::Ones({1, 3, 8}));
  bias(3, 3);
  EXPECT_THAT(paths, ElementsAre("rms", "group", "mlp.gate_proj", "mlp.up_proj",
                                 "mlp.down_proj", "mlp", "positions", "bias"));
}

TEST(ForwardHookTest, SeesWhatALayerReturns) {
  ParameterStore store;
  const Model model(store.root());
  Tensor seen;
  const ForwardHook hook(store, "head",
                         [&](const std::string&, const Tensor& y) {
                           seen = y;
                           return Tensor();
                         });
  const Tensor y = model(Ids());
  EXPECT_TRUE(SameBits(seen, y));
  // In steps too.
  const Tensor x = RandomTensor({1, 2, 8}, 1, DType::kFloat32);
  std::vector<std::string> paths;
  const ForwardHook steps(store, "transformer.decoder*", NotePaths(paths));
  DecoderCache cache = model.transformer.decoder().Start(x);
  EXPECT_THAT(paths, ElementsAre());
  model.transformer.decoder().Step(x, cache);
  EXPECT_EQ(paths.size(), 11u);
}

TEST(ForwardHookTest, MatchesByPatternAndEndsWithItsScope) {
  ParameterStore store;
  const Model model(store.root());
  std::vector<std::string> norms, attentions;
  {
    const ForwardHook first(store, "*.norm1", NotePaths(norms));
    const ForwardHook second(store, "*_attn", NotePaths(attentions));
    model(Ids());
  }
  EXPECT_THAT(norms, ElementsAre("transformer.encoder.layers.0.norm1",
                                 "transformer.decoder.layers.0.norm1"));
  EXPECT_EQ(attentions.size(), 3u);
  model(Ids());
  EXPECT_EQ(norms.size(), 2u);
}

// Two hooks on one layer run in turn, and gradients flow through what they do.
TEST(ForwardHookTest, MayReplaceTheResult) {
  ParameterStore store(DType::kFloat64, 1);
  const Linear layer(store.root().Sub("layer"), 3, 2);
  const Tensor x = RandomTensor({4, 3}, 1);
  const Tensor y = layer(x);
  const ForwardHook twice(
      store, "layer",
      [](const std::string&, const Tensor& y) { return 2 * y; });
  const ForwardHook shifted(
      store, "layer",
      [](const std::string&, const Tensor& y) { return y + 1; });
  EXPECT_TRUE(SameBits(layer(x), 2 * y + 1));
  EXPECT_TRUE(CheckLayer(store, {x}, [&](auto in) { return layer(in[0]); }));
  Tape tape;
  tape.Backward(Sum(layer(x)));
  ExpectNear(layer.bias().grad(), Tensor::Full({2}, 8, DType::kFloat64), 1e-14,
             "the gradient of the bias");
}

TEST(ForwardHookTest, RunsAgainWithACheckpoint) {
  ParameterStore store;
  const Linear layer(store.root().Sub("layer"), 3, 2);
  std::vector<std::string> paths;
  const ForwardHook hook(store, "layer", NotePaths(paths));
  Tape tape;
  const Tensor x = RandomTensor({4, 3}, 1, DType::kFloat32);
  const Tensor y = Checkpoint([&](const Tensor& x) { return layer(x); }, x);
  EXPECT_EQ(paths.size(), 1u);
  tape.Backward(Sum(y));
  EXPECT_EQ(paths.size(), 2u);
}

TEST(ForwardHookTest, RefusesWhatFitsNothing) {
  ParameterStore store;
  EXPECT_THAT(ErrorOf([&] {
                ForwardHook(store, "*", [](const std::string&, const Tensor&) {
                  return Tensor();
                });
              }),
              HasSubstr("no layer matches '*'; there are none"));
  const Model model(store.root());
  std::vector<std::string> paths;
  EXPECT_THAT(ErrorOf([&] {
                ForwardHook(store, "transfromer.encoder", NotePaths(paths));
              }),
              HasSubstr("no layer matches 'transfromer.encoder'; the nearest "
                        "is 'transformer.encoder'"));
  EXPECT_THAT(ErrorOf([&] { ForwardHook(store, "head", ForwardFunction()); }),
              HasSubstr("the function is empty"));
  model(Ids());
  EXPECT_THAT(paths, ElementsAre());
  const ForwardHook wrong(
      store, "head",
      [](const std::string&, const Tensor& y) { return Sum(y); });
  EXPECT_THAT(ErrorOf([&] { model(Ids()); }),
              HasSubstr("ForwardHook: 'head' returned float32 [] for float32 "
                        "[1, 3, 5] of 'head'"));
}

// What a hook throws reaches the caller.
TEST(ForwardHookTest, PassesExceptionsOn) {
  ParameterStore store;
  const Model model(store.root());
  const ForwardHook hook(store, "head",
                         [](const std::string& path, const Tensor&) -> Tensor {
                           throw Error("stop at " + path);
                         });
  EXPECT_EQ(ErrorOf([&] { model(Ids()); }), "stop at head");
}

TEST(ForwardHookTest, AloneWithItsStore) {
  ParameterStore store;
  const Linear layer(store.root().Sub("layer"), 3, 2);
  std::vector<std::string> paths;
  auto hook = std::make_unique<ForwardHook>(store, "layer", NotePaths(paths));
  ParameterStore clone = store.Clone();
  const Linear copy(clone.root().Sub("layer"), 3, 2);
  const Tensor x = RandomTensor({4, 3}, 1, DType::kFloat32);
  copy(x);
  EXPECT_THAT(paths, ElementsAre());
  // The store may be moved, and may end before the hook and the layer.
  {
    const ParameterStore moved = std::move(store);
    layer(x);
    EXPECT_EQ(paths.size(), 1u);
  }
  layer(x);
  EXPECT_EQ(paths.size(), 2u);
  hook.reset();
  layer(x);
  EXPECT_EQ(paths.size(), 2u);
}

}  // namespace
}  // namespace wengert::nn
