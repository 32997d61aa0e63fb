// The gradient checks of reductions.
#include "autograd/ops/gradients_testlib.h"

namespace wengert {
namespace {

std::vector<Case> Table() {
  return {
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
  };
}

INSTANTIATE_TEST_SUITE_P(Reduce, GradientsTest, testing::ValuesIn(Table()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Reduce, FusedTest, testing::ValuesIn(Fused(Table())),
                         NameOf);

}  // namespace
}  // namespace wengert
