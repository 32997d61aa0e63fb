#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/program_testlib.h"

namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CustomLayer, LearnsAndPassesItsCheck) {
  const auto [status, output] =
      wengert::train::RunProgram("examples/custom_layer/custom_layer", "");
  EXPECT_EQ(status, 0) << output;
  EXPECT_THAT(output, StartsWith("gradients agree"));
  EXPECT_THAT(output, HasSubstr("gate.weight"));
  EXPECT_THAT(output, HasSubstr("step 400  loss 0.0"));
}

}  // namespace
