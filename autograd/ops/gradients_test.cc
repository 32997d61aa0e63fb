// The table of gradient checks: one line for each operation and case.
//
// For every line and every set of sizes: first and second derivatives against
// central differences in double, for each subset of the inputs, with an input
// that stands in several places, and added to other gradients; float32 against
// float64; and a fused operation against its composition in both types.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using Sizes = std::vector<std::vector<Shape>>;  // sets of input shapes
using X = Inputs;

struct Case {
  std::string name;
  Function f;
  Sizes sizes;
  double lo = -2, hi = 2;     // inputs are sampled between
  Function composed = {};     // the same from primitives, for a fused operation
  bool random = false;        // draws from a generator
  double float_error = 2e-6;  // of the largest element
};

const Sizes kOne = {{{3, 5}}, {{}}, {{1}}, {{0, 3}}, {{37}}};
const Sizes kTwo = {{{2, 3}, {2, 3}}, {{2, 1}, {1, 3}}, {{3}, {5, 3}},
                    {{}, {2, 1}},     {{1}, {1}},       {{0, 3}, {3}},
                    {{}, {}},         {{17}, {17}}};
const Sizes kCube = {{{2, 3, 4}}, {{1, 1, 1}}, {{3, 1, 5}}};
const Sizes kCubeOrEmpty = {
    {{2, 3, 4}}, {{1, 1, 1}}, {{3, 1, 5}}, {{2, 0, 3}}, {{0, 3, 0}}};
const Sizes kRows = {{{2, 5}},     {{7}},    {{1, 1}},
                     {{2, 3, 17}}, {{0, 3}}, {{3, 0}}};

// ---- Attention --------------------------------------------------------------

using Options = std::function<AttentionOptions(X x)>;

// q [B, Tq, H, D], k [B, Tk, Hkv, D], v [B, Tk, Hkv, Dv]
const Sizes kSelf = {{{2, 3, 2, 3}, {2, 3, 2, 3}, {2, 3, 2, 3}},
                     {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}},
                     {{0, 3, 2, 3}, {0, 3, 2, 3}, {0, 3, 2, 3}}};
const Sizes kCross = {{{2, 2, 2, 3}, {2, 5, 2, 3}, {2, 5, 2, 4}},
                      {{1, 5, 1, 3}, {1, 2, 1, 3}, {1, 2, 1, 1}},
                      {{1, 0, 2, 3}, {1, 2, 2, 3}, {1, 2, 2, 3}},
                      {{1, 2, 2, 3}, {1, 0, 2, 3}, {1, 0, 2, 3}}};
const Sizes kGrouped = {{{1, 3, 4, 3}, {1, 3, 2, 3}, {1, 3, 2, 3}},
                        {{2, 2, 3, 2}, {2, 4, 1, 2}, {2, 4, 1, 5}}};

Case AttentionCase(const char* name, const Sizes& sizes, Options options,
                   bool random = false) {
  return {.name = name,
          .f = [=](X x) { return Attention(x[0], x[1], x[2], options(x)); },
          .sizes = sizes,
          .composed =
              [=](X x) {
                return AttentionWithWeights(x[0], x[1], x[2], options(x)).out;
              },
          .random = random};
}

