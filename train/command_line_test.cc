#include "train/command_line.h"

#include <cstdint>
#include <cstdlib>
#include <new>
#include <stdexcept>
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
  std::vector<std::string> words;
  const absl::Status status =
      ParseCommandLine(static_cast<int>(args.size()), args.data(),
                       "Trains a test.", {__FILE__}, &words);
  if (!status.ok()) return status;
  return words;
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

TEST(CommandLine, RefusesWordsThatNobodyTakes) {
  const char* const args[] = {"program", "--test_steps=6", "one", "two"};
  EXPECT_EQ(ParseCommandLine(4, args, "Trains a test.", {__FILE__}).message(),
            "unexpected word \"one\"; see --help");
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

TEST(CommandLine, ChecksAFlagsRange) {
  const auto check = [](const char* value) {
    EXPECT_TRUE(Parse({"--test_lr", value}).ok());
    return CheckFlag<double>(FLAGS_test_lr, 0, 2);
  };
  EXPECT_TRUE(check("0").ok());
  EXPECT_TRUE(check("2").ok());
  EXPECT_EQ(check("-1").message(), "--test_lr=-1: wanted 0 to 2");
  EXPECT_EQ(check("2.5").message(), "--test_lr=2.5: wanted 0 to 2");
  EXPECT_EQ(check("nan").message(), "--test_lr=nan: wanted 0 to 2");
  ASSERT_TRUE(Parse({"--test_lr=inf", "--test_steps=0"}).ok());
  EXPECT_TRUE(CheckFlag<double>(FLAGS_test_lr, 0).ok());
  EXPECT_EQ(CheckFlag<int64_t>(FLAGS_test_steps, 1).message(),
            "--test_steps=0: wanted 1 or more");
}

TEST(CommandLine, ExitStatusTellsOfErrorsAndExceptions) {
  using Result = absl::StatusOr<int>;
  const auto expect = [](int status, const std::string& printed,
                         absl::FunctionRef<Result()> run) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(ExitStatus("program", run, "less does"), status);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), printed);
  };
  expect(0, "", [] { return 0; });
  expect(130, "", [] { return 130; });
  expect(0, "", []() -> Result { return absl::CancelledError(""); });
  expect(2, "program: no \uFFFD[2J\n",
         []() -> Result { return absl::NotFoundError("no \x1b[2J"); });
  expect(2, "program: shapes differ\n",
         []() -> Result { throw std::invalid_argument("shapes differ"); });
  expect(2, "program: not enough memory; less does\n",
         []() -> Result { throw std::bad_alloc(); });
}

}  // namespace
}  // namespace wengert::train
