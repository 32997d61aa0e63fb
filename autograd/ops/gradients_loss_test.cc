// The gradient checks of losses.
#include "autograd/ops/gradients_testlib.h"

namespace wengert {
namespace {

// Class ids for logits [..., C], the last of which is ignored.
Tensor Targets(const Tensor& logits) {
  Shape shape(logits.shape().dims().first(logits.rank() - 1));
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < shape.size(); ++i) {
    ids.push_back(i > 0 && i + 1 == shape.size() ? -100
                                                 : i * 5 % logits.dim(-1));
  }
  return Tensor::From(shape, ids);
}

Case LossCase(const char* name, CrossEntropyOptions o) {
  return {
      .name = name,
      .f = [=](X x) { return CrossEntropy(x[0], Targets(x[0]), o); },
      .sizes = {{{4, 3}}, {{5}}, {{2, 3, 7}}, {{1, 1}}, {{0, 3}}},
      .composed =
          [=](X x) { return CrossEntropyComposed(x[0], Targets(x[0]), o); }};
}

std::vector<Case> Table() {
  return {
      LossCase("CrossEntropy", {}),
      LossCase("CrossEntropySum", {.reduction = Reduction::kSum}),
      LossCase("CrossEntropyEach", {.reduction = Reduction::kNone}),
      LossCase("CrossEntropySmoothed", {.label_smoothing = 0.2}),
      LossCase("CrossEntropySmoothedEach",
               {.reduction = Reduction::kNone, .label_smoothing = 1}),
  };
}

INSTANTIATE_TEST_SUITE_P(Loss, GradientsTest, testing::ValuesIn(Table()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Loss, FusedTest, testing::ValuesIn(Fused(Table())),
                         NameOf);

}  // namespace
}  // namespace wengert
