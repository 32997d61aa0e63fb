// The gradient checks of shape and place.
#include "autograd/ops/gradients_testlib.h"

namespace wengert {
namespace {

Tensor Ids() { return Tensor::Of<int32_t>({2, 2}, {1, 0, 1, 2}); }

std::vector<Case> Table() {
  return {
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
  };
}

INSTANTIATE_TEST_SUITE_P(Move, GradientsTest, testing::ValuesIn(Table()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Move, FusedTest, testing::ValuesIn(Fused(Table())),
                         NameOf);

}  // namespace
}  // namespace wengert
