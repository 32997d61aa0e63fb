// The gradient checks of products.
#include "autograd/ops/gradients_testlib.h"

namespace wengert {
namespace {

std::vector<Case> Table() {
  return {
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
      {"Outer",
       [](X x) { return Outer(x[0], x[1]); },
       {{{3}, {4}}, {{3}, {3}}, {{1}, {1}}, {{0}, {2}}, {{17}, {5}}}},
      {"Dot",
       [](X x) { return Dot(x[0], x[1]); },
       {{{3}, {3}}, {{1}, {1}}, {{0}, {0}}, {{37}, {37}}}},
      {"EinsumProduct",
       [](X x) {
         return Einsum("ij,jk->ik", {x[0], x[1]});
       },
       {{{2, 3}, {3, 4}},
        {{3, 3}, {3, 3}},
        {{1, 1}, {1, 1}},
        {{2, 0}, {0, 3}}}},
      {"EinsumAttention",
       [](X x) {
         return Einsum("bqhd,bkhd->bhqk", {x[0], x[1]});
       },
       {{{2, 3, 2, 2}, {2, 2, 2, 2}}, {{1, 2, 1, 3}, {1, 2, 1, 3}}}},
      {"EinsumOfThree",
       [](X x) {
         return Einsum("ab,bc,ca->b", {x[0], x[1], x[2]});
       },
       {{{2, 3}, {3, 4}, {4, 2}}, {{2, 2}, {2, 2}, {2, 2}}}},
      {"EinsumDiagonal",
       [](X x) { return Einsum("iji->j", {x[0]}); },
       {{{3, 2, 3}}, {{1, 4, 1}}, {{0, 2, 0}}}},
      {"EinsumElementwise",
       [](X x) {
         return Einsum("ij,ij->ji", {x[0], x[1]});
       },
       {{{2, 3}, {2, 3}}}},
      {"EinsumOfAll",
       [](X x) {
         return Einsum("ij,ij,k->", {x[0], x[1], x[2]});
       },
       {{{2, 3}, {2, 3}, {4}}}},
      // Its input and its weights may be one tensor.
      {.name = "ActivatedLinearOfItself",
       .f = [](X x) { return ActivatedLinear(Activation::kSilu, x[0], x[0]); },
       .sizes = {{{3, 3}}, {{2, 3}}},
       .composed =
           [](X x) {
             return LinearComposed(ActivateComposed(Activation::kSilu, x[0]),
                                   x[0]);
           }},
  };
}

INSTANTIATE_TEST_SUITE_P(Matmul, GradientsTest, testing::ValuesIn(Table()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Matmul, FusedTest, testing::ValuesIn(Fused(Table())),
                         NameOf);

}  // namespace
}  // namespace wengert
