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

Tensor ClassWeightsFor(const Tensor& logits, int axis = -1) {
  return Spread({logits.dim(axis)}, 0.5, 2, 5).To(logits.dtype());
}

// Cross-entropy with class weights; ids, and probabilities, which are trained.
Case WeightedCase(const char* name, CrossEntropyOptions o) {
  const auto run = [=](auto op) {
    return [=](X x) {
      CrossEntropyOptions all = o;
      all.weight = ClassWeightsFor(x[0]);
      return op(x[0], Targets(x[0]), all);
    };
  };
  return {
      .name = name,
      .f = run(CrossEntropy),
      .sizes = {{{4, 3}}, {{5}}, {{2, 3, 7}}, {{1, 1}}, {{0, 3}}, {{2, 40}}},
      .composed = run(CrossEntropyComposed)};
}

Case ProbabilitiesCase(const char* name, CrossEntropyOptions o, bool weighted) {
  const auto run = [=](auto op) {
    return [=](X x) {
      CrossEntropyOptions all = o;
      if (weighted) all.weight = ClassWeightsFor(x[0], o.class_axis);
      return op(x[0], Softmax(x[1], o.class_axis), all);
    };
  };
  return {.name = name,
          .f = run(CrossEntropy),
          .sizes = {{{4, 3}, {4, 3}},
                    {{2, 3, 4}, {2, 3, 4}},
                    {{1, 1}, {1, 1}},
                    {{0, 3}, {0, 3}}},
          .composed = run(CrossEntropyComposed)};
}

// A fused loss of two arrays beside the same from primitives.
Case PairCase(const std::string& name,
              Tensor (*f)(const Tensor&, const Tensor&, Reduction),
              Tensor (*composed)(const Tensor&), Reduction reduction) {
  const Sizes sizes = {
      {{2, 3}, {2, 3}}, {{}, {}}, {{1}, {1}}, {{0, 3}, {0, 3}}, {{37}, {37}}};
  return {.name = name,
          .f = [=](X x) { return f(x[0], x[1], reduction); },
          .sizes = sizes,
          .composed =
              [=](X x) {
                const Tensor losses = composed(x[0] - x[1]);
                if (reduction == Reduction::kNone) return losses;
                const double n = static_cast<double>(losses.size());
                return reduction == Reduction::kSum || n == 0 ? Sum(losses)
                                                              : Sum(losses) / n;
              }};
}

Tensor HalfHuber(const Tensor& a, const Tensor& b, Reduction r) {
  return HuberLoss(a, b, 0.5, r);
}
// Constant signs, so that the slope at 0 is 0.
Tensor Size(const Tensor& d) {
  const Tensor zero = Tensor::Zeros({}, d.dtype());
  return Where(Equal(d, zero), zero, Maximum(d, -d));
}
Tensor HalfHuberComposed(const Tensor& d) {
  const Tensor size = Size(d);
  return Where(Greater(size, Tensor::Full({}, 0.5, d.dtype())),
               0.5 * (size - 0.25), 0.5 * Square(d));
}

Case BinaryCase(const char* name, bool weight, bool pos_weight,
                Reduction reduction) {
  const auto run = [=](auto op) {
    return [=](X x) {
      BinaryCrossEntropyOptions o{.reduction = reduction};
      const Shape last = x[0].rank() == 0 ? Shape{} : Shape{x[0].dim(-1)};
      if (weight) o.weight = Spread(last, 0.5, 2, 3).To(x[0].dtype());
      if (pos_weight) {
        o.pos_weight = Spread(last, 1, 3, 4).To(x[0].dtype());
      }
      return op(x[0], Sigmoid(x[1]), o);
    };
  };
  return {.name = name,
          .f = run(BinaryCrossEntropyWithLogits),
          .sizes = {{{2, 3}, {2, 3}},
                    {{}, {}},
                    {{1}, {1}},
                    {{0, 3}, {0, 3}},
                    {{37}, {37}}},
          .lo = -4,
          .hi = 4,
          .composed = run(BinaryCrossEntropyWithLogitsComposed)};
}

Case NllCase(const char* name, Reduction reduction, bool weighted) {
  return {.name = name,
          .f =
              [=](X x) {
                NllOptions o{.reduction = reduction};
                if (weighted) o.weight = ClassWeightsFor(x[0]);
                return NllLoss(LogSoftmax(x[0]), Targets(x[0]), o);
              },
          .sizes = {{{4, 3}}, {{5}}, {{2, 3, 7}}, {{1, 1}}, {{0, 3}}}};
}