AttentionOptions Plain(X) { return {}; }
AttentionOptions Causal(X) { return {.causal = true}; }
AttentionOptions Scaled(X) { return {.scale = 0.3}; }
AttentionOptions Dropped(X) { return {.dropout = 0.4}; }
AttentionOptions KeyPadded(X x) {
  return {.key_mask = SomeTrue({x[1].dim(0), x[1].dim(1)})};
}
AttentionOptions Masked(X x) {
  return {.mask = SomeTrue({x[0].dim(2), x[0].dim(1), x[1].dim(1)})};
}
AttentionOptions NothingSeen(X x) {
  return {.mask = Tensor::Zeros({x[0].dim(1), x[1].dim(1)}, DType::kBool)};
}
// The first query sees nothing, the second all, the third the first key, ...
AttentionOptions SomeSeeNothing(X x) {
  const int64_t tq = x[0].dim(1), tk = x[1].dim(1);
  std::vector<bool> mask;
  for (int64_t i = 0; i < tq * tk; ++i) {
    mask.push_back(i / tk == 1 || (i / tk > 1 && i % tk == 0));
  }
  return {.mask = Tensor::From({tq, tk}, mask)};
}
// Constant, one for each head and pair, and some of it -inf.
AttentionOptions Biased(X x) {
  const Shape shape{x[0].dim(2), x[0].dim(1), x[1].dim(1)};
  const Tensor b = Spread(shape, -1, 1, 5).To(x[0].dtype());
  return {.bias = MaskedFill(b, SomeTrue(shape), 0.5)};
}
AttentionOptions Everything(X x) {
  AttentionOptions o = Biased(x);
  o.causal = true;
  o.key_mask = KeyPadded(x).key_mask;
  o.mask = Masked(x).mask;
  o.dropout = 0.25;
  o.scale = 0.7;
  return o;
}
AttentionOptions TrainedBias(X x) { return {.causal = true, .bias = x[3]}; }

// qkv [B, T, 3, H, D] through the separate form.
Tensor Unpacked(X x, const AttentionOptions& options) {
  const Tensor& qkv = x[0];
  std::array<Tensor, 3> parts;
  for (int i = 0; i < 3; ++i) {
    parts[i] = Reshape(Slice(qkv, 2, i, 1),
                       {qkv.dim(0), qkv.dim(1), qkv.dim(3), qkv.dim(4)});
  }
  return AttentionWithWeights(parts[0], parts[1], parts[2], options).out;
}
const Sizes kPacked = {
    {{2, 3, 3, 2, 3}}, {{1, 1, 3, 1, 1}}, {{1, 5, 3, 1, 2}}, {{0, 2, 3, 1, 1}}};
AttentionOptions PackedOptions(X x) {
  return {.causal = true,
          .key_mask = SomeTrue({x[0].dim(0), x[0].dim(1)}),
          .dropout = 0.25};
}

// ---- Losses -----------------------------------------------------------------

// Class ids for logits [..., C], the last of which is ignored.
Tensor Targets(const Tensor& logits) {
  Shape shape(logits.shape().dims().first(logits.rank() - 1));
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < shape.size(); ++i) {
    ids.push_back(i > 0 && i + 1 == shape.size() ? -100
                                                 : i * 5 % logits.dim(-1));
  }
  return Tensor::From(shape, ids);
}

Case LossCase(const char* name, CrossEntropyOptions o) {
  return {
      .name = name,
      .f = [=](X x) { return CrossEntropy(x[0], Targets(x[0]), o); },
      .sizes = {{{4, 3}}, {{5}}, {{2, 3, 7}}, {{1, 1}}, {{0, 3}}},
      .composed =
          [=](X x) { return CrossEntropyComposed(x[0], Targets(x[0]), o); }};
}

Tensor Ids() { return Tensor::Of<int32_t>({2, 2}, {1, 0, 1, 2}); }

