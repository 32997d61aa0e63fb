// Runs the program as a person does.
#include <fstream>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/program_testlib.h"

namespace wengert::train {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kProgram[] = "examples/mlp_spiral/mlp_spiral";

std::string Temp(const std::string& name) {
  return ::testing::TempDir() + "/" + name;
}

TEST(MlpSpiral, LearnsAndDraws) {
  const std::string picture = Temp("spiral.png");
  const ProgramResult r =
      RunProgram(kProgram, "--quiet --picture=" + picture, "2>/dev/null");
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_THAT(r.out, StartsWith("wrote " + picture + "\n"));
  EXPECT_THAT(r.out, ContainsRegex("AAAA.*BBBB.*CCCC"));
  EXPECT_THAT(r.out, HasSubstr("held-out accuracy "));
  std::stringstream bytes;
  bytes << std::ifstream(picture, std::ios::binary).rdbuf();
  EXPECT_THAT(bytes.str(), StartsWith("\x89PNG"));
  EXPECT_GT(bytes.str().size(), 10000u);
}

TEST(MlpSpiral, OtherSeedsLearnToo) {
  for (const char* seed : {"2", "3", "4", "5"}) {
    const ProgramResult r =
        RunProgram(kProgram, std::string("--quiet --seed=") + seed);
    EXPECT_EQ(r.status, 0) << seed << "\n" << r.out;
  }
}

TEST(MlpSpiral, RefusesWrongInput) {
  ExpectRefused(kProgram, "--points=4", "--points=4: wanted 5");
  ExpectRefused(kProgram, "--noise=nan", "--noise=nan");
  ExpectRefused(kProgram, "word", "\"word\"");
  ExpectRefused(kProgram, "--quiet --steps=1 --picture=/nowhere/x.png",
                "/nowhere/x.png");
}

}  // namespace
}  // namespace wengert::train
