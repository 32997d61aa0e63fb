#include "nn/multi_head_attention.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"

namespace wengert::nn {
namespace {

using ::testing::HasSubstr;

class PyTorchTest : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(MultiHeadAttention, PyTorchTest,
                         ::testing::Values("self", "self_key_mask",
                                           "self_causal", "self_mask",
                                           "self_bias_key_mask", "cross",
                                           "cross_key_mask"),
                         [](const auto& info) { return info.param; });

TEST_P(PyTorchTest, OutputsGradientsAndWeightsAreEqual) {
  const std::string name = GetParam();
  const auto all = ReadReference("multi_head_attention.txt");
  const TensorMap reference = Under(all, name + ".");
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    ParameterStore store(dtype);
    const MultiHeadAttention layer(store.root(), 6, 2);
    SetParameters(store, Under(all, "parameter."));
    AttentionOptions options;
    if (reference.count("key_mask")) {
      options.key_mask = ToBool(reference.at("key_mask"));
    }
    if (name == "self_causal") {
      options.causal = true;
    } else if (reference.count("mask")) {
      options.mask = ToBool(reference.at("mask"));
    }
    if (reference.count("bias")) {
      options.bias = reference.at("bias").To(dtype);
    }
    std::vector<std::string> inputs = {"x"};
    if (reference.count("memory")) inputs.push_back("memory");
    ExpectMatchesReference(store, reference, inputs, [&](auto x) {
      return x.size() == 1 ? layer(x[0], options) : layer(x[0], x[1], options);
    });
    AttentionResult result;
    ExpectMatchesReference(store, reference, inputs, [&](auto x) {
      result = x.size() == 1 ? layer.WithWeights(x[0], options)
                             : layer.WithWeights(x[0], x[1], options);
      return result.out;
    });
    ExpectNear(result.weights, reference.at("weights"), Tolerance(dtype),
               "weights");
  }
}

struct RotaryCase {
  const char* name;
  RotaryOptions options;
};

TEST(MultiHeadAttentionTest, RotaryIsTheFormulaInPyTorch) {
  const auto all = ReadReference("rotary_attention.txt");
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const RotaryCase& c :
         {RotaryCase{"halves.", {}},
          RotaryCase{"interleaved.",
                     {.base = 100, .dims = 4, .interleaved = true}}}) {
      ParameterStore store(dtype);
      const MultiHeadAttention layer(store.root(), 12, 2,
                                     {.rotary = c.options});
      SetParameters(store, Under(all, "parameter."));
      ExpectMatchesReference(store, Under(all, c.name), {"x"}, [&](auto x) {
        return layer(x[0], {.causal = true});
      });
      ExpectMatchesReference(store, Under(all, c.name), {"x"}, [&](auto x) {
        return layer.WithWeights(x[0], {.causal = true}).out;
      });
    }
  }
}

TEST(MultiHeadAttentionTest, RotaryGradients) {
  ParameterStore store(DType::kFloat64, 1);
  const MultiHeadAttention layer(store.root(), 8, 2,
                                 {.n_kv_heads = 1, .rotary = RotaryOptions()});
  EXPECT_TRUE(CheckLayer(store, {RandomTensor({1, 3, 8}, 2)},
                         [&](auto x) { return layer(x[0]); }));
}