std::vector<Case> Table() {
  return {
      // Arithmetic
      {"Add", [](X x) { return x[0] + x[1]; }, kTwo},
      {"Sub", [](X x) { return x[0] - x[1]; }, kTwo},
      {"Mul", [](X x) { return x[0] * x[1]; }, kTwo},
      {"Div", [](X x) { return x[0] / x[1]; }, kTwo, 0.5, 2},
      {"Maximum", [](X x) { return Maximum(x[0], x[1]); }, kTwo},
      {"Minimum", [](X x) { return Minimum(x[0], x[1]); }, kTwo},
      {"Affine", [](X x) { return Affine(x[0], -3, 2); }, kOne},
      {"Neg", [](X x) { return -x[0]; }, kOne},
      {"PowCube", [](X x) { return Pow(x[0], 3); }, kOne},
      {"PowBroken", [](X x) { return Pow(x[0], 2.5); }, kOne, 0.5, 2},
      {"PowRoot", [](X x) { return Pow(x[0], 0.5); }, kOne, 0.5, 2},
      {"PowReciprocal", [](X x) { return Pow(x[0], -1); }, kOne, 0.5, 2},
      {"PowOne", [](X x) { return Pow(x[0], 1); }, kOne},
      {"PowZero", [](X x) { return Pow(x[0], 0); }, kOne},
      // Functions of one argument
      {"Exp", [](X x) { return Exp(x[0]); }, kOne},
      {"Log", [](X x) { return Log(x[0]); }, kOne, 0.2, 3},
      {"Tanh", [](X x) { return Tanh(x[0]); }, kOne, -4, 4},
      {"Sigmoid", [](X x) { return Sigmoid(x[0]); }, kOne, -5, 5},
      {"Erf", [](X x) { return Erf(x[0]); }, kOne},
      {"Erfc", [](X x) { return Erfc(x[0]); }, kOne},
      {"Square", [](X x) { return Square(x[0]); }, kOne},
      {"Sqrt", [](X x) { return Sqrt(x[0]); }, kOne, 0.2, 3},
      {"Rsqrt", [](X x) { return Rsqrt(x[0]); }, kOne, 0.2, 3},
      {.name = "Relu",
       .f = [](X x) { return Relu(x[0]); },
       .sizes = kOne,
       .composed =
           [](X x) { return ActivateComposed(Activation::kRelu, x[0]); }},
      {.name = "Gelu",
       .f = [](X x) { return Gelu(x[0]); },
       .sizes = kOne,
       .lo = -4,
       .hi = 4,
       .composed =
           [](X x) { return ActivateComposed(Activation::kGelu, x[0]); }},
      {.name = "GeluTanh",
       .f = [](X x) { return GeluTanh(x[0]); },
       .sizes = kOne,
       .lo = -4,
       .hi = 4,
       .composed =
           [](X x) { return ActivateComposed(Activation::kGeluTanh, x[0]); }},
      {.name = "Silu",
       .f = [](X x) { return Silu(x[0]); },
       .sizes = kOne,
       .lo = -6,
       .hi = 6,
       .composed =
           [](X x) { return ActivateComposed(Activation::kSilu, x[0]); }},
      // Reductions
      {"SumAll", [](X x) { return Sum(x[0]); }, kCubeOrEmpty},
      {"SumLast", [](X x) { return Sum(x[0], -1); }, kCubeOrEmpty},
      {"SumFirst", [](X x) { return Sum(x[0], 0); }, kCubeOrEmpty},
      {"SumOuter",
       [](X x) {
         return Sum(x[0], {2, 0});
       },
       kCubeOrEmpty},
      {"SumKept", [](X x) { return Sum(x[0], 1, {.keep_dims = true}); },
       kCubeOrEmpty},
      {"MeanAll", [](X x) { return Mean(x[0]); }, kCube},
      {"MeanKept",
       [](X x) {
         return Mean(x[0], {0, 1}, {true});
       },
       kCube},
      {"MaxAll", [](X x) { return Max(x[0]); }, kCube},
      {"MaxMiddle", [](X x) { return Max(x[0], 1); }, kCube},
      {"MaxKept",
       [](X x) {
         return Max(x[0], {0, 2}, {true});
       },
       kCube},
      {"MaxOfEmptyRows", [](X x) { return Max(x[0], -1); }, {{{0, 3}}}},
      {"LogSumExpAll", [](X x) { return LogSumExp(x[0]); }, kCube},
      {"LogSumExpLast", [](X x) { return LogSumExp(x[0], -1); }, kCube},
      {"LogSumExpKept",
       [](X x) {
         return LogSumExp(x[0], {0, 1}, {true});
       },
       kCube},
      {"SumTo",
       [](X x) {
         return SumTo(x[0], {3, 1});
       },
       {{{2, 3, 4}}, {{3, 1}}, {{0, 3, 2}}}},
      {"BroadcastTo",
       [](X x) {
         return BroadcastTo(x[0], {2, 3, 4});
       },
       {{{3, 1}}, {{}}, {{2, 3, 4}}, {{1, 1, 4}}}},
      // Products
      {"MatMul",
       [](X x) { return MatMul(x[0], x[1]); },
       {{{2, 3}, {3, 4}},
        {{3, 3}, {3, 3}},
        {{1, 1}, {1, 1}},
        {{0, 3}, {3, 2}},
        {{2, 0}, {0, 3}},
        {{5, 7}, {7, 1}}}},
      {"MatMulTransposedA",
       [](X x) { return MatMul(x[0], x[1], {.transpose_a = true}); },
       {{{3, 2}, {3, 4}},
        {{3, 3}, {3, 3}},
        {{2, 3, 2}, {3, 4}},
        {{2, 3, 2}, {2, 3, 3}}}},
      {"MatMulTransposedB",
       [](X x) { return MatMul(x[0], x[1], {.transpose_b = true}); },
       {{{2, 3}, {4, 3}},
        {{3, 3}, {3, 3}},
        {{2, 2, 3}, {4, 3}},
        {{2, 2, 3}, {2, 4, 3}}}},
      {"MatMulTransposedBoth",
       [](X x) {
         return MatMul(x[0], x[1], {true, true});
       },
       {{{3, 2}, {4, 3}}, {{3, 3}, {3, 3}}, {{2, 3, 2}, {2, 4, 3}}}},
      {"MatMulBatched",
       [](X x) { return MatMul(x[0], x[1]); },
       {{{2, 3, 2}, {2, 2, 3}},
        {{2, 1, 2, 3}, {3, 3, 2}},
        {{2, 3}, {2, 3, 2}},
        {{2, 2, 3}, {3, 2}},
        {{2, 3, 0}, {0, 2}},
        {{0, 2, 3}, {3, 2}},
        {{1, 2, 2}, {3, 2, 2}}}},
      {.name = "Linear",
       .f = [](X x) { return Linear(x[0], x[1], x[2]); },
       .sizes = {{{4, 3}, {2, 3}, {2}},
                 {{2, 3, 5}, {7, 5}, {7}},
                 {{3}, {2, 3}, {2}},
                 {{1, 1}, {1, 1}, {1}},
                 {{0, 3}, {2, 3}, {2}},
                 {{2, 0}, {3, 0}, {3}}},
       .composed = [](X x) { return LinearComposed(x[0], x[1], x[2]); }},
      {.name = "LinearWithoutBias",
       .f = [](X x) { return Linear(x[0], x[1]); },
       .sizes = {{{4, 3}, {2, 3}}, {{3, 3}, {3, 3}}, {{5}, {3, 5}}},
       .composed = [](X x) { return LinearComposed(x[0], x[1]); }},
      {.name = "ActivatedLinear",
       .f =
           [](X x) {
             return ActivatedLinear(Activation::kGelu, x[0], x[1], x[2]);
           },
       .sizes = {{{4, 3}, {2, 3}, {2}},
                 {{2, 3, 5}, {7, 5}, {7}},
                 {{3}, {2, 3}, {2}},
                 {{0, 3}, {2, 3}, {2}},
                 {{2, 0}, {3, 0}, {3}}},
       .composed =
           [](X x) {
             return LinearComposed(ActivateComposed(Activation::kGelu, x[0]),
                                   x[1], x[2]);
           }},
      // Its input and its weights may be one tensor.
      {.name = "ActivatedLinearOfItself",
       .f = [](X x) { return ActivatedLinear(Activation::kSilu, x[0], x[0]); },
       .sizes = {{{3, 3}}, {{2, 3}}},
       .composed =
           [](X x) {
             return LinearComposed(ActivateComposed(Activation::kSilu, x[0]),
                                   x[0]);
           }},
      // Shape and place
      {"Reshape",
       [](X x) {
         return Reshape(x[0], {3, -1});
       },
       {{{2, 3}}, {{3}}, {{6, 1, 2}}, {{3, 0}}}},
      {"Permute",
       [](X x) {
         return Permute(x[0], {2, 0, 1});
       },
       kCubeOrEmpty},
      {"Transpose", [](X x) { return Transpose(x[0]); }, kCubeOrEmpty},
      {"SliceFirst",
       [](X x) { return Slice(x[0], 0, 1, 2); },
       {{{4, 3}}, {{3}}, {{3, 0}}}},
      {"SliceLast",
       [](X x) { return Slice(x[0], -1, 0, 2); },
       {{{3, 4}}, {{2}}, {{2, 1, 2}}}},
      {"SliceOfNothing", [](X x) { return Slice(x[0], 1, 1, 0); }, {{{2, 3}}}},
      {"Concat",
       [](X x) { return Concat(x, 0); },
       {{{2, 3}, {1, 3}, {2, 3}}, {{1}, {2}}, {{2}}, {{0, 2}, {2, 2}}}},
      {"ConcatLast",
       [](X x) { return Concat(x, -1); },
       {{{2, 3}, {2, 1}}, {{2, 2}, {2, 2}}, {{2, 0}, {2, 1}}}},
      {"Embedding",
       [](X x) { return Embedding(x[0], Ids()); },
       {{{3, 4}}, {{5}}, {{3, 2, 2}}, {{4, 0}}}},
      {"EmbeddingWithPadding",
       // The padding row counts in the value and not in the gradient: hidden.
       [](X x) {
         const Tensor hidden = Tensor::Of<bool>({2, 2, 1}, {1, 0, 1, 0});
         return MaskedFill(Embedding(x[0], Ids(), 1), hidden, 0);
       },
       {{{3, 4}}}},
      {"ScatterRows",
       [](X x) { return ScatterRows(x[0], Ids(), 4); },
       {{{2, 2, 3}}, {{2, 2}}}},
      {"ScatterRowsWithPadding",
       [](X x) { return ScatterRows(x[0], Ids(), 4, 1); },
       {{{2, 2, 3}}, {{2, 2}}}},
      {"Where",
       [](X x) {
         return Where(SomeTrue({2, 3}), x[0], x[1]);
       },
       {{{2, 3}, {2, 3}}, {{3}, {2, 1}}, {{}, {2, 3}}, {{4, 1, 1}, {3}}}},
      {"MaskedFill",
       [](X x) {
         return MaskedFill(x[0], SomeTrue({2, 3}), -7);
       },
       {{{2, 3}}, {{3}}, {{}}, {{4, 2, 3}}}},
      // Softmax
      {.name = "Softmax",
       .f = [](X x) { return Softmax(x[0]); },
       .sizes = kRows,
       .composed = [](X x) { return SoftmaxComposed(x[0]); }},
      {.name = "SoftmaxFirst",
       .f = [](X x) { return Softmax(x[0], 0); },
       .sizes = kCubeOrEmpty,
       .composed = [](X x) { return SoftmaxComposed(x[0], 0); }},
      {.name = "LogSoftmax",
       .f = [](X x) { return LogSoftmax(x[0]); },
       .sizes = kRows,
       .composed = [](X x) { return LogSoftmaxComposed(x[0]); }},
      {.name = "LogSoftmaxMiddle",
       .f = [](X x) { return LogSoftmax(x[0], 1); },
       .sizes = kCubeOrEmpty,
       .composed = [](X x) { return LogSoftmaxComposed(x[0], 1); }},
      // Layer norm
      {.name = "LayerNorm",
       .f = [](X x) { return LayerNorm(x[0], x[1], x[2]); },
       .sizes = {{{3, 5}, {5}, {5}},
                 {{2, 2, 3}, {3}, {3}},
                 {{17}, {17}, {17}},
                 {{2, 1}, {1}, {1}},
                 {{0, 3}, {3}, {3}},
                 {{2, 0}, {0}, {0}}},
       .composed = [](X x) { return LayerNormComposed(x[0], x[1], x[2]); }},
      {.name = "LayerNormPlain",
       .f = [](X x) { return LayerNorm(x[0]); },
       .sizes = kRows,
       .composed = [](X x) { return LayerNormComposed(x[0]); }},
      {.name = "LayerNormGain",
       .f = [](X x) { return LayerNorm(x[0], x[1], {}, 0.1); },
       .sizes = {{{3, 5}, {5}}},
       .composed = [](X x) { return LayerNormComposed(x[0], x[1], {}, 0.1); }},
      {.name = "LayerNormBias",
       .f = [](X x) { return LayerNorm(x[0], {}, x[1], 0.1); },
       .sizes = {{{3, 5}, {5}}},
       .composed = [](X x) { return LayerNormComposed(x[0], {}, x[1], 0.1); }},
      // Dropout
      {.name = "Dropout",
       .f = [](X x) { return Dropout(x[0], 0.3); },
       .sizes = kOne,
       .random = true},
      {.name = "DropoutOfAll",
       .f = [](X x) { return Dropout(x[0], 1); },
       .sizes = kOne,
       .random = true},
      // Attention
      AttentionCase("Attention", kSelf, Plain),
      AttentionCase("AttentionCross", kCross, Plain),
      AttentionCase("AttentionGrouped", kGrouped, Plain),
      AttentionCase("AttentionCausal", kSelf, Causal),
      AttentionCase("AttentionCausalCross", kCross, Causal),
      AttentionCase("AttentionScaled", kSelf, Scaled),
      AttentionCase("AttentionKeyPadded", kCross, KeyPadded),
      AttentionCase("AttentionMasked", kCross, Masked),
      AttentionCase("AttentionNothingSeen", kSelf, NothingSeen),
      AttentionCase("AttentionSomeSeeNothing", kSelf, SomeSeeNothing),
      AttentionCase("AttentionBiased", kCross, Biased),
      AttentionCase("AttentionDropped", kCross, Dropped, true),
      AttentionCase("AttentionEverything", kCross, Everything, true),
      AttentionCase("AttentionGroupedEverything", kGrouped, Everything, true),
      AttentionCase("AttentionTrainedBias",
                    {{{1, 3, 2, 2}, {1, 4, 2, 2}, {1, 4, 2, 2}, {2, 1, 4}},
                     {{2, 2, 1, 2}, {2, 2, 1, 2}, {2, 2, 1, 2}, {2, 1, 2, 2}}},
                    TrainedBias),
      {"AttentionWeights",
       [](X x) { return AttentionWithWeights(x[0], x[1], x[2]).weights; },
       kCross},
      {.name = "PackedAttention",
       .f = [](X x) { return PackedAttention(x[0]); },
       .sizes = kPacked,
       .composed = [](X x) { return Unpacked(x, {}); }},
      {.name = "PackedAttentionMasked",
       .f = [](X x) { return PackedAttention(x[0], PackedOptions(x)); },
       .sizes = kPacked,
       .composed = [](X x) { return Unpacked(x, PackedOptions(x)); },
       .random = true},
      {.name = "PackedAttentionTrainedBias",
       .f = [](X x) { return PackedAttention(x[0], {.bias = x[1]}); },
       .sizes = {{{1, 3, 3, 2, 2}, {3, 3}}},
       .composed = [](X x) { return Unpacked(x, {.bias = x[1]}); }},
      // Losses
      LossCase("CrossEntropy", {}),
      LossCase("CrossEntropySum", {.reduction = Reduction::kSum}),
      LossCase("CrossEntropyEach", {.reduction = Reduction::kNone}),
      LossCase("CrossEntropySmoothed", {.label_smoothing = 0.2}),
      LossCase("CrossEntropySmoothedEach",
               {.reduction = Reduction::kNone, .label_smoothing = 1}),
  };
}

