// The gradient checks of softmax, norms and dropout.
#include "autograd/ops/gradients_testlib.h"

namespace wengert {
namespace {

Case RotaryCase(const char* name, RotaryOptions o) {
  Case c{.name = name,
         .f = [=](X x) { return Rotary(x[0], o); },
         .sizes = {{{2, 3, 2, 6}}, {{1, 1, 1, 4}}, {{1, 40, 1, 18}}},
         .composed = [=](X x) { return RotaryComposed(x[0], o); }};
  c.sizes.push_back({{2, 0, 1, 8}});
  return c;
}

std::vector<Case> Table() {
  return {
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
      {.name = "LayerNormSeveralAxes",
       .f = [](X x) { return LayerNorm(x[0], x[1], x[2]); },
       .sizes = {{{2, 3, 5}, {3, 5}, {3, 5}},
                 {{2, 3}, {2, 3}, {2, 3}},
                 {{2, 1, 1}, {1, 1}, {1, 1}},
                 {{2, 3, 0}, {3, 0}, {3, 0}},
                 {{0, 3, 2}, {3, 2}, {3, 2}}},
       .composed = [](X x) { return LayerNormComposed(x[0], x[1], x[2]); }},
      // RMS norm
      {.name = "RmsNorm",
       .f = [](X x) { return RmsNorm(x[0], x[1], 0.1); },
       .sizes = {{{3, 5}, {5}},
                 {{2, 2, 3}, {2, 3}},
                 {{17}, {17}},
                 {{2, 140}, {140}},
                 {{2, 1}, {1}},
                 {{0, 3}, {3}},
                 {{2, 0}, {0}}},
       .composed = [](X x) { return RmsNormComposed(x[0], x[1], 0.1); }},
      {.name = "RmsNormPlain",
       .f = [](X x) { return RmsNorm(x[0], {}, 0.1); },
       .sizes = kRows,
       .composed = [](X x) { return RmsNormComposed(x[0], {}, 0.1); }},
      // Group norm
      {.name = "GroupNorm",
       .f = [](X x) { return GroupNorm(x[0], 2, x[1], x[2], 0.1); },
       .sizes = {{{3, 4, 5}, {4}, {4}},
                 {{2, 6, 2, 3}, {6}, {6}},
                 {{3, 4}, {4}, {4}},
                 {{1, 2, 40}, {2}, {2}},
                 {{0, 4, 3}, {4}, {4}},
                 {{2, 4, 0}, {4}, {4}},
                 {{2, 0, 3}, {0}, {0}}},
       .composed =
           [](X x) { return GroupNormComposed(x[0], 2, x[1], x[2], 0.1); }},
      {.name = "GroupNormPlain",
       .f = [](X x) { return GroupNorm(x[0], 3, {}, {}, 0.1); },
       .sizes = {{{2, 3, 2}}, {{2, 6, 3}}},
       .composed = [](X x) { return GroupNormComposed(x[0], 3, {}, {}, 0.1); }},
      {.name = "GroupNormGain",
       .f = [](X x) { return GroupNorm(x[0], 1, x[1], {}, 0.1); },
       .sizes = {{{2, 3, 5}, {3}}},
       .composed =
           [](X x) { return GroupNormComposed(x[0], 1, x[1], {}, 0.1); }},
      {.name = "GroupNormBias",
       .f = [](X x) { return GroupNorm(x[0], 3, {}, x[1], 0.1); },
       .sizes = {{{2, 3, 5}, {3}}},
       .composed =
           [](X x) { return GroupNormComposed(x[0], 3, {}, x[1], 0.1); }},
      // Rotary embedding
      RotaryCase("Rotary", {}),
      RotaryCase("RotaryInterleaved", {.interleaved = true}),
      RotaryCase("RotarySome", {.base = 100, .offset = 3, .dims = 4}),
      RotaryCase("RotarySomeInterleaved",
                 {.offset = 1000, .dims = 2, .interleaved = true}),
      // Dropout
      {.name = "Dropout",
       .f = [](X x) { return Dropout(x[0], 0.3); },
       .sizes = kOne,
       .random = true},
      {.name = "DropoutOfAll",
       .f = [](X x) { return Dropout(x[0], 1); },
       .sizes = kOne,
       .random = true},
  };
}

INSTANTIATE_TEST_SUITE_P(Norm, GradientsTest, testing::ValuesIn(Table()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Norm, FusedTest, testing::ValuesIn(Fused(Table())),
                         NameOf);

}  // namespace
}  // namespace wengert
