#include <cstdio>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CustomLayer, LearnsAndPassesItsCheck) {
  FILE* pipe = popen("examples/custom_layer/custom_layer 2>&1", "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  char buffer[256];
  while (fgets(buffer, sizeof buffer, pipe)) output += buffer;
  EXPECT_EQ(pclose(pipe), 0) << output;
  EXPECT_THAT(output, StartsWith("gradients agree"));
  EXPECT_THAT(output, HasSubstr("gate.weight"));
  EXPECT_THAT(output, HasSubstr("step 400  loss 0.0"));
}

}  // namespace
