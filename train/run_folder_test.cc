// One run to a folder, with a record of what it was started with.
#include "train/run_folder.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

ABSL_FLAG(double, run_test_lr, 0.1, "");
ABSL_FLAG(int64_t, run_test_steps, 300, "");
ABSL_FLAG(bool, run_test_tied, true, "");
ABSL_FLAG(std::string, run_test_name, "300", "");

namespace wengert::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

class RunFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    base_ = std::filesystem::path(::testing::TempDir()) /
            info->test_suite_name() / info->name();
    std::filesystem::remove_all(base_);
    path_ = (base_ / "runs" / "first").string();
  }

  static nlohmann::json Config(const RunFolder& run) {
    std::ifstream file(run.config());
    return nlohmann::json::parse(file);
  }

  static std::string Contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  absl::FlagSaver flags_;  // puts them back
  std::filesystem::path base_;
  std::string path_;
};

TEST_F(RunFolderTest, KeepsWhatTheRunWasStartedWith) {
  constexpr uint64_t kSeed = std::numeric_limits<uint64_t>::max();
  absl::SetFlag(&FLAGS_run_test_lr, 0.25);
  absl::SetFlag(&FLAGS_run_test_name, "a\xFF");
  auto run = RunFolder::Create(path_, kSeed);
  ASSERT_TRUE(run.ok()) << run.status();
  const auto config = Config(**run);
  EXPECT_EQ(config["seed"], kSeed);
  EXPECT_EQ(config["version"], kWengertVersion);
  EXPECT_THAT(config["program"].get<std::string>(), HasSubstr("run_folder"));
  EXPECT_THAT(config["started"].get<std::string>(),
              MatchesRegex("20..-..-..T..:..:..Z"));
  EXPECT_EQ(config["flags"]["run_test_lr"], 0.25);
  EXPECT_EQ(config["flags"]["run_test_steps"], 300);
  EXPECT_EQ(config["flags"]["run_test_tied"], true);
  EXPECT_EQ(config["flags"]["run_test_name"], "a\uFFFD");
  EXPECT_FALSE(config["flags"].contains("flagfile"));
  EXPECT_GT(config["machine"]["cores"], 0);
  EXPECT_GT(config["machine"]["cpu"].get<std::string>().size(), 0);
  EXPECT_THAT(config["machine"]["compiler"].get<std::string>(),
              ::testing::ContainsRegex("[0-9]+\\.[0-9]+"));
  EXPECT_FALSE(config.contains("resumed"));

  EXPECT_EQ((*run)->path(), path_);
  EXPECT_EQ((*run)->metrics_csv(), path_ + "/metrics.csv");
  EXPECT_EQ((*run)->metrics_jsonl(), path_ + "/metrics.jsonl");
  EXPECT_EQ((*run)->report(), path_ + "/report.html");
  EXPECT_EQ((*run)->checkpoints(), path_ + "/checkpoints");
}

TEST_F(RunFolderTest, FlagsThatAreNoJsonNumbersAreText) {
  absl::SetFlag(&FLAGS_run_test_lr, std::numeric_limits<double>::infinity());
  auto run = RunFolder::Create(path_, 1);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(Config(**run)["flags"]["run_test_lr"], "inf");
  EXPECT_EQ(Config(**run)["flags"]["run_test_name"], "300");
}

