// Losses of two arrays at their edges, and their errors.
#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(PairLossTest, KnownValues) {
  for (DType dtype : kFloats) {
    const Tensor a = Values({1, 2, 5}, dtype), b = Values({1, 4, 2}, dtype);
    EXPECT_NEAR(MseLoss(a, b).item(), 13.0 / 3, 1e-6);
    EXPECT_EQ(MseLoss(a, b, Reduction::kSum).item(), 13);
    EXPECT_THAT(MseLoss(a, b, Reduction::kNone).ToVector(),
                ElementsAre(0, 4, 9));
    EXPECT_THAT(L1Loss(a, b, Reduction::kNone).ToVector(),
                ElementsAre(0, 2, 3));
    EXPECT_THAT(HuberLoss(a, b, 2, Reduction::kNone).ToVector(),
                ElementsAre(0, 2, 4));
  }
}

// The slope of |d| is 0 at 0; that of Huber's loss is d up to its bound.
TEST(PairLossTest, SlopesWhereTheyJump) {
  for (DType dtype : kFloats) {
    const Tensor a = Values({3, 1, -1, 0}, dtype);
    const Tensor b = Tensor::Zeros({4}, dtype);
    for (bool recorded : {false, true}) {
      const auto l1 = [](Inputs x) {
        return L1Loss(x[0], x[1], Reduction::kSum);
      };
      const auto d = Differentiate(l1, {a, b}, {}, recorded);
      EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(1, 1, -1, 0));
      EXPECT_THAT(d.gradients[1].ToVector(), ElementsAre(-1, -1, 1, 0));
      EXPECT_THAT(
          GradientOf(
              [&](Inputs x) { return HuberLoss(x[0], b, 1, Reduction::kSum); },
              a, recorded),
          ElementsAre(1, 1, -1, 0));
    }
  }
}

TEST(PairLossTest, TheSameArrayTwice) {
  const Tensor a = Values({3, 1}, DType::kFloat32);
  const auto f = [](Inputs x) { return MseLoss(x[0], x[0]); };
  EXPECT_THAT(GradientOf(f, a), ElementsAre(0, 0));
}

TEST(PairLossTest, LongSumsKeepFloatAccuracy) {
  const int64_t n = (1 << 20) + 3;
  const Tensor a = Tensor::Full({n}, 0.1), b = Tensor::Zeros({n});
  const double x = static_cast<double>(0.1f);
  EXPECT_NEAR(MseLoss(a, b).item() / (x * x), 1, 2e-7);
  EXPECT_NEAR(L1Loss(a, b, Reduction::kSum).item() / (x * n), 1, 4e-7);
  // Every term has the error of the one logarithm.
  EXPECT_NEAR(BinaryCrossEntropyWithLogits(b, b).item() / std::log(2), 1, 1e-6);
}

TEST(PairLossTest, TheMeanOfNothingIsZero) {
  const Tensor none = Tensor::Zeros({0, 3});
  EXPECT_EQ(MseLoss(none, none).item(), 0);
  EXPECT_EQ(L1Loss(none, none).item(), 0);
  EXPECT_EQ(HuberLoss(none, none).item(), 0);
  EXPECT_EQ(BinaryCrossEntropyWithLogits(none, none).item(), 0);
  EXPECT_EQ(KlDivLoss(none, none).item(), 0);
  EXPECT_EQ(KlDivLoss(none, none, {.batch_mean = true}).item(), 0);
}

TEST(PairLossTest, Errors) {
  const Tensor a = Tensor::Zeros({2, 3}), b = Tensor::Zeros({3});
  EXPECT_EQ(ErrorOf([&] { MseLoss(a, b); }),
            "MseLoss: a float32 [2, 3], b float32 [3]; wanted equal shapes");
  EXPECT_THAT(ErrorOf([&] { L1Loss(a, b); }), StartsWith("L1Loss: a "));
  EXPECT_THAT(ErrorOf([&] { HuberLoss(a, b); }), StartsWith("HuberLoss: a "));
  EXPECT_THAT(ErrorOf([&] { MseLoss(a, a.To(DType::kFloat64)); }),
              StartsWith("MseLoss: got float32 [2, 3], float64 [2, 3]"));
  for (double delta : {0.0, -1.0, double{NAN}}) {
    EXPECT_THAT(ErrorOf([&] { HuberLoss(a, a, delta); }),
                StartsWith("HuberLoss: delta "));
  }
  EXPECT_THAT(ErrorOf([&] { BinaryCrossEntropyWithLogits(a, b); }),
              AllOf(StartsWith("BinaryCrossEntropyWithLogits: logits float32 "
                               "[2, 3], targets float32 [3]")));
  EXPECT_EQ(ErrorOf([&] {
              BinaryCrossEntropyWithLogits(a, a,
                                           {.pos_weight = Tensor::Ones({2})});
            }),
            "BinaryCrossEntropyWithLogits: pos_weight float32 [2] does not "
            "broadcast to logits float32 [2, 3]");
  EXPECT_THAT(ErrorOf([&] { KlDivLoss(a, b); }),
              StartsWith("KlDivLoss: log_probs float32 [2, 3], targets"));
  EXPECT_THAT(ErrorOf([&] {
                KlDivLoss(a, a,
                          {.reduction = Reduction::kSum, .batch_mean = true});
              }),
              HasSubstr("wanted Reduction::kMean"));
  EXPECT_THAT(ErrorOf([&] { CosineSimilarity(a, Tensor::Zeros({4})); }),
              StartsWith("CosineSimilarity: "));
  EXPECT_THAT(ErrorOf([&] { CosineSimilarity(a, a, 2); }),
              StartsWith("CosineSimilarity: "));
  EXPECT_THAT(ErrorOf([&] { CosineSimilarity(a, a, 1, 0); }),
              StartsWith("CosineSimilarity: eps 0"));
}

