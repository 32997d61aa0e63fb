// Multi-head attention as its published class spells it out, with queries,
// keys, values and a mask. The outputs published for it come from random
// weights, so that they are checked as properties.
#include <cmath>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"
#include "nn/nn.h"

namespace wengert::train {
namespace {

constexpr int64_t kB = 3, kT = 6, kC = 8, kHeads = 4, kKey = kC / kHeads;

// [B, T, C] -> [B, H, T, C / H], and back.
Tensor SplitHeads(const Tensor& x) {
  return Permute(Reshape(x, {x.dim(0), -1, kHeads, kKey}), {0, 2, 1, 3});
}
Tensor MergeHeads(const Tensor& x) {
  return Reshape(Permute(x, {0, 2, 1, 3}), {x.dim(0), -1, kC});
}

// Four maps, a mask [.., Tq, Tk] that hides where it is 0, and the weights
// beside the output.
struct SpelledAttention {
  nn::Linear wq, wk, wv, wo;

  explicit SpelledAttention(nn::Params p)
      : wq(p.Sub("wq"), kC, kC),
        wk(p.Sub("wk"), kC, kC),
        wv(p.Sub("wv"), kC, kC),
        wo(p.Sub("wo"), kC, kC) {}

  AttentionResult operator()(const Tensor& query, const Tensor& key,
                             const Tensor& value, const Tensor& mask) const {
    const Tensor q = SplitHeads(wq(query));
    const Tensor k = SplitHeads(wk(key)), v = SplitHeads(wv(value));
    const Tensor scores = MatMul(q, k, {.transpose_b = true}) / std::sqrt(kKey);
    const Tensor hidden = Equal(mask, Tensor::Scalar(0, mask.dtype()));
    const Tensor weights = Softmax(MaskedFill(scores, hidden, -1e10));
    return {wo(MergeHeads(MatMul(weights, v))), weights};
  }

  // As parameters of nn::MultiHeadAttention.
  nn::TensorMap Packed() const {
    const auto f64 = [](const Tensor& x) { return x.To(DType::kFloat64); };
    return {{"in_proj_weight",
             f64(Concat({wq.weight(), wk.weight(), wv.weight()}, 0))},
            {"in_proj_bias", f64(Concat({wq.bias(), wk.bias(), wv.bias()}, 0))},
            {"out_proj.weight", f64(wo.weight())},
            {"out_proj.bias", f64(wo.bias())}};
  }
};

// Checks outputs [B, Tq, C] and weights [B, H, Tq, Tk].
void ExpectResult(const AttentionResult& result, const AttentionResult& spelled,
                  const Tensor& mask, double tolerance) {
  nn::ExpectNear(result.out, spelled.out, tolerance, "out");
  nn::ExpectNear(result.weights, spelled.weights, tolerance, "weights");
  const Shape rows{kB, kHeads, result.out.dim(1)};
  nn::ExpectNear(Sum(result.weights, -1), Tensor::Ones(rows, mask.dtype()),
                 1e-6, "sums of rows");
  EXPECT_EQ(Max(result.weights * (1 - mask)).item(), 0);
}

TEST(Document003Layer, MultiHeadAttention) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    SCOPED_TRACE(Name(dtype));
    const double tolerance = dtype == DType::kFloat32 ? 1e-6 : 1e-13;
    nn::ParameterStore spelled_store(dtype, 1), store(dtype);
    const SpelledAttention spelled(spelled_store.root());
    const nn::MultiHeadAttention layer(store.root(), kC, kHeads);
    nn::SetParameters(store, spelled.Packed());

    const Tensor x = nn::RandomTensor({kB, kT, kC}, 1, dtype);
    const Tensor two = Slice(x, 1, 0, 2);
    std::vector<double> causal(kT * kT), words(kB * kT, 1);
    for (int64_t i = 0; i < kT * kT; ++i) causal[i] = i % kT <= i / kT;
    words[kT - 1] = words[2 * kT] = 0;
    const Tensor none = Tensor::Ones({kT}, dtype);
    const Tensor causal_mask = Tensor::From({kT, kT}, causal).To(dtype);
    const Tensor key_mask = Tensor::From({kB, kT}, words).To(dtype);
    const Tensor keys = Reshape(key_mask, {kB, 1, 1, kT});

