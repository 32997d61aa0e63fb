// Whole files, and what is left of those that could not be written.
#include "train/file_writer.h"

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace wengert::train {
namespace {

namespace fs = std::filesystem;

class FileWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        fs::path(::testing::TempDir()) / info->test_suite_name() / info->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    path_ = (folder_ / "file").string();
    std::ofstream(path_) << "old";
  }

  // Nothing but the old file is there.
  void ExpectOld() const {
    std::ifstream file(path_);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "old");
    EXPECT_FALSE(fs::exists(path_ + ".partial"));
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(FileWriterTest, ReplacesWithAllThatWasWritten) {
  FileWriter file(path_);
  file.Write("one, ", 5);
  file.Write("two", 3);
  ASSERT_TRUE(fs::exists(path_ + ".partial"));
  ASSERT_TRUE(file.Commit().ok());
  std::ifstream in(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "one, two");
  EXPECT_FALSE(fs::exists(path_ + ".partial"));
}

TEST_F(FileWriterTest, DropsWhatWasNotCommitted) {
  { FileWriter(path_).Write("new", 3); }
  ExpectOld();
}

TEST_F(FileWriterTest, AFullDiskLeavesTheOldFile) {
  // A limit on the size of files stands for the end of the disk.
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit full = {1 << 16, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  const std::vector<char> much(1 << 17);
  FileWriter file(path_);
  file.Write(much.data(), much.size());
  file.Write(much.data(), much.size());
  const absl::Status status = file.Commit();
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.message(), path_ + ": cannot be written: File too large");
  ExpectOld();
}

TEST_F(FileWriterTest, AFolderThatCannotBe) {
  const std::string under = path_ + "/file";
  FileWriter file(under);
  file.Write("new", 3);
  EXPECT_EQ(file.Commit().message(),
            under + ": cannot be written: Not a directory");
  ExpectOld();
}

TEST_F(FileWriterTest, AFolderThatVanishesMeanwhile) {
  FileWriter file(path_);
  file.Write("new", 3);
  fs::remove_all(folder_);
  EXPECT_EQ(file.Commit().message(),
            path_ + ": cannot be written: No such file or directory");
  EXPECT_FALSE(fs::exists(folder_));
}

}  // namespace
}  // namespace wengert::train