using BinaryOp = Tensor (*)(const Tensor&, const Tensor&,
                            const BinaryCrossEntropyOptions&);
constexpr BinaryOp kBinary[] = {BinaryCrossEntropyWithLogits,
                                BinaryCrossEntropyWithLogitsComposed};

TEST(BinaryCrossEntropyTest, LargeLogitsAreExact) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({1e4, -1e4, 1e4, -1e4}, dtype);
    const Tensor t = Values({1, 0, 0, 1}, dtype);
    for (BinaryOp op : kBinary) {
      for (bool recorded : {false, true}) {
        const auto d = Differentiate(
            [&](Inputs x) {
              return op(x[0], x[1], {.reduction = Reduction::kNone});
            },
            {x, t}, {}, recorded);
        EXPECT_THAT(d.value.ToVector(), ElementsAre(0, 0, 1e4, 1e4));
        EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(0, 0, 1, -1));
        EXPECT_THAT(d.gradients[1].ToVector(),
                    ElementsAre(-1e4, 1e4, -1e4, 1e4));
      }
    }
  }
}

// A loss that is nearly 0 keeps its digits, and so does its slope.
TEST(BinaryCrossEntropyTest, TailsKeepRelativeAccuracy) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({30, -30, 5, -5}, dtype);
    const Tensor t = Values({1, 0, 1, 0}, dtype);
    const auto d = Differentiate(
        [](Inputs x) {
          return BinaryCrossEntropyWithLogits(x[0], x[1],
                                              {.reduction = Reduction::kSum});
        },
        {x, t});
    const double a = 1 / (1 + std::exp(30)), b = 1 / (1 + std::exp(5));
    ExpectRelative(d.gradients[0].ToVector(), {-a, a, -b, b}, 1e-6);
    ExpectRelative(
        {BinaryCrossEntropyWithLogits(Values({30}, dtype), Values({1}, dtype))
             .item()},
        {std::log1p(std::exp(-30))}, 1e-6);
  }
}

TEST(KlDivTest, ZeroTimesLogZeroIsZero) {
  for (DType dtype : kFloats) {
    // Where the target is 0 the model may give probability 0 too.
    const Tensor log_p =
        Values({2, 2}, {std::log(0.5), -kInf, std::log(0.25), 7}, dtype);
    const Tensor t = Values({2, 2}, {1, 0, 1, 0}, dtype);
    const Tensor log_t = Values({2, 2}, {0, -kInf, 0, -kInf}, dtype);
    for (bool recorded : {false, true}) {
      for (bool log_target : {false, true}) {
        const auto d = Differentiate(
            [=](Inputs x) {
              return KlDivLoss(x[0], x[1],
                               {.log_target = log_target, .batch_mean = true});
            },
            {log_p, log_target ? log_t : t}, {}, recorded);
        EXPECT_NEAR(d.value.item(), 1.5 * std::log(2), 1e-6);
        EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(-0.5, 0, -0.5, 0));
        EXPECT_THAT(d.gradients[1].ToVector(),
                    ElementsAre(DoubleNear((std::log(2) + 1) / 2, 1e-6), 0,
                                DoubleNear((std::log(4) + 1) / 2, 1e-6), 0));
      }
    }
  }
}

TEST(CosineSimilarityTest, OfZerosIsZero) {
  for (DType dtype : kFloats) {
    const Tensor a = Tensor::Zeros({2}, dtype), b = Values({3, 4}, dtype);
    for (bool recorded : {false, true}) {
      const auto d =
          Differentiate([](Inputs x) { return CosineSimilarity(x[0], x[1]); },
                        {a, b}, {}, recorded);
      EXPECT_EQ(d.value.item(), 0);
      // b / (|b| eps): what the formula says of an |a| below eps.
      ExpectRelative(d.gradients[0].ToVector(), {0.6e8, 0.8e8}, 1e-6);
      EXPECT_THAT(d.gradients[1].ToVector(), Each(0));
    }
    EXPECT_EQ(CosineSimilarity(a, a).item(), 0);
    EXPECT_NEAR(CosineSimilarity(b, -b).item(), -1, 1e-7);
  }
}

TEST(LossesTest, SameBitsForAnyNumberOfThreads) {
  for (DType dtype : kFloats) {
    const Tensor a = Spread({301, 517}, -3, 3, 1).To(dtype);
    const Tensor b = Spread({301, 517}, 0, 1, 2).To(dtype);
    for (Reduction r : {Reduction::kMean, Reduction::kNone}) {
      ExpectSameBitsForThreads([=](Inputs x) { return MseLoss(x[0], x[1], r); },
                               {a, b});
      ExpectSameBitsForThreads(
          [=](Inputs x) { return HuberLoss(x[0], x[1], 1, r); }, {a, b});
      ExpectSameBitsForThreads(
          [=](Inputs x) {
            return BinaryCrossEntropyWithLogits(
                x[0], x[1],
                {.reduction = r, .pos_weight = Tensor::Full({517}, 2, dtype)});
          },
          {a, b});
    }
  }
}

}  // namespace
}  // namespace wengert