Case KlCase(const char* name, KlDivOptions o) {
  return {.name = name,
          .f =
              [=](X x) {
                return KlDivLoss(
                    LogSoftmax(x[0]),
                    o.log_target ? LogSoftmax(x[1]) : Softmax(x[1]), o);
              },
          .sizes = {{{4, 3}, {4, 3}}, {{1, 1}, {1, 1}}, {{0, 3}, {0, 3}}}};
}

std::vector<Case> Table() {
  constexpr Reduction kEach = Reduction::kNone, kSum = Reduction::kSum,
                      kMean = Reduction::kMean;
  const auto squares = [](const Tensor& d) { return Square(d); };
  return {
      LossCase("CrossEntropy", {}),
      LossCase("CrossEntropySum", {.reduction = Reduction::kSum}),
      LossCase("CrossEntropyEach", {.reduction = Reduction::kNone}),
      LossCase("CrossEntropySmoothed", {.label_smoothing = 0.2}),
      LossCase("CrossEntropySmoothedEach",
               {.reduction = Reduction::kNone, .label_smoothing = 1}),
      WeightedCase("CrossEntropyWeighted", {}),
      WeightedCase("CrossEntropyWeightedSmoothedSum",
                   {.reduction = kSum, .label_smoothing = 0.2}),
      WeightedCase("CrossEntropyWeightedSmoothedEach",
                   {.reduction = kEach, .label_smoothing = 0.2}),
      ProbabilitiesCase("CrossEntropyProbabilities", {}, false),
      ProbabilitiesCase("CrossEntropyProbabilitiesSmoothed",
                        {.label_smoothing = 0.2}, true),
      ProbabilitiesCase("CrossEntropyProbabilitiesEach", {.reduction = kEach},
                        true),
      ProbabilitiesCase("CrossEntropyProbabilitiesFirst",
                        {.label_smoothing = 0.1, .class_axis = 0}, true),
      {.name = "CrossEntropyMiddle",
       .f =
           [](X x) {
             return CrossEntropy(
                 x[0], Targets(Permute(x[0], {0, 2, 1})),
                 {.weight = ClassWeightsFor(x[0], 1), .class_axis = 1});
           },
       .sizes = {{{2, 3, 4}}, {{1, 1, 1}}},
       .composed =
           [](X x) {
             return CrossEntropyComposed(
                 x[0], Targets(Permute(x[0], {0, 2, 1})),
                 {.weight = ClassWeightsFor(x[0], 1), .class_axis = 1});
           }},
      NllCase("NllLoss", kMean, false),
      NllCase("NllLossWeighted", kMean, true),
      NllCase("NllLossWeightedEach", kEach, true),
      PairCase("MseLoss", MseLoss, squares, kMean),
      PairCase("MseLossSum", MseLoss, squares, kSum),
      PairCase("MseLossEach", MseLoss, squares, kEach),
      PairCase("L1Loss", L1Loss, Size, kMean),
      PairCase("L1LossEach", L1Loss, Size, kEach),
      PairCase("HuberLoss", HalfHuber, HalfHuberComposed, kMean),
      PairCase("HuberLossEach", HalfHuber, HalfHuberComposed, kEach),
      BinaryCase("BinaryCrossEntropy", false, false, kMean),
      BinaryCase("BinaryCrossEntropyWeighted", true, false, kSum),
      BinaryCase("BinaryCrossEntropyPositive", false, true, kEach),
      BinaryCase("BinaryCrossEntropyBoth", true, true, kMean),
      KlCase("KlDivLoss", {}),
      KlCase("KlDivLossBatchMean", {.batch_mean = true}),
      KlCase("KlDivLossLogEach", {.reduction = kEach, .log_target = true}),
      {.name = "CosineSimilarity",
       .f = [](X x) { return CosineSimilarity(x[0], x[1]); },
       .sizes =
           {{{2, 5}, {2, 5}}, {{5}, {3, 5}}, {{0, 3}, {3}}, {{2, 0}, {2, 0}}}},
      {.name = "CosineSimilarityFirst",
       .f = [](X x) { return CosineSimilarity(x[0], x[1], 0, 3); },
       .sizes = {{{4, 3}, {4, 3}}, {{1}, {1}}, {{1, 3}, {2, 1}}}},
  };
}

INSTANTIATE_TEST_SUITE_P(Loss, GradientsTest, testing::ValuesIn(Table()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Loss, FusedTest, testing::ValuesIn(Fused(Table())),
                         NameOf);

}  // namespace
}  // namespace wengert
