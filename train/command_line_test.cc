#include "train/command_line.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

ABSL_FLAG(int64_t, test_steps, 300, "How many steps to train.");
ABSL_FLAG(bool, test_attention, false, "Print attention.");
ABSL_FLAG(std::string, test_corpus, "", "The corpus.");
ABSL_FLAG(double, test_lr, 0.1, "Learning rate.");

namespace wengert::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

absl::StatusOr<std::vector<std::string>> Parse(std::vector<const char*> args) {
  args.insert(args.begin(), "program");
  return ParseCommandLine(static_cast<int>(args.size()), args.data(),
                          "Trains a test.", {__FILE__});
}

TEST(CommandLine, SetsFlagsInEveryForm) {
  ASSERT_THAT(*Parse({"--test_steps=7", "--test_attention", "--test_corpus",
                      "a=b", "word", "--test_lr=1e-3"}),
              ElementsAre("word"));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_steps), 7);
  EXPECT_TRUE(absl::GetFlag(FLAGS_test_attention));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_corpus), "a=b");
  EXPECT_EQ(absl::GetFlag(FLAGS_test_lr), 1e-3);
  ASSERT_THAT(*Parse({"--notest_attention", "--", "--test_steps=9"}),
              ElementsAre("--test_steps=9"));
  EXPECT_FALSE(absl::GetFlag(FLAGS_test_attention));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_steps), 7);
  ASSERT_THAT(*Parse({"-test_steps=8", "--test_corpus="}), IsEmpty());
  EXPECT_EQ(absl::GetFlag(FLAGS_test_steps), 8);
  EXPECT_EQ(absl::GetFlag(FLAGS_test_corpus), "");
}

TEST(CommandLine, ErrorsAreOneLineThatNamesTheFlag) {
  EXPECT_THAT(
      Parse({"--test_step=3"}).status().message(),
      AllOf(HasSubstr("--test_step=3"), HasSubstr("did you mean --test_steps?"),
            Not(HasSubstr("\n"))));
  EXPECT_THAT(Parse({"--test_steps=many"}).status().message(),
              AllOf(HasSubstr("--test_steps=many"), Not(HasSubstr("\n"))));
  EXPECT_THAT(Parse({"--test_corpus"}).status().message(),
              HasSubstr("wants a value"));
  EXPECT_THAT(Parse({"--notest_steps"}).status().message(),
              HasSubstr("unknown flag --notest_steps"));
  EXPECT_THAT(Parse({"--zzz"}).status().message(), HasSubstr("--help"));
}

TEST(CommandLine, HelpExplainsTheProgramsOwnFlags) {
  ::testing::internal::CaptureStdout();
  const absl::Status status = Parse({"--help", "--zzz"}).status();
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(text, AllOf(HasSubstr("Trains a test."),
                          HasSubstr("--test_steps  (default 300)"),
                          HasSubstr("How many steps to train."),
                          HasSubstr("--test_corpus  (default none)"),
                          Not(HasSubstr("flagfile"))));
}

TEST(CommandLine, PathsOfAPersonAreRelativeToWhereTheyStand) {
  ASSERT_EQ(setenv("BUILD_WORKING_DIRECTORY", "/home/me", 1), 0);
  EXPECT_EQ(UserPath("a/b.tsv"), "/home/me/a/b.tsv");
  EXPECT_EQ(UserPath("/abs.tsv"), "/abs.tsv");
  EXPECT_EQ(UserPath(""), "");
  ASSERT_EQ(unsetenv("BUILD_WORKING_DIRECTORY"), 0);
  EXPECT_EQ(UserPath("a/b.tsv"), "a/b.tsv");
}

}  // namespace
}  // namespace wengert::train
