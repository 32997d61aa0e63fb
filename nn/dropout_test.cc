#include "nn/dropout.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"

namespace wengert::nn {
namespace {

using ::testing::HasSubstr;

TEST(DropoutTest, ActsUnderATrainingTapeOnly) {
  const Dropout layer(0.4);
  const Tensor x = RandomTensor({100}, 1, DType::kFloat32);
  EXPECT_TRUE(SameBits(layer(x), x));
  {
    Tape tape(Tape::kEval);
    EXPECT_TRUE(SameBits(layer(x), x));
  }
  {
    Tape tape;
    EXPECT_THAT(ErrorOf([&] { layer(x); }), HasSubstr("Tape tape(generator)"));
  }
  Generator generator(1);
  Tape tape(generator);
  const Tensor once = layer(x), again = layer(x);
  EXPECT_FALSE(SameBits(once, x));
  EXPECT_FALSE(SameBits(once, again));
  for (int i = 0; i < 100; ++i) {
    const float y = once.data<float>()[i];
    EXPECT_FLOAT_EQ(y, y == 0 ? 0 : x.data<float>()[i] / 0.6f);
  }
}

TEST(DropoutTest, DropsTheShareThatItWasTold) {
  Generator generator(1);
  Tape tape(generator);
  const Tensor y = Dropout(0.3)(Tensor::Ones({100000}));
  int dropped = 0;
  for (float v : y.span<float>()) dropped += v == 0;
  // The deviation of the count is sqrt(n p (1 - p)) = 145.
  EXPECT_NEAR(dropped, 30000, 5 * 145);
}

TEST(DropoutTest, Gradients) {
  Generator generator(1);
  const Dropout layer(0.4);
  EXPECT_TRUE(GradCheck([&](auto x) { return layer(x[0]); },
                        {RandomTensor({3, 4}, 1)},
                        {.order = 2, .generator = &generator}));
}

TEST(DropoutTest, EndsOfTheRange) {
  Generator generator(1);
  const Tensor x = Tensor::Of({3}, {1, 2, 3});
  Tape tape(generator);
  tape.Watch(x);
  EXPECT_TRUE(SameBits(Dropout(0)(x), x));
  const Tensor y = Dropout(1)(x);
  EXPECT_EQ(y.ToVector(), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(tape.Gradient(Sum(y), x).ToVector(),
            (std::vector<double>{0, 0, 0}));
  for (double p : {-0.1, 1.1, std::nan("")}) {
    EXPECT_THAT(ErrorOf([&] { Dropout{p}; }), HasSubstr("wanted [0, 1]"));
  }
}

}  // namespace
}  // namespace wengert::nn
