// Whole records, whatever happens to the disk.
#include "train/append_file.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "train/files_testlib.h"

namespace wengert::train {
namespace {

class AppendFileTest : public FilesTest {
 protected:
  void SetUp() override {
    FilesTest::SetUp();
    path_ = Path("log");
  }

  std::string Contents() const { return FilesTest::Contents(path_); }

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
  absl::Status status;
  {
    const FullDisk full(9);
    status = file->Append("second\n");
  }

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
