// Whole files, and what is left of those that could not be written.
#include "train/file_writer.h"

#include <filesystem>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "train/files_testlib.h"

namespace wengert::train {
namespace {

class FileWriterTest : public FilesTest {
 protected:
  void SetUp() override {
    FilesTest::SetUp();
    path_ = File("file", "old");
  }

  // Nothing but the old file is there.
  void ExpectOld() const {
    EXPECT_EQ(Contents(path_), "old");
    EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
  }

  std::string path_;
};

TEST_F(FileWriterTest, ReplacesWithAllThatWasWritten) {
  FileWriter file(path_);
  file.Write("one, ", 5);
  file.Write("two", 3);
  EXPECT_TRUE(std::filesystem::exists(path_ + ".partial"));
  EXPECT_EQ(Contents(path_), "old");
  ASSERT_TRUE(file.Commit().ok());
  EXPECT_EQ(Contents(path_), "one, two");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
}

TEST_F(FileWriterTest, DropsWhatWasNotCommitted) {
  { FileWriter(path_).Write("new", 3); }
  ExpectOld();
}

TEST_F(FileWriterTest, AFullDiskLeavesTheOldFile) {
  const FullDisk full(1 << 16);
  const std::vector<char> much(1 << 17);
  FileWriter file(path_);
  file.Write(much.data(), much.size());
  file.Write(much.data(), much.size());
  EXPECT_EQ(file.Commit().message(),
            path_ + ": cannot be written: File too large");
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
  std::filesystem::remove_all(folder_);
  EXPECT_EQ(file.Commit().message(),
            path_ + ": cannot be written: No such file or directory");
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

}  // namespace
}  // namespace wengert::train
