// The example "one is one" as numbers: dot-product attention between one-hot
// words, to the digits that were published for it, and three heads of width 4.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"
#include "nn/nn.h"
#include "train/vocabulary.h"

namespace wengert::train {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

constexpr int64_t kWidth = 12;

Vocabulary Words() {
  return *Vocabulary::FromWords({"one", "two", "three", "four", "five", "six",
                                 "seven", "eight", "nine", "is", "less",
                                 "more"});
}

Vocabulary Symbols() {
  return *Vocabulary::FromWords(
      {"9", "8", "7", "6", "5", "4", "3", "2", "1", "=", "<", ">"});
}

// The words of a text as rows with a single 1: [T, 12].
Tensor OneHot(const std::string& text, DType dtype) {
  const std::vector<int64_t> ids = *Words().Encode(text);
  std::vector<double> rows(ids.size() * kWidth);
  for (size_t t = 0; t < ids.size(); ++t) rows[t * kWidth + ids[t]] = 1;
  return Tensor::From({static_cast<int64_t>(ids.size()), kWidth}, rows)
      .To(dtype);
}

// The rows that have `one` for the word "one" and `is` for the word "is".
Tensor TwoColumns(const std::vector<std::pair<double, double>>& rows) {
  std::vector<double> all;
  for (const auto& [one, is] : rows) {
    std::vector<double> row(kWidth);
    row[0] = one;
    row[9] = is;
    all.insert(all.end(), row.begin(), row.end());
  }
  return Tensor::From({static_cast<int64_t>(rows.size()), kWidth}, all);
}

// softmax(q kᵀ / sqrt(D)) v, spelled out; q, k, v [T, D].
Tensor Spelled(const Tensor& q, const Tensor& k, const Tensor& v) {
  const Tensor logits = MatMul(q, k, {.transpose_b = true}) /
                        std::sqrt(static_cast<double>(k.dim(1)));
  return MatMul(Softmax(logits), v);
}

// [T, D] as one sequence of one head, and back.
Tensor ToHead(const Tensor& x) {
  return Reshape(x, {1, x.dim(0), 1, x.dim(1)});
}
Tensor ToRows(const Tensor& x) { return Reshape(x, {x.dim(1), x.dim(3)}); }

Tensor Row(const Tensor& x, int64_t t) { return Slice(x, 0, t, 1); }

TEST(Document000, AttentionOfOneHotWords) {
  const Tensor printed =
      TwoColumns({{.7275, .2725}, {.5998, .4002}, {.7275, .2725}});
  const Tensor exact = TwoColumns({{0.727469653814599, 0.2725303461854011},
                                   {0.5997616414347742, 0.4002383585652259},
                                   {0.727469653814599, 0.2725303461854011}});
  for (const auto& [dtype, tolerance] :
       {std::pair(DType::kFloat32, 1e-6), std::pair(DType::kFloat64, 1e-12)}) {
    const Tensor x = OneHot("one is one", dtype), head = ToHead(x);
    const Tensor qkv = Reshape(Concat({x, x, x}, 1), {1, 3, 3, 1, kWidth});
    const std::pair<const char*, Tensor> results[] = {
        {"spelled", Spelled(x, x, x)},
        {"fused", ToRows(Attention(head, head, head))},
        {"packed", ToRows(PackedAttention(qkv))},
        {"composed", ToRows(AttentionWithWeights(head, head, head).out)}};
    for (const auto& [name, y] : results) {
      SCOPED_TRACE(std::string(name) + ", " + Name(dtype));
      EXPECT_THAT(y.ToVector(),
                  Pointwise(DoubleNear(0.5e-4), printed.ToVector()));
      nn::ExpectNear(y, exact, tolerance, "y");
      EXPECT_TRUE(SameBits(Row(y, 0), Row(y, 2)));
    }
  }
}

// The two words "one" share what one column of the table shows.
TEST(Document000, Weights) {
  const Tensor x = ToHead(OneHot("one is one", DType::kFloat64));
  const double half = 0.727469653814599 / 2, less = 0.5997616414347742 / 2;
  nn::ExpectNear(AttentionWithWeights(x, x, x).weights,
                 Tensor::Of<double>({1, 1, 3, 3}, {half, 1 - 2 * half, half,  //
                                                   less, 1 - 2 * less, less,  //
                                                   half, 1 - 2 * half, half}),
                 1e-12, "weights");
}

// Each head has its own three maps from 12 to 4; their results stand side by
// side and go through one more map. The numbers published for this come from
// random weights, so that only their form can be checked: equal words give
// equal rows.
TEST(Document000, ThreeHeads) {
  constexpr int64_t kHeads = 3, kKey = 4;
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    SCOPED_TRACE(Name(dtype));
    const Tensor x = OneHot("one is one", dtype);
    nn::ParameterStore store(dtype, 1);
    std::vector<Tensor> weights, biases;  // of all queries, keys, values
    std::vector<Tensor> inputs[3];        // q, k and v of each head
    for (int i = 0; i < 3; ++i) {
      for (int64_t h = 0; h < kHeads; ++h) {
        const nn::Linear map(
            store.root().Sub("heads").Sub(h).Sub(std::string(1, "qkv"[i])),
            kWidth, kKey);
        weights.push_back(map.weight());
        biases.push_back(map.bias());
        inputs[i].push_back(map(x));
        EXPECT_EQ(inputs[i].back().shape(), Shape({3, kKey}));
      }
    }
    const nn::Linear last(store.root().Sub("out"), kWidth, kWidth);

    nn::ParameterStore packed(dtype);
    const nn::MultiHeadAttention layer(packed.root(), kWidth, kHeads);
    const auto values = [](const Tensor& t) { return t.To(DType::kFloat64); };
    nn::SetParameters(packed, {{"in_proj_weight", values(Concat(weights, 0))},
                               {"in_proj_bias", values(Concat(biases, 0))},
                               {"out_proj.weight", values(last.weight())},
                               {"out_proj.bias", values(last.bias())}});

    std::vector<Tensor> spelled, fused;
    for (int64_t h = 0; h < kHeads; ++h) {
      const Tensor &q = inputs[0][h], &k = inputs[1][h], &v = inputs[2][h];
      spelled.push_back(Spelled(q, k, v));
      fused.push_back(ToRows(Attention(ToHead(q), ToHead(k), ToHead(v))));
    }
    const Tensor concat = Concat(spelled, 1);
    EXPECT_EQ(concat.shape(), Shape({3, kWidth}));
    const Tensor expected = last(concat);
    EXPECT_EQ(expected.shape(), Shape({3, kWidth}));

    const Tensor batch = Reshape(x, {1, 3, kWidth});
    const std::pair<const char*, Tensor> results[] = {
        {"spelled", expected},
        {"fused heads", last(Concat(fused, 1))},
        {"layer", Reshape(layer(batch), {3, kWidth})},
        {"layer with weights",
         Reshape(layer.WithWeights(batch).out, {3, kWidth})}};
    for (const auto& [name, y] : results) {
      nn::ExpectNear(y, expected, dtype == DType::kFloat32 ? 1e-6 : 1e-14,
                     name);
      EXPECT_TRUE(SameBits(Row(y, 0), Row(y, 2))) << name;
      EXPECT_FALSE(SameBits(Row(y, 0), Row(y, 1))) << name;
    }
  }
}

// Published with one vector for =, < and >, which nothing could tell apart:
// here they are three classes.
TEST(Document000, TwelveWordsAndTwelveSymbols) {
  EXPECT_EQ(Words().size(), kWidth);
  EXPECT_EQ(Symbols().size(), kWidth);
  EXPECT_THAT(*Words().Encode("one is one"), ElementsAre(0, 9, 0));
  EXPECT_THAT(*Words().Encode("nine is nine"), ElementsAre(8, 9, 8));
  EXPECT_THAT(*Symbols().Encode("1 = 1"), ElementsAre(8, 9, 8));
  EXPECT_THAT(*Symbols().Encode("9 = 9"), ElementsAre(0, 9, 0));
  EXPECT_THAT(*Symbols().Encode("= < >"), ElementsAre(9, 10, 11));
}

}  // namespace
}  // namespace wengert::train
