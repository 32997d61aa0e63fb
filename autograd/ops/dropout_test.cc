// Dropout: when it is on, how much it drops, and that it repeats.
#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(DropoutTest, Extremes) {
  for (DType dtype : kFloats) {
    Generator generator(1);
    Tape tape(generator);
    const Tensor x = Values({1, 2, 3}, dtype);
    tape.Watch(x);
    const Tensor none = Dropout(x, 1);
    EXPECT_THAT(none.ToVector(), ElementsAre(0, 0, 0));
    EXPECT_THAT(tape.Gradient(Sum(none), x, {.retain = true}).ToVector(),
                ElementsAre(0, 0, 0));
    const uint64_t offset = generator.offset();
    EXPECT_EQ(Dropout(x, 0).impl(), x.impl());
    EXPECT_EQ(generator.offset(), offset);  // nothing drawn
    for (double p : {-0.1, 1.1, static_cast<double>(NAN)}) {
      EXPECT_THAT(ErrorOf([&] { Dropout(x, p); }),
                  AllOf(StartsWith("Dropout: dropout probability "),
                        HasSubstr("wanted one in [0, 1]")));
    }
  }
}

TEST(DropoutTest, OnlyTrainingDrops) {
  const Tensor x = Values({1, 2, 3}, DType::kFloat32);
  EXPECT_EQ(Dropout(x, 0.5).impl(), x.impl());
  {
    Tape tape(Tape::kEval);
    tape.Watch(x);
    EXPECT_EQ(Dropout(x, 0.5).impl(), x.impl());
  }
  Tape tape;
  EXPECT_THAT(ErrorOf([&] { Dropout(x, 0.5); }),
              AllOf(StartsWith("Dropout: "), HasSubstr("Tape tape(generator)"),
                    HasSubstr("Tape tape(Tape::kEval)")));
  EXPECT_EQ(Dropout(x, 0).impl(), x.impl());
  EXPECT_THAT(ErrorOf([&] { Dropout(x, 2); }), HasSubstr("[0, 1]"));
  EXPECT_THAT(ErrorOf([&] { Dropout(x.To(DType::kInt32), 0.5); }),
              StartsWith("Dropout: got int32 [3]"));
  EXPECT_THAT(ErrorOf([&] { Dropout({}, 0.5); }), StartsWith("Dropout: "));
}

TEST(DropoutTest, KeepsTheRightShareAndScalesIt) {
  for (DType dtype : kFloats) {
    Generator generator(3);
    Tape tape(generator);
    const int64_t n = 100000;
    const Tensor x = Tensor::Ones({n}, dtype);
    tape.Watch(x);
    for (double p : {0.1, 0.5, 0.9}) {
      const Tensor y = Dropout(x, p);
      int64_t kept = 0;
      for (double v : y.ToVector()) {
        if (v == 0) continue;
        ++kept;
        EXPECT_NEAR(v, 1 / (1 - p), 1e-6 / (1 - p));
      }
      // Within five standard deviations.
      EXPECT_NEAR(kept, n * (1 - p), 5 * std::sqrt(n * p * (1 - p)));
      // The gradient passes where the value did.
      EXPECT_TRUE(SameBits(tape.Gradient(Sum(y), x, {.retain = true}), y));
    }
  }
}

TEST(DropoutTest, RepeatsFromSeedAndOffset) {
  const Tensor x = Tensor::Ones({64});
  const auto draw = [&](uint64_t seed, uint64_t offset) {
    Generator generator(seed, offset);
    Tape tape(generator);
    return Dropout(x, 0.5).ToVector();
  };
  EXPECT_EQ(draw(1, 0), draw(1, 0));
  EXPECT_NE(draw(1, 0), draw(1, 1));
  EXPECT_NE(draw(1, 0), draw(2, 0));
  // Two calls under one tape differ, and the second is that of offset 1.
  Generator generator(1);
  Tape tape(generator);
  EXPECT_EQ(Dropout(x, 0.5).ToVector(), draw(1, 0));
  EXPECT_EQ(Dropout(x, 0.5).ToVector(), draw(1, 1));
  EXPECT_EQ(generator.offset(), 2u);
}

TEST(DropoutTest, DroppedInfinitiesAreGone) {
  Generator generator(1);
  Tape tape(generator);
  EXPECT_THAT(Dropout(Values({kInf, NAN, 1}, DType::kFloat32), 1).ToVector(),
              Each(0));
}

TEST(DropoutTest, SameBitsForAnyNumberOfThreads) {
  for (DType dtype : kFloats) {
    const Tensor x = Spread({70001}, -1, 1).To(dtype);
    const auto run = [&](int threads) {
      SetNumThreads(threads);
      Generator generator(5);
      Tape tape(generator);
      tape.Watch(x);
      const Tensor y = Dropout(x, 0.3);
      return std::pair(y.Detach(), tape.Gradient(Sum(Square(y)), x));
    };
    const auto one = run(1);
    for (int threads : {2, 3, 5}) {
      const auto many = run(threads);
      EXPECT_TRUE(SameBits(one.first, many.first));
      EXPECT_TRUE(SameBits(one.second, many.second));
    }
    SetNumThreads(1);
  }
}

}  // namespace
}  // namespace wengert
