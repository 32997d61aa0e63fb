// Runs the program as a person does.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "examples/next_byte/counting.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/program_testlib.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kProgram[] = "examples/next_byte/next_byte";
using Result = train::ProgramResult;

Result RunProgram(const std::string& flags) {
  return train::RunProgram(kProgram, flags);
}

std::string Temp(const std::string& name) {
  return ::testing::TempDir() + "/" + name;
}

std::string Write(const std::string& name, const std::string& text) {
  std::ofstream(Temp(name), std::ios::binary) << text;
  return Temp(name);
}

void ExpectRefused(const std::string& flags, const std::string& named) {
  train::ExpectRefused(kProgram, flags, named);
}

TEST(Counting, SpellsNumbers) {
  EXPECT_EQ(InWords(0), "zero");
  EXPECT_EQ(InWords(19), "nineteen");
  EXPECT_EQ(InWords(20), "twenty");
  EXPECT_EQ(InWords(99), "ninety-nine");
  EXPECT_THAT(Counting(), HasSubstr("seven, eight, nine, ten, eleven.\n"));
}

constexpr char kSmall[] =
    "--d_model=16 --n_heads=2 --n_layers=1 --length=16 --lr=0.02 ";

// A text that goes round and round is learned at once.
TEST(NextByte, GoesOnWithAText) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "abcdefgh,";
  const Result r =
      RunProgram(kSmall + ("--quiet --steps=300 --temperature=0 --prompt=fgh "
                           "--sample_bytes=24 --text=" +
                           Write("text.txt", text)));
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.out, "fgh,abcdefgh,abcdefgh,abcde\n");
}

TEST(NextByte, ResumesWithTheSameBits) {
  const std::string flags = std::string(kSmall) +
                            "--steps=60 --dropout=0.2 --evaluate_every=20 "
                            "--log_every=7 --sample_bytes=60 ";
  const Result whole = RunProgram(flags + "--quiet --run_dir=" + Temp("whole"));
  ASSERT_EQ(whole.status, 0) << whole.out;
  RunProgram(flags + "--seconds=1e-3 --threads=1 --run_dir=" + Temp("parts"));
  const Result rest =
      RunProgram("--seconds=0 --threads=2 --quiet --resume=" + Temp("parts"));
  EXPECT_EQ(rest.out, whole.out);
  EXPECT_EQ(std::system(("bash -c 'diff <(rev " + Temp("whole") +
                         "/metrics.csv | cut -d, -f3-) <(rev " + Temp("parts") +
                         "/metrics.csv | cut -d, -f3-)'")
                            .c_str()),
            0);
  EXPECT_TRUE(std::filesystem::exists(Temp("parts") + "/report.html"));
}

TEST(NextByte, ProfilesItsSteps) {
  const std::string folder = Temp("profiled");
  const Result r = RunProgram(
      kSmall + ("--steps=5 --sample_bytes=0 --profile --run_dir=" + folder));
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.out, AllOf(HasSubstr("Linear"), HasSubstr("optimizer"),
                           HasSubstr("wrote " + folder + "/trace.json")));
  EXPECT_TRUE(std::filesystem::exists(folder + "/trace.json"));
}

TEST(NextByte, RefusesWrongInput) {
  ExpectRefused("--text=/nowhere", "/nowhere: cannot be read");
  ExpectRefused("--text=/dev/zero", "/dev/zero: is no regular file");
  ExpectRefused("--text=" + Write("short.txt", "too short"), "has 9 bytes");
  ExpectRefused("--text=" + Write("empty.txt", ""), "empty.txt");
  ExpectRefused("--length=0", "--length=0");
  ExpectRefused("--n_heads=5", "--n_heads=5");
  ExpectRefused("--temperature=nan", "--temperature=nan");
  ExpectRefused("--prompt=", "--prompt");
  ExpectRefused("word", "\"word\"");
  ExpectRefused("--step=3", "--steps");
}

}  // namespace
}  // namespace wengert
