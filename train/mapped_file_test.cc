// Files as memory, and what is no file.
#include "train/mapped_file.h"

#include <sys/stat.h>

#include <string>

#include "gtest/gtest.h"
#include "train/files_testlib.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

using MappedFileTest = FilesTest;

TEST_F(MappedFileTest, ShowsTheBytesOfAFile) {
  const std::string contents("a\0b\xFF\n", 5);
  const auto file = MappedFile::Open(File("file", contents));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->text(), contents);
  EXPECT_EQ(file->bytes().size(), 5);
  EXPECT_EQ(file->bytes()[3], 0xFF);
  EXPECT_EQ(file->path(), Path("file"));
  EXPECT_EQ(MappedFile::Open(File("empty", ""))->text(), "");
}

TEST_F(MappedFileTest, CopiesOutliveTheFirstAndTheName) {
  auto file = *MappedFile::Open(File("file", "text"));
  const MappedFile copy = file;
  file = *MappedFile::Open(File("other", "other"));
  std::filesystem::remove(Path("file"));
  EXPECT_EQ(copy.text(), "text");
  EXPECT_EQ(file.text(), "other");
}

TEST_F(MappedFileTest, RefusesWhatIsNoRegularFile) {
  EXPECT_EQ(MappedFile::Open(Path("missing")).status().message(),
            Path("missing") + ": cannot be read: No such file or directory");
  EXPECT_EQ(MappedFile::Open(folder_.string()).status().message(),
            folder_.string() + ": cannot be read: Is a directory");
}

TEST_F(MappedFileTest, NeitherWaitsForAPipeNorReadsADeviceWithoutEnd) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  for (const std::string& path : {Path("pipe"), std::string("/dev/zero")}) {
    EXPECT_EQ(MappedFile::Open(path).status().message(),
              path + ": is no regular file");
    EXPECT_EQ(ReadLines(path).status().message(),
              path + ": is no regular file");
  }
}

}  // namespace
}  // namespace wengert::train
