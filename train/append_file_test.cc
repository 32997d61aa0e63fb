// Whole records, whatever happens to the disk.
#include "train/append_file.h"

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace wengert::train {
namespace {

class AppendFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              info->test_suite_name() / info->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "log").string();
  }

  std::string Contents() const {
    std::ifstream file(path_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(AppendFileTest, KeepsWhatItIsToldAndAppends) {
  std::ofstream(path_) << "one\ntwo\nthr";
  auto file = AppendFile::Open(path_, 8);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Contents(), "one\ntwo\n");
  ASSERT_TRUE(file->Append("three\n").ok());
  AppendFile moved = *std::move(file);
  ASSERT_TRUE(moved.Append("four\n").ok());
  EXPECT_EQ(Contents(), "one\ntwo\nthree\nfour\n");
}

TEST_F(AppendFileTest, SaysWhatCannotBeWritten) {
  const std::string below = path_ + "/below";
  std::ofstream(path_) << "a file";
  EXPECT_EQ(AppendFile::Open(below, 0).status().message(),
            below + ": cannot be written: Not a directory");
  EXPECT_EQ(Contents(), "a file");
}

TEST_F(AppendFileTest, AFullDiskLeavesWholeRecords) {
  auto file = AppendFile::Open(path_, 0);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Append("first\n").ok());

  // A limit that leaves room for half of the second record.
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit unlimited;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  rlimit limit = unlimited;
  limit.rlim_cur = 9;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status status = file->Append("second\n");
  setrlimit(RLIMIT_FSIZE, &unlimited);
  std::signal(SIGXFSZ, before);

  EXPECT_EQ(status.message(), path_ + ": cannot be written: File too large");
  EXPECT_EQ(Contents(), "first\n");
  ASSERT_TRUE(file->Append("third\n").ok());
  EXPECT_EQ(Contents(), "first\nthird\n");
}

TEST_F(AppendFileTest, NoticesThatTheFileIsGone) {
  auto file = AppendFile::Open(path_, 0);
  ASSERT_TRUE(file.ok());
  std::filesystem::remove_all(folder_);
  EXPECT_EQ(file->Append("record").message(),
            path_ + ": cannot be written: No such file or directory");
}

TEST(FirstFailure, ReportsOncePerRow) {
  FirstFailure failures;
  const absl::Status full = absl::ResourceExhaustedError("full");
  EXPECT_TRUE(failures.Of(absl::OkStatus()).ok());
  EXPECT_EQ(failures.Of(full), full);
  EXPECT_TRUE(failures.Of(full).ok());
  EXPECT_TRUE(failures.Of(absl::OkStatus()).ok());
  EXPECT_EQ(failures.Of(full), full);
}

}  // namespace
}  // namespace wengert::train
