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
      {"Squeeze", [](X x) { return Squeeze(x[0]); }, {{{1, 3, 1}}, {{1}}}},
      {"Unsqueeze", [](X x) { return Unsqueeze(x[0], -1); }, kOne},
      {"Expand",
       [](X x) {
         return Expand(x[0], {2, 3, -1});
       },
       {{{3, 4}}, {{1, 2}}, {{5}}, {{0}}, {{2, 1, 3}}}},
      {"Stack",
       [](X x) { return Stack(x, 1); },
       {{{2, 3}, {2, 3}, {2, 3}}, {{2}}, {{1}, {1}}, {{0}, {0}}}},
      {"StackOfScalars", [](X x) { return Stack(x); }, {{{}, {}}, {{}}}},
      {"Split",
       [](X x) {
         const auto parts = Split(x[0], {1, 0, 2, 1}, 1);
         return Concat({parts[3], parts[2] * parts[2], parts[1]}, 1);
       },
       {{{3, 4}}, {{2, 4, 3}}, {{0, 4}}, {{1, 4}}}},
      {"SplitOfFirst",
       [](X x) {
         const auto parts = Split(x[0], 2);
         return parts[0] * parts[0];
       },
       {{{5, 2}}, {{3}}, {{2}}, {{1}}}},
      {"Chunk",
       [](X x) {
         const auto parts = Chunk(x[0], 2, -1);
         return parts[1] * parts[0];
       },
       {{{3, 4}}, {{2}}, {{0, 6}}}},
      {"Pad",
       [](X x) {
         return Pad(x[0], {{2, 1}, {0, 3}}, 7);
       },
       kCubeOrEmpty},
      {"PadAndCut",
       [](X x) {
         return Pad(x[0], {{-1, 2}, {1, -2}, {0, 0}}, -1);
       },
       {{{3, 4, 2}}, {{1, 2, 1}}, {{2, 3, 3, 2}}, {{2, 2, 0}}}},
      {"Flip", [](X x) { return Flip(x[0]); }, kOne},
      {"FlipSome",
       [](X x) {
         return Flip(x[0], {0, -1});
       },
       kCubeOrEmpty},
      {"Roll", [](X x) { return Roll(x[0], -7, 1); }, kCubeOrEmpty},
      {"Tile",
       [](X x) {
         return Tile(x[0], {2, 1, 3});
       },
       {{{2, 3, 4}}, {{5}}, {{}}, {{1, 1}}, {{0, 2}}, {{1, 2, 1, 3}}}},
      {"Repeat", [](X x) { return Repeat(x[0], 3, 0); }, kRows},
      {"RepeatLast", [](X x) { return Repeat(x[0], 2, -1); }, kRows},
      {"Unfold",
       [](X x) { return Unfold(x[0], -1, 3, 1); },
       {{{2, 7}}, {{3}}, {{17}}, {{0, 4}}}},
      {"UnfoldFirst",
       [](X x) { return Unfold(x[0], 0, 2, 3); },
       {{{7, 3}}, {{2, 1}}, {{6}}, {{4, 0}}, {{9, 2, 2}}}},
      {"UnfoldMiddle",
       [](X x) { return Unfold(x[0], 1, 4, 2); },
       {{{2, 9, 3}}}},
      {"Tril", [](X x) { return Tril(x[0]); }, kCubeOrEmpty},
      {"Triu", [](X x) { return Triu(x[0], 1); }, kCubeOrEmpty},
      {"TrilBelow", [](X x) { return Tril(x[0], -1); }, {{{4, 3}}, {{2, 5}}}},
      {"Diagonal",
       [](X x) { return Diagonal(x[0]); },
       {{{3, 3}}, {{2, 5}}, {{4, 2, 3}}, {{1, 1}}, {{0, 3}}}},
      {"DiagonalOfLast",
       [](X x) { return Diagonal(x[0], -1, -1, 1); },
       {{{2, 3, 4}}, {{2, 4, 3, 2}}, {{3, 1, 2}}}},
      {"DiagEmbed", [](X x) { return DiagEmbed(x[0]); }, kRows},
      {"DiagEmbedAbove", [](X x) { return DiagEmbed(x[0], 2); }, kRows},
      {"DiagEmbedBelow", [](X x) { return DiagEmbed(x[0], -1); }, kRows},
  };
}

INSTANTIATE_TEST_SUITE_P(Move, GradientsTest, testing::ValuesIn(Table()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Move, FusedTest, testing::ValuesIn(Fused(Table())),
                         NameOf);

}  // namespace
}  // namespace wengert
