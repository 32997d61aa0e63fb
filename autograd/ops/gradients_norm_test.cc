// The gradient checks of softmax, norms and dropout.
#include "autograd/ops/gradients_testlib.h"

namespace wengert {
namespace {

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