    const std::pair<Tensor, AttentionOptions> cases[] = {
        {none, {}},
        {causal_mask, {.causal = true}},
        {causal_mask, {.mask = nn::ToBool(causal_mask)}},
        {keys, {.key_mask = nn::ToBool(key_mask)}},
        {keys, {.mask = nn::ToBool(keys)}}};
    for (const auto& [mask, options] : cases) {
      const AttentionResult expected = spelled(x, x, x, mask);
      ExpectResult(layer.WithWeights(x, options), expected, mask, tolerance);
      nn::ExpectNear(layer(x, options), expected.out, tolerance, "fused");
      nn::ExpectNear(layer(x, x, options), expected.out, tolerance, "across");
    }
    const AttentionResult expected = spelled(two, x, x, keys);
    const AttentionOptions options = {.key_mask = nn::ToBool(key_mask)};
    ExpectResult(layer.WithWeights(two, x, options), expected, keys, tolerance);
    nn::ExpectNear(layer(two, x, options), expected.out, tolerance, "fused");

    // The operation takes values from elsewhere than the keys.
    const Tensor value = nn::RandomTensor({kB, kT, kC}, 2, dtype);
    const auto heads = [](const Tensor& y) {
      return Reshape(y, {kB, -1, kHeads, kKey});
    };
    const Tensor y = Attention(heads(spelled.wq(two)), heads(spelled.wk(x)),
                               heads(spelled.wv(value)), options);
    nn::ExpectNear(spelled.wo(Reshape(y, {kB, -1, kC})),
                   spelled(two, x, value, keys).out, tolerance, "values");
  }
}

// The words of the three sentences, four of which stand there twice. Without
// positions equal words give equal rows, with them they do not, and sentences
// do not reach each other.
TEST(Document003Layer, EqualWordsGiveEqualRows) {
  constexpr int64_t kAll = kB * kT, kVocabulary = 14;
  const std::vector<int64_t> ids = {5,  13, 11, 12, 2, 7,  //
                                    10, 6,  0,  1,  3, 8,  //
                                    4,  11, 6,  0,  1, 9};
  nn::ParameterStore store(DType::kFloat32, 1);
  const nn::Embedding embedding(store.root().Sub("words"), kVocabulary, kC,
                                {.scale_by_sqrt_dim = true});
  const nn::PositionalEncoding positions(store.root(), kAll, kC);
  const nn::MultiHeadAttention layer(store.root(), kC, kHeads);
  const auto row = [](const Tensor& y, int64_t i) {
    return Slice(Reshape(y, {-1, kC}), 0, i, 1);
  };

  const Tensor x = embedding(Tensor::From({1, kAll}, ids));
  for (const Tensor& y : {layer(x), layer.WithWeights(x).out}) {
    int pairs = 0;
    for (int64_t a = 0; a < kAll; ++a) {
      for (int64_t b = a + 1; b < kAll; ++b) {
        EXPECT_EQ(SameBits(row(y, a), row(y, b)), ids[a] == ids[b]);
        pairs += ids[a] == ids[b];
      }
    }
    EXPECT_EQ(pairs, 4);
  }
  const Tensor y = layer(positions(x));
  for (int64_t a = 0; a < kAll; ++a) {
    for (int64_t b = a + 1; b < kAll; ++b) {
      EXPECT_FALSE(SameBits(row(y, a), row(y, b)));
    }
  }

  const Tensor batch = positions(embedding(Tensor::From({kB, kT}, ids)));
  const Tensor all = layer(batch);
  for (int64_t b = 0; b < kB; ++b) {
    EXPECT_TRUE(SameBits(layer(Slice(batch, 0, b, 1)),  //
                         Slice(all, 0, b, 1)));
  }
}

}  // namespace
}  // namespace wengert::train
