// The gradient checks of attention.
#include <array>

#include "autograd/ops/gradients_testlib.h"

namespace wengert {
namespace {

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

std::vector<Case> Table() {
  return {
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
  };
}

INSTANTIATE_TEST_SUITE_P(Attention, GradientsTest, testing::ValuesIn(Table()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Attention, FusedTest,
                         testing::ValuesIn(Fused(Table())), NameOf);

}  // namespace
}  // namespace wengert
