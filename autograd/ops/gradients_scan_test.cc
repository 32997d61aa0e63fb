// The gradient checks of running sums and products, sorting and top-k.
#include "autograd/ops/gradients_testlib.h"

namespace wengert {
namespace {

const Sizes kOneAxis = {{{7}},       {{1}},     {{0}},       {{4, 5}},
                        {{0, 3}},    {{2, 17}}, {{2, 3, 4}}, {{3, 1, 2}},
                        {{2, 2, 9}}, {{1, 33}}};

// Zeros where there are so many elements: two in one row, one in another.
Tensor WithZeros(const Tensor& x) {
  std::vector<bool> zero(x.size());
  for (size_t i : {1, 3, 7}) {
    if (i < zero.size()) zero[i] = true;
  }
  return MaskedFill(x, Tensor::From(x.shape(), zero), 0);
}

std::vector<Case> Table() {
  return {
      {"CumSumLast", [](X x) { return CumSum(x[0], -1); }, kOneAxis},
      {"CumSumFirst", [](X x) { return CumSum(x[0], 0); }, kOneAxis},
      {"CumSumMiddle", [](X x) { return CumSum(x[0], 1); }, kCubeOrEmpty},
      {"CumProdLast", [](X x) { return CumProd(x[0], -1); }, kOneAxis, -1.5,
       1.5, [](X x) { return CumProdComposed(x[0], -1); }},
      {"CumProdFirst", [](X x) { return CumProd(x[0], 0); }, kOneAxis, -1.5,
       1.5, [](X x) { return CumProdComposed(x[0], 0); }},
      {"CumProdMiddle", [](X x) { return CumProd(x[0], 1); }, kCubeOrEmpty, -2,
       2, [](X x) { return CumProdComposed(x[0], 1); }},
      {"CumProdWithZeros",
       [](X x) { return CumProd(WithZeros(x[0]), -1); },
       {{{2, 5}}, {{8}}, {{4, 2}}},
       -2,
       2,
       [](X x) { return CumProdComposed(WithZeros(x[0]), -1); }},
      {"SortLast", [](X x) { return Sort(x[0]).values; }, kOneAxis},
      {"SortFirstDown",
       [](X x) { return Sort(x[0], 0, {.descending = true}).values; },
       kOneAxis},
      {"TopKOfNone", [](X x) { return TopK(x[0], 0).values; }, kOneAxis},
      {"TopKOfOne",
       [](X x) { return TopK(x[0], 1, 0).values; },
       {{{1}}, {{7}}, {{3, 4}}, {{2, 0}}, {{2, 3, 4}}}},
      {"TopKMiddle",
       [](X x) { return TopK(x[0], 2, 1, {.largest = false}).values; },
       {{{2, 3, 4}}, {{1, 2, 1}}, {{0, 5, 2}}}},
      {"TopKOfLongRows",
       [](X x) { return TopK(x[0], 3).values; },
       {{{2, 300}}}},
  };
}

INSTANTIATE_TEST_SUITE_P(Scan, GradientsTest, testing::ValuesIn(Table()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Scan, FusedTest, testing::ValuesIn(Fused(Table())),
                         NameOf);

}  // namespace
}  // namespace wengert
