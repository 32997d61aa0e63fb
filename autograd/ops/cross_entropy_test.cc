// Cross-entropy, fused and composed.
#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Op = Tensor (*)(const Tensor&, const Tensor&, const CrossEntropyOptions&);

constexpr Op kBoth[] = {CrossEntropy, CrossEntropyComposed};

// Value and gradient of each form: the plain and the recorded pass of the fused
// operation, and the composition.
template <class Check>
void ForEachForm(Check check) {
  for (DType dtype : kFloats) {
    for (Op op : kBoth) {
      for (bool recorded : {false, true}) {
        SCOPED_TRACE(std::string(Name(dtype)) +
                     (op == CrossEntropy ? " fused" : " composed") +
                     (recorded ? " recorded" : ""));
        check(dtype, op, recorded);
      }
    }
  }
}

ValueAndGradients LossOf(Op op, const Tensor& logits, const Tensor& targets,
                         CrossEntropyOptions options, bool recorded) {
  return Differentiate([&](Inputs x) { return op(x[0], targets, options); },
                       {logits}, {}, recorded);
}

TEST(CrossEntropyTest, KnownValues) {
  ForEachForm([](DType dtype, Op op, bool recorded) {
    const Tensor logits = Values({2, 3}, {1, 2, 3, 0, 0, 0}, dtype);
    const Tensor targets = Tensor::Of<int32_t>({2}, {2, 0});
    const double a = 0.40760596444438046, b = std::log(3);
    auto d = LossOf(op, logits, targets, {}, recorded);
    EXPECT_EQ(d.value.shape(), Shape{});
    EXPECT_NEAR(d.value.item(), (a + b) / 2, 3e-7);
    ExpectClose(
        d.gradients[0],
        Values({2, 3}, {0.045015286585190, 0.122364235527399,
                        -0.167379522112589, -1.0 / 3, 1.0 / 6, 1.0 / 6}),
        5e-7, "gradient");
    d = LossOf(op, logits, targets, {.reduction = Reduction::kSum}, recorded);
    EXPECT_NEAR(d.value.item(), a + b, 3e-7);
    EXPECT_NEAR(d.gradients[0].ToVector()[3], -2.0 / 3, 1e-7);
    d = LossOf(op, logits, targets, {.reduction = Reduction::kNone}, recorded);
    EXPECT_EQ(d.value.shape(), (Shape{2}));
    EXPECT_THAT(d.value.ToVector(),
                ElementsAre(DoubleNear(a, 2e-7), DoubleNear(b, 2e-7)));
  });
}

TEST(CrossEntropyTest, OnlyTargetIgnored) {
  ForEachForm([](DType dtype, Op op, bool recorded) {
    for (double smoothing : {0.0, 0.2}) {
      const auto d = LossOf(
          op, Values({1, 3}, {1, 2, 3}, dtype), Tensor::Of<int64_t>({1}, {-1}),
          {.ignore_index = -1, .label_smoothing = smoothing}, recorded);
      EXPECT_EQ(d.value.item(), 0);
      EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(0, 0, 0));
    }
  });
}

TEST(CrossEntropyTest, SmoothingWithAnIgnoredTarget) {
  ForEachForm([](DType dtype, Op op, bool recorded) {
    const auto d = LossOf(op, Values({2, 2}, {0, std::log(3), 5, -5}, dtype),
                          Tensor::Of<int64_t>({2}, {0, -100}),
                          {.label_smoothing = 0.2}, recorded);
    EXPECT_NEAR(d.value.item(), 1.2764331, 2e-7);
    EXPECT_THAT(
        d.gradients[0].ToVector(),
        ElementsAre(DoubleNear(-0.65, 1e-7), DoubleNear(0.65, 1e-7), 0, 0));
  });
}

// An ignored row may hold anything: padding is often not a number.
TEST(CrossEntropyTest, IgnoredRowsAreNotRead) {
  ForEachForm([](DType dtype, Op op, bool recorded) {
    const auto d =
        LossOf(op, Values({3, 2}, {NAN, 1, 0, 0, kInf, -kInf}, dtype),
               Tensor::Of<int64_t>({3}, {-100, 1, -100}),
               {.label_smoothing = 0.2}, recorded);
    EXPECT_NEAR(d.value.item(), std::log(2), 1e-7);
    EXPECT_THAT(
        d.gradients[0].ToVector(),
        ElementsAre(0, 0, DoubleNear(0.4, 1e-7), DoubleNear(-0.4, 1e-7), 0, 0));
  });
}