TEST(MultiHeadAttentionTest, Gradients) {
  const auto key_mask = Tensor::Of<bool>({2, 3}, {true, true, false,  //
                                                  false, true, true});
  for (int64_t n_kv_heads : {2, 1}) {
    for (bool bias : {true, false}) {
      Generator generator(1);
      ParameterStore store(DType::kFloat64, 1);
      const MultiHeadAttention layer(
          store.root(), 4, 2,
          {.n_kv_heads = n_kv_heads, .dropout = 0.3, .bias = bias});
      EXPECT_EQ(store.size(), bias ? 4 : 2);
      Randomise(store);
      EXPECT_TRUE(CheckLayer(store, {RandomTensor({2, 3, 4}, 2)},
                             [&](auto x) {
                               return layer(x[0], {.causal = true,
                                                   .key_mask = key_mask});
                             },
                             {.name = "self", .generator = &generator}));
      EXPECT_TRUE(CheckLayer(
          store, {RandomTensor({2, 2, 4}, 2), RandomTensor({2, 3, 4}, 3)},
          [&](auto x) { return layer(x[0], x[1], {.key_mask = key_mask}); },
          {.name = "cross", .generator = &generator}));
      EXPECT_TRUE(CheckLayer(store, {RandomTensor({2, 3, 4}, 2)},
                             [&](auto x) {
                               const AttentionResult r =
                                   layer.WithWeights(x[0]);
                               return Sum(r.out) + Sum(Square(r.weights));
                             },
                             {.name = "weights", .generator = &generator}));
    }
  }
}

// A shared key head is the same as one key head for each query head, all alike.
TEST(MultiHeadAttentionTest, KeyHeadsAreShared) {
  ParameterStore few_store(DType::kFloat64, 1), all_store(DType::kFloat64, 1);
  const MultiHeadAttention few(few_store.root(), 8, 4,
                               {.n_kv_heads = 2, .d_key = 3});
  const MultiHeadAttention all(all_store.root(), 8, 4, {.d_key = 3});
  Randomise(few_store);
  const auto repeat = [](const Tensor& rows) {  // [(4 + 2 + 2) 3, ...]
    std::vector<Tensor> heads;
    for (int64_t head : {0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 7, 7}) {
      heads.push_back(Slice(rows, 0, head * 3, 3));
    }
    return Concat(heads, 0);
  };
  SetParameters(all_store,
                {{"in_proj_weight", repeat(few_store.Find("in_proj_weight"))},
                 {"in_proj_bias", repeat(few_store.Find("in_proj_bias"))},
                 {"out_proj.weight", few_store.Find("out_proj.weight")},
                 {"out_proj.bias", few_store.Find("out_proj.bias")}});
  const Tensor x = RandomTensor({2, 5, 8}, 1);
  ExpectNear(few(x), all(x), 1e-13, "self");
  const Tensor query = RandomTensor({2, 3, 8}, 2);
  ExpectNear(few(query, x), all(query, x), 1e-13, "cross");
}

TEST(MultiHeadAttentionTest, SelfIsCrossWithItself) {
  ParameterStore store(DType::kFloat64, 1);
  const MultiHeadAttention layer(store.root(), 6, 3);
  const Tensor x = RandomTensor({2, 5, 6}, 1);
  ExpectNear(layer(x), layer(x, x), 1e-14, "out");
}

TEST(MultiHeadAttentionTest, DropoutActsInTrainingAndNotOnReturnedWeights) {
  ParameterStore store(DType::kFloat32, 1);
  const MultiHeadAttention layer(store.root(), 6, 3, {.dropout = 0.5});
  const Tensor x = RandomTensor({2, 5, 6}, 1, DType::kFloat32);
  const AttentionResult plain = layer.WithWeights(x);
  {
    Tape tape(Tape::kEval);
    EXPECT_TRUE(SameBits(layer.WithWeights(x).out, plain.out));
  }
  Generator generator(1);
  Tape tape(generator);
  const AttentionResult trained = layer.WithWeights(x);
  EXPECT_FALSE(SameBits(trained.out, plain.out));
  EXPECT_TRUE(SameBits(trained.weights, plain.weights));
  // A call may ask for another one: with 1, only the last bias is left.
  const Tensor nothing = layer(x, {.dropout = 1});
  EXPECT_EQ(nothing.ToVector(), std::vector<double>(60, 0.0));
}

