// The gradient checks of arithmetic and functions of one argument.
#include "autograd/ops/gradients_testlib.h"

namespace wengert {
namespace {

const Sizes kThree = {{{2, 3}, {2, 3}, {2, 3}}, {{2, 1}, {1, 3}, {}},
                      {{3}, {5, 3}, {5, 1}},    {{}, {}, {}},
                      {{0, 3}, {3}, {1}},       {{17}, {17}, {17}}};

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
      {"Pow", [](X x) { return Pow(x[0], x[1]); }, kTwo, 0.5, 2},
      {"Atan2", [](X x) { return Atan2(x[0], x[1]); }, kTwo, 0.5, 2},
      {"Atan2Around", [](X x) { return Atan2(x[0], x[1] - 0.1); }, kTwo},
      {"Lerp", [](X x) { return Lerp(x[0], x[1], 0.3); }, kTwo},
      {"LerpWeights", [](X x) { return Lerp(x[0], x[1], x[2]); }, kThree},
      {"Clamp", [](X x) { return Clamp(x[0], -1, 0.8); }, kOne},
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
      {"Expm1", [](X x) { return Expm1(x[0]); }, kOne},
      {"Log1p", [](X x) { return Log1p(x[0]); }, kOne, -0.8, 3},
      {"Sin", [](X x) { return Sin(x[0]); }, kOne, -4, 4},
      {"Cos", [](X x) { return Cos(x[0]); }, kOne, -4, 4},
      {"Abs", [](X x) { return Abs(x[0]); }, kOne},
      {"Sign", [](X x) { return Sign(x[0]); }, kOne},
      {"Floor", [](X x) { return Floor(x[0]); }, kOne},
      {"Ceil", [](X x) { return Ceil(x[0]); }, kOne},
      {"Trunc", [](X x) { return Trunc(x[0]); }, kOne},
      {"Round", [](X x) { return Round(x[0]); }, kOne},
      {.name = "Softplus",
       .f = [](X x) { return Softplus(x[0], 1.5); },
       .sizes = kOne,
       .lo = -6,
       .hi = 6,
       .composed = [](X x) { return SoftplusComposed(x[0], 1.5); }},
      {.name = "LogSigmoid",
       .f = [](X x) { return LogSigmoid(x[0]); },
       .sizes = kOne,
       .lo = -6,
       .hi = 6,
       .composed = [](X x) { return LogSigmoidComposed(x[0]); }},
      {.name = "LeakyRelu",
       .f = [](X x) { return LeakyRelu(x[0], 0.2); },
       .sizes = kOne,
       .composed = [](X x) { return LeakyReluComposed(x[0], 0.2); }},
      {.name = "Elu",
       .f = [](X x) { return Elu(x[0], 1.5); },
       .sizes = kOne,
       .lo = -4,
       .hi = 4,
       .composed = [](X x) { return EluComposed(x[0], 1.5); }},
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
  };
}

INSTANTIATE_TEST_SUITE_P(Elementwise, GradientsTest, testing::ValuesIn(Table()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Elementwise, FusedTest,
                         testing::ValuesIn(Fused(Table())), NameOf);

}  // namespace
}  // namespace wengert
