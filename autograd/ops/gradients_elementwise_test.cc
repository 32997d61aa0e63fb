// The gradient checks of arithmetic and functions of one argument.
#include "autograd/ops/gradients_testlib.h"

namespace wengert {
namespace {

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
  };
}

INSTANTIATE_TEST_SUITE_P(Elementwise, GradientsTest, testing::ValuesIn(Table()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Elementwise, FusedTest,
                         testing::ValuesIn(Fused(Table())), NameOf);

}  // namespace
}  // namespace wengert