std::vector<Tensor> InputsFor(const Case& c, const std::vector<Shape>& shapes,
                              DType dtype = DType::kFloat64) {
  std::vector<Tensor> inputs;
  for (const Shape& s : shapes) {
    // Rounded to float, so that both types start from the same numbers.
    inputs.push_back(
        Spread(s, c.lo, c.hi, inputs.size()).To(DType::kFloat32).To(dtype));
  }
  return inputs;
}

class GradientsTest : public testing::TestWithParam<Case> {
 protected:
  // Calls f with inputs of `dtype`; draws are the same in each call.
  static ValueAndGradients Run(const Function& f, const Case& c,
                               const std::vector<Shape>& shapes, DType dtype,
                               bool recorded) {
    Generator generator(11);
    std::optional<Tape> tape;
    c.random ? tape.emplace(generator) : tape.emplace();
    const std::vector<Tensor> inputs = InputsFor(c, shapes, dtype);
    for (const Tensor& x : inputs) tape->Watch(x);
    const Tensor y = f(inputs);
    const Tensor dy = Spread(y.shape(), 0.5, -1.5, 7).To(dtype);
    return {y, tape->Gradient(y, inputs,
                              {.create_graph = recorded, .cotangent = dy})};
  }
  static void ExpectAllClose(const ValueAndGradients& a,
                             const ValueAndGradients& b, double tolerance,
                             const std::string& what) {
    ExpectClose(a.value, b.value, tolerance, (what + ": value").c_str());
    for (size_t i = 0; i < a.gradients.size(); ++i) {
      const std::string name = absl::StrCat(what, ": gradient of input ", i);
      ExpectClose(a.gradients[i], b.gradients[i], tolerance, name.c_str());
    }
  }
};