TEST(MultiHeadAttentionTest, EqualRowsStayEqual) {
  ParameterStore store(DType::kFloat32, 1);
  const MultiHeadAttention layer(store.root(), 12, 3);
  const Tensor words = RandomTensor({2, 12}, 1, DType::kFloat32);
  const Tensor x =
      Reshape(wengert::Embedding(words, Tensor::Of<int64_t>({3}, {0, 1, 0})),
              {1, 3, 12});
  for (const Tensor& y : {layer(x), layer(x, x), layer.WithWeights(x).out}) {
    const Tensor rows = Reshape(y, {3, 12});
    EXPECT_TRUE(SameBits(Slice(rows, 0, 0, 1), Slice(rows, 0, 2, 1)));
    EXPECT_FALSE(SameBits(Slice(rows, 0, 0, 1), Slice(rows, 0, 1, 1)));
  }
}

TEST(MultiHeadAttentionTest, AQueryWithNothingToSeeGivesTheBias) {
  ParameterStore store(DType::kFloat32, 1);
  const MultiHeadAttention layer(store.root(), 4, 2);
  Randomise(store);
  const auto none = Tensor::Of<bool>({1, 3}, {false, false, false});
  const Tensor x = RandomTensor({1, 3, 4}, 1, DType::kFloat32);
  const Tensor bias = BroadcastTo(store.Find("out_proj.bias"), Shape{1, 3, 4});
  EXPECT_TRUE(SameBits(layer(x, {.key_mask = none}), bias));
  EXPECT_TRUE(SameBits(layer(x, x, {.key_mask = none}), bias));
  EXPECT_TRUE(SameBits(layer.WithWeights(x, {.key_mask = none}).out, bias));
}

TEST(MultiHeadAttentionTest, StartsAsPyTorchs) {
  ParameterStore store;
  const MultiHeadAttention layer(store.root(), 64, 4);
  const auto largest = [&](const char* name) {
    double most = 0;
    for (double x : store.Find(name).ToVector()) {
      most = std::max(most, std::abs(x));
    }
    return most;
  };
  const double in = std::sqrt(6.0 / (4 * 64)), out = 1 / std::sqrt(64.0);
  EXPECT_LE(largest("in_proj_weight"), in);
  EXPECT_GT(largest("in_proj_weight"), 0.99 * in);
  EXPECT_LE(largest("out_proj.weight"), out);
  EXPECT_GT(largest("out_proj.weight"), 0.99 * out);
  EXPECT_EQ(largest("in_proj_bias"), 0);
  EXPECT_EQ(largest("out_proj.bias"), 0);
}

TEST(MultiHeadAttentionTest, RefusesWhatDoesNotFit) {
  ParameterStore store;
  EXPECT_THAT(ErrorOf([&] { MultiHeadAttention(store.root(), 10, 3); }),
              HasSubstr("d_model 10, n_heads 3; wanted a multiple"));
  EXPECT_THAT(ErrorOf([&] { MultiHeadAttention(store.root(), 8, 0); }),
              HasSubstr("d_model 8, n_heads 0"));
  EXPECT_THAT(ErrorOf([&] {
                MultiHeadAttention(store.root(), 8, 4, {.n_kv_heads = 3});
              }),
              HasSubstr("n_heads 4, n_kv_heads 3"));
  EXPECT_EQ(store.size(), 0);
  const MultiHeadAttention layer(store.root(), 8, 4);
  EXPECT_THAT(ErrorOf([&] {
                layer(Tensor::Zeros({2, 8}));
              }),
              HasSubstr("x float32 [2, 8]; wanted [B, T, 8]"));
  EXPECT_THAT(ErrorOf([&] {
                layer(Tensor::Zeros({2, 3, 8}), Tensor::Zeros({2, 3, 6}));
              }),
              HasSubstr("memory float32 [2, 3, 6]; wanted [B, T, 8]"));
  EXPECT_THAT(ErrorOf([&] {
                layer(Tensor::Zeros({2, 3, 8}), Tensor::Zeros({1, 3, 8}));
              }),
              HasSubstr("[1, 3, 4, 2]"));
}

}  // namespace
}  // namespace wengert::nn