TEST(CrossEntropyTest, LargeLogitsLoseNothing) {
  ForEachForm([](DType dtype, Op op, bool recorded) {
    auto d = LossOf(op, Values({1, 2}, {1e4, 1e4}, dtype),
                    Tensor::Of<int64_t>({1}, {0}), {}, recorded);
    EXPECT_NEAR(d.value.item(), std::log(2), 1e-7);
    EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(-0.5, 0.5));
    // A sure prediction: the loss is e^-20, not 0.
    d = LossOf(op, Values({1, 2}, {1020, 1000}, dtype),
               Tensor::Of<int64_t>({1}, {0}), {}, recorded);
    EXPECT_NEAR(d.value.item(), std::exp(-20), 1e-8);
    if (op == CrossEntropy) {
      EXPECT_NEAR(d.value.item() / std::exp(-20), 1, 1e-6);
    }
  });
}

TEST(CrossEntropyTest, ImpossibleClasses) {
  ForEachForm([](DType dtype, Op op, bool recorded) {
    const auto d = LossOf(op, Values({1, 3}, {0, -kInf, 0}, dtype),
                          Tensor::Of<int64_t>({1}, {0}), {}, recorded);
    EXPECT_NEAR(d.value.item(), std::log(2), 1e-7);
    EXPECT_THAT(d.gradients[0].ToVector(),
                ElementsAre(DoubleNear(-0.5, 1e-7), 0, DoubleNear(0.5, 1e-7)));
    EXPECT_EQ(
        op(Values({1, 2}, {0, -kInf}, dtype), Tensor::Of<int64_t>({1}, {1}), {})
            .item(),
        kInf);
  });
}

TEST(CrossEntropyTest, SecondDerivativeIsTheSoftmaxCovariance) {
  for (DType dtype : kFloats) {
    for (Op op : kBoth) {
      Tape tape;
      const Tensor logits = Values({1, 2}, {std::log(3), 0}, dtype);
      tape.Watch(logits);
      const Tensor loss = op(logits, Tensor::Of<int64_t>({1}, {0}), {});
      const Tensor first = tape.Gradient(loss, logits, {.create_graph = true});
      EXPECT_THAT(first.ToVector(),
                  ElementsAre(DoubleNear(-0.25, 1e-7), DoubleNear(0.25, 1e-7)));
      const Tensor second =
          tape.Gradient(Sum(first * Values({1, 2}, {1, 0}, dtype)), logits);
      EXPECT_THAT(second.ToVector(), ElementsAre(DoubleNear(0.1875, 1e-7),
                                                 DoubleNear(-0.1875, 1e-7)));
    }
  }
}

TEST(CrossEntropyTest, AnyLeadingShape) {
  const Tensor logits = Spread({2, 3, 4}, -1, 1);
  const Tensor targets = Tensor::Zeros({2, 3}, DType::kInt64);
  for (Op op : kBoth) {
    EXPECT_EQ(op(logits, targets, {.reduction = Reduction::kNone}).shape(),
              (Shape{2, 3}));
    const Tensor one = Values({0, 0}, DType::kFloat32);
    EXPECT_NEAR(op(one, Tensor::Scalar(1, DType::kInt32), {}).item(),
                std::log(2), 1e-7);
    EXPECT_EQ(
        op(Tensor::Zeros({0, 3}), Tensor::Zeros({0}, DType::kInt64), {}).item(),
        0);
  }
}