TEST_P(GradientsTest, AgreeWithDifferences) {
  const Case& c = GetParam();
  Generator generator(11);
  GradCheckOptions options{.name = c.name, .order = 2};
  if (c.random) options.generator = &generator;
  for (const std::vector<Shape>& shapes : c.sizes) {
    std::vector<Tensor> inputs = InputsFor(c, shapes);
    const GradCheckReport report = GradCheck(c.f, inputs, options);
    EXPECT_TRUE(report) << report;
    // Inputs of equal shapes as one tensor in several places.
    bool repeated = false;
    for (size_t i = 1; i < inputs.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        if (inputs[k].shape() != inputs[i].shape()) continue;
        inputs[i] = inputs[k];
        repeated = true;
      }
    }
    if (!repeated) continue;
    const GradCheckReport aliased = GradCheck(c.f, inputs, options);
    EXPECT_TRUE(aliased) << "repeated input: " << aliased;
  }
}

TEST_P(GradientsTest, FloatAgreesWithDouble) {
  const Case& c = GetParam();
  for (const std::vector<Shape>& shapes : c.sizes) {
    const auto exact = Run(c.f, c, shapes, DType::kFloat64, false);
    for (bool recorded : {false, true}) {
      ExpectAllClose(Run(c.f, c, shapes, DType::kFloat32, recorded), exact,
                     c.float_error, recorded ? "recorded pass" : "plain pass");
    }
  }
}

using FusedTest = GradientsTest;

TEST_P(FusedTest, AgreesWithItsComposition) {
  const Case& c = GetParam();
  for (const std::vector<Shape>& shapes : c.sizes) {
    for (DType dtype : kFloats) {
      const double tolerance = dtype == DType::kFloat64 ? 1e-13 : c.float_error;
      const auto composed = Run(c.composed, c, shapes, dtype, false);
      for (bool recorded : {false, true}) {
        ExpectAllClose(Run(c.f, c, shapes, dtype, recorded), composed,
                       tolerance, Name(dtype));
      }
    }
  }
}

std::vector<Case> FusedCases() {
  std::vector<Case> fused;
  for (Case& c : Table()) {
    if (c.composed) fused.push_back(std::move(c));
  }
  return fused;
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

INSTANTIATE_TEST_SUITE_P(Operations, GradientsTest, testing::ValuesIn(Table()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Operations, FusedTest, testing::ValuesIn(FusedCases()),
                         NameOf);

}  // namespace
}  // namespace wengert
