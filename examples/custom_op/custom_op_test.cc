#include <string>

#include "autograd/tensor_testlib.h"
#include "examples/custom_op/squared_relu_gate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/program_testlib.h"

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using wengert::DType;
using wengert::Tape;
using wengert::Tensor;

constexpr char kProgram[] = "examples/custom_op/custom_op";

TEST(CustomOp, KnownValues) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Tensor a = Tensor::Of({4}, {2, -1, 0, 3}).To(dtype);
    const Tensor b = Tensor::Of({4}, {5, 7, 1, -1}).To(dtype);
    Tape tape;
    tape.Watch(a);
    tape.Watch(b);
    const Tensor y = SquaredReluGate(a, b);
    EXPECT_THAT(y.ToVector(), ElementsAre(20, 0, 0, -9));
    const auto d = tape.Gradient(Sum(y), {a, b});
    EXPECT_THAT(d[0].ToVector(), ElementsAre(20, 0, 0, -6));
    EXPECT_THAT(d[1].ToVector(), ElementsAre(4, 0, 0, 9));
  }
}

TEST(CustomOp, RefusesWhatDoesNotFit) {
  try {
    SquaredReluGate(Tensor::Zeros({2, 3}), Tensor::Zeros({3}));
    ADD_FAILURE();
  } catch (const wengert::Error& e) {
    EXPECT_EQ(std::string(e.what()),
              "SquaredReluGate: got float32 [2, 3] and float32 [3]; wanted "
              "floats of one shape and dtype");
  }
}

TEST(CustomOp, PassesItsChecksAndLearns) {
  const auto [status, output] = wengert::train::RunProgram(kProgram, "");
  EXPECT_EQ(status, 0) << output;
  EXPECT_THAT(output, StartsWith("gradients agree"));
  EXPECT_THAT(output, HasSubstr("step 600  loss 0.00"));
}

TEST(CustomOp, RefusesAWord) {
  wengert::train::ExpectRefused(kProgram, "word", "\"word\"");
}

}  // namespace