TEST(CrossEntropyTest, Errors) {
  const Tensor logits = Tensor::Zeros({2, 3});
  const Tensor targets = Tensor::Of<int64_t>({2}, {0, -4});
  for (Op op : kBoth) {
    EXPECT_EQ(
        ErrorOf([&] { op(logits, targets, {.ignore_index = -1}); }),
        "CrossEntropy: target -4 at position 1 of int64 [2] is out of range; "
        "wanted one in [0, 3) for logits float32 [2, 3], or -1 to ignore it");
    EXPECT_THAT(ErrorOf([&] {
                  op(logits, Tensor::Of<int64_t>({2}, {0, 3}), {});
                }),
                StartsWith("CrossEntropy: target 3 at position 1"));
    EXPECT_EQ(
        ErrorOf([&] { op(logits, Tensor::Zeros({3}, DType::kInt64), {}); }),
        "CrossEntropy: logits float32 [2, 3], targets int64 [3]; wanted "
        "logits [..., C] and int32 or int64 targets [...], or probabilities "
        "[..., C] of the logits' type");
    EXPECT_THAT(ErrorOf([&] { op(logits, Tensor::Zeros({2}), {}); }),
                AllOf(StartsWith("CrossEntropy: logits float32 [2, 3], targets "
                                 "float32 [2]")));
    EXPECT_THAT(ErrorOf([&] { op(logits, {}, {}); }),
                HasSubstr("targets undefined"));
    EXPECT_THAT(ErrorOf([&] { op({}, targets, {}); }),
                StartsWith("CrossEntropy: got undefined"));
    EXPECT_THAT(ErrorOf([&] { op(Tensor::Scalar(0), targets, {}); }),
                StartsWith("CrossEntropy: logits float32 []"));
    EXPECT_THAT(ErrorOf([&] {
                  op(logits, Tensor::Zeros({2}, DType::kInt64),
                     {.label_smoothing = 1.5});
                }),
                AllOf(StartsWith("CrossEntropy: label smoothing 1.5"),
                      HasSubstr("[0, 1]")));
  }
}

TEST(CrossEntropyTest, WeightedTargetsAllIgnored) {
  ForEachForm([](DType dtype, Op op, bool recorded) {
    const auto d = LossOf(
        op, Values({2, 2}, {1, NAN, 3, 4}, dtype),
        Tensor::Of<int64_t>({2}, {-100, -100}),
        {.label_smoothing = 0.2, .weight = Values({1, 2}, dtype)}, recorded);
    EXPECT_EQ(d.value.item(), 0);
    EXPECT_THAT(d.gradients[0].ToVector(), Each(0));
  });
}

// Of one target the gradient is w (p - 1), whatever the sign of w.
TEST(CrossEntropyTest, NegativeWeights) {
  ForEachForm([](DType dtype, Op op, bool recorded) {
    const auto d = LossOf(
        op, Tensor::Zeros({3, 2}, dtype), Tensor::Of<int64_t>({3}, {1, 0, 1}),
        {.reduction = Reduction::kSum, .weight = Values({3, -1}, dtype)},
        recorded);
    EXPECT_NEAR(d.value.item(), std::log(2), 1e-6);
    EXPECT_THAT(d.gradients[0].ToVector(),
                ElementsAre(-.5, .5, -1.5, 1.5, -.5, .5));
  });
}

TEST(CrossEntropyTest, WeightsOfOneChangeNothing) {
  ForEachForm([](DType dtype, Op op, bool recorded) {
    const Tensor logits = Spread({7, 5}, -3, 3).To(dtype);
    const Tensor targets = Tensor::Of<int64_t>({7}, {0, 1, 2, 3, 4, -100, 0});
    for (double smoothing : {0.0, 0.3}) {
      const auto plain =
          LossOf(op, logits, targets, {.label_smoothing = smoothing}, recorded);
      const auto d = LossOf(
          op, logits, targets,
          {.label_smoothing = smoothing, .weight = Tensor::Ones({5}, dtype)},
          recorded);
      ExpectClose(d.value, plain.value, 3e-7, "value");
      ExpectClose(d.gradients[0], plain.gradients[0], 1e-6, "gradient");
    }
  });
}

TEST(CrossEntropyTest, ProbabilitiesOfOneClassAreItsIndex) {
  ForEachForm([](DType dtype, Op op, bool recorded) {
    const Tensor logits = Values({2, 3}, {20, 0, -kInf, 1, 2, 3}, dtype);
    const auto by_id =
        LossOf(op, logits, Tensor::Of<int64_t>({2}, {0, 1}), {}, recorded);
    const auto d = LossOf(op, logits, Values({2, 3}, {1, 0, 0, 0, 1, 0}, dtype),
                          {}, recorded);
    ExpectClose(d.value, by_id.value, 3e-7, "value");
    ExpectClose(d.gradients[0], by_id.gradients[0], 1e-6, "gradient");
  });
}

// A sure prediction's loss and slope are e^-20, not 0.
TEST(CrossEntropyTest, WeightedSurePredictionKeepsItsDigits) {
  for (DType dtype : kFloats) {
    const auto d = LossOf(
        CrossEntropy, Values({1, 2}, {1020, 1000}, dtype),
        Tensor::Of<int64_t>({1}, {0}),
        {.reduction = Reduction::kSum, .weight = Values({3, 1}, dtype)}, false);
    const double e = 3 * std::exp(-20);
    ExpectRelative({d.value.item()}, {e}, 1e-6);
    ExpectRelative(d.gradients[0].ToVector(), {-e, e}, 1e-6);
  }
}