TEST_F(RunFolderTest, ANewRunWantsAFolderOfItsOwn) {
  ASSERT_TRUE(RunFolder::Create(path_, 1).ok());
  const std::string config = Contents(path_ + "/config.json");
  const absl::Status twice = RunFolder::Create(path_, 1).status();
  EXPECT_EQ(twice.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(twice.message(),
            path_ + ": holds a run already; resume it or name another folder");
  EXPECT_EQ(Contents(path_ + "/config.json"), config);

  const std::string runs = (base_ / "runs").string();
  EXPECT_EQ(RunFolder::Create(runs, 1).status().message(),
            runs + ": is not empty and holds no run; name another folder");
  // An empty folder will do, and one in which a run only began to be made.
  const std::string empty = (base_ / "empty").string();
  std::filesystem::create_directories(empty);
  std::ofstream(empty + "/config.json.partial") << "{";
  EXPECT_TRUE(RunFolder::Create(empty, 1).ok());
}

TEST_F(RunFolderTest, ResumingNotesWhatChanged) {
  ASSERT_TRUE(RunFolder::Create(path_, 7).ok());
  const auto before = nlohmann::json::parse(Contents(path_ + "/config.json"));
  absl::SetFlag(&FLAGS_run_test_lr, 0.05);
  {
    auto run = RunFolder::Resume(path_, 7);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_THAT((*run)->changed_flags(),
                ElementsAre("--run_test_lr is 0.05, was 0.1"));
    EXPECT_EQ(Config(**run), before);  // the run may yet turn out not to go on
    EXPECT_TRUE((*run)->NoteResumption().ok());
  }
  absl::SetFlag(&FLAGS_run_test_lr, 0.1);
  absl::SetFlag(&FLAGS_run_test_name, "\t\xFF");
  {
    auto run = RunFolder::Resume(path_, 7);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_THAT((*run)->changed_flags(),
                ElementsAre("--run_test_name is \"\\t\uFFFD\", was \"300\""));
    EXPECT_TRUE((*run)->NoteResumption().ok());
  }
  absl::SetFlag(&FLAGS_run_test_name, "300");
  auto run = RunFolder::Resume(path_, 7);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT((*run)->changed_flags(), IsEmpty());
  EXPECT_TRUE((*run)->NoteResumption().ok());
  auto config = Config(**run);
  ASSERT_EQ(config["resumed"].size(), 3);
  EXPECT_EQ(config["resumed"][0]["flags"],
            nlohmann::json::parse("{\"run_test_lr\": 0.05}"));
  EXPECT_EQ(config["resumed"][2]["flags"], nlohmann::json::object());
  EXPECT_EQ(config["resumed"][2]["machine"], before["machine"]);
  config.erase("resumed");
  EXPECT_EQ(config, before);
}

TEST_F(RunFolderTest, ResumesOnlyARunAndOnlyIts) {
  EXPECT_EQ(RunFolder::Resume(path_, 1).status().message(),
            path_ + ": holds no run to resume");
  ASSERT_TRUE(RunFolder::Create(path_, 7).ok());
  EXPECT_EQ(RunFolder::Resume(path_, 8).status().message(),
            path_ + ": its run has seed 7, not 8");
  const std::string config = path_ + "/config.json";
  for (const std::string text :
       {"", "{", "[]", "{\"seed\": 7}", "{\"seed\": 7, \"flags\": 3}",
        "{\"seed\": 7, \"flags\": {}, \"resumed\": 1}"}) {
    std::ofstream(config) << text;
    EXPECT_EQ(RunFolder::Resume(path_, 7).status().message(),
              config + ": not the configuration of a run");
    EXPECT_EQ(Contents(config), text);
  }
}

TEST_F(RunFolderTest, OneProcessTrainsInAFolder) {
  auto run = RunFolder::Create(path_, 1);
  ASSERT_TRUE(run.ok());
  const std::string message = path_ + ": another process trains in this folder";
  EXPECT_EQ(RunFolder::Resume(path_, 1).status().message(), message);
  EXPECT_EQ(RunFolder::Create(path_, 1).status().message(), message);
  run->reset();
  EXPECT_TRUE(RunFolder::Resume(path_, 1).ok());
}

TEST_F(RunFolderTest, SaysWhereItCannotMakeAFolder) {
  std::filesystem::create_directories(base_);
  std::ofstream(base_ / "runs") << "a file";
  EXPECT_THAT(RunFolder::Create(path_, 1).status().message(),
              HasSubstr(path_ + ": cannot be made: "));
  EXPECT_EQ(RunFolder::Resume(path_, 1).status().message(),
            path_ + ": holds no run to resume");
}

}  // namespace
}  // namespace wengert::train