TEST(CrossEntropyTest, ErrorsOfWeightsAndAxes) {
  const Tensor logits = Tensor::Zeros({2, 3, 4});
  const Tensor targets = Tensor::Of<int64_t>({2, 4}, {0, 1, 2, 0, 1, 7, 0, 0});
  for (Op op : kBoth) {
    EXPECT_EQ(ErrorOf([&] { op(logits, targets, {.class_axis = 1}); }),
              "CrossEntropy: target 7 at position 5 of int64 [2, 4] is out of "
              "range; wanted one in [0, 3) for logits float32 [2, 3, 4], or "
              "-100 to ignore it");
    EXPECT_EQ(ErrorOf([&] {
                op(logits, targets,
                   {.weight = Tensor::Ones({4}), .class_axis = 1});
              }),
              "CrossEntropy: weight float32 [4], logits float32 [2, 3, 4]; "
              "wanted one weight for each of 3 classes");
    EXPECT_THAT(ErrorOf([&] { op(logits, targets, {.class_axis = 3}); }),
                StartsWith("CrossEntropy: axis 3"));
    EXPECT_THAT(ErrorOf([&] {
                  op(logits, Tensor::Zeros({2, 3, 4}, DType::kFloat64), {});
                }),
                HasSubstr("targets float64 [2, 3, 4]"));
  }
}

TEST(NllLossTest, IgnoredRowsAreNotRead) {
  for (DType dtype : kFloats) {
    for (bool recorded : {false, true}) {
      const auto d = Differentiate(
          [](Inputs x) {
            return NllLoss(x[0], Tensor::Of<int32_t>({3}, {-1, 1, -1}),
                           {.ignore_index = -1});
          },
          {Values({3, 2}, {NAN, 1, -3, -4, kInf, -kInf}, dtype)}, {}, recorded);
      EXPECT_EQ(d.value.item(), 4);
      EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(0, 0, 0, -1, 0, 0));
    }
  }
}

TEST(NllLossTest, AllTargetsIgnored) {
  for (int64_t classes : {3, 0}) {
    const auto d = Differentiate(
        [](Inputs x) {
          return NllLoss(x[0], Tensor::Of<int64_t>({2}, {-100, -100}));
        },
        {Tensor::Ones({2, classes})});
    EXPECT_EQ(d.value.item(), 0);
    EXPECT_THAT(d.gradients[0].ToVector(), Each(0));
  }
}

TEST(NllLossTest, Errors) {
  const Tensor log_p = Tensor::Zeros({2, 3});
  EXPECT_EQ(ErrorOf([&] {
              NllLoss(log_p, Tensor::Of<int64_t>({2}, {0, 3}));
            }),
            "NllLoss: target 3 at position 1 of int64 [2] is out of range; "
            "wanted one in [0, 3) for log_probs float32 [2, 3], or -100 to "
            "ignore it");
  EXPECT_THAT(ErrorOf([&] { NllLoss(log_p, log_p); }),
              StartsWith("NllLoss: log_probs float32 [2, 3], targets float32"));
}

TEST(CrossEntropyTest, SameBitsForAnyNumberOfThreads) {
  std::vector<int64_t> targets;
  for (int64_t i = 0; i < 1201; ++i) targets.push_back(i % 7 ? i % 131 : -100);
  for (DType dtype : kFloats) {
    ExpectSameBitsForThreads(
        [&](Inputs x) {
          return CrossEntropy(x[0], Tensor::From({1201}, targets),
                              {.label_smoothing = 0.1});
        },
        {Spread({1201, 131}, -3, 3).To(dtype)});
    ExpectSameBitsForThreads(
        [&](Inputs x) {
          return CrossEntropy(x[0], Tensor::From({1201}, targets),
                              {.label_smoothing = 0.1,
                               .weight = Spread({131}, 1, 2).To(dtype)});
        },
        {Spread({1201, 131}, -3, 3).To(dtype)});
    ExpectSameBitsForThreads([&](Inputs x) { return CrossEntropy(x[0], x[1]); },
                             {Spread({1201, 131}, -3, 3).To(dtype),
                              Spread({1201, 131}, 0, 1).To(dtype)});
  }
}

}  // namespace
}  // namespace wengert
