// Lines and pairs that stay in their file.
#include "train/line_file.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/tensor_testlib.h"
#include "gtest/gtest.h"
#include "train/corpus.h"
#include "train/files_testlib.h"

namespace wengert::train {
namespace {

using LineFileTest = FilesTest;

TEST_F(LineFileTest, GivesWhatReadLinesGives) {
  std::string many;
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&many, std::string(i % 7, 'x'), i, i % 3 ? "\n" : "\r\n");
  }
  for (const std::string& text :
       {std::string("a b\n\nc\n"), std::string("no end"), std::string("\n"),
        std::string("\xEF\xBB\xBFone\r\ntwo\r"), many}) {
    const std::string path = File("text", text);
    const auto lines = *ReadLines(path);
    const auto file = LineFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_EQ(file->size(), lines.size());
    EXPECT_EQ(file->last_line(), lines.size());
    for (size_t i = lines.size(); i-- > 0;) {
      EXPECT_EQ((*file)[i].text, lines[i]);
      EXPECT_EQ((*file)[i].number, i + 1);
    }
    EXPECT_THROW((*file)[-1], Error);
    EXPECT_THROW((*file)[lines.size()], Error);
  }
}

TEST_F(LineFileTest, SaysWhatReadLinesSays) {
  for (const char* text : {"", "\xEF\xBB\xBF", "one\nz\xC3\xA9ro \xFFx\n"}) {
    const std::string path = File("text", text);
    EXPECT_EQ(LineFile::Open(path).status(), ReadLines(path).status());
    EXPECT_FALSE(LineFile::Open(path).ok());
  }
  EXPECT_EQ(LineFile::Open("/dev/zero").status().message(),
            "/dev/zero: is no regular file");
}

TEST_F(LineFileTest, NoticesThatTheFileIsAnother) {
  const std::string path = File("text", std::string(100, '\n'));
  const auto file = *LineFile::Open(path);
  EXPECT_EQ(file[99].number, 100);
  std::ofstream(path, std::ios::in | std::ios::out) << std::string(100, 'x');
  EXPECT_EQ(ErrorOf([&] { file[99]; }), "LineFile: " + path + " has changed");
}

TEST_F(LineFileTest, PairsAreThoseOfReadPairs) {
  std::string text = "# comment\n\n";
  for (int i = 0; i < 300; ++i) {
    absl::StrAppend(&text, "source ", i, "\ttarget ", i * i, "\n",
                    i % 5 == 0 ? "\n# comment\n" : "");
  }
  const std::string path = File("pairs", text);
  const auto pairs = *ReadPairs(path);
  const auto file = PairFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->path(), path);
  ASSERT_EQ(file->size(), 300);
  for (int i = 299; i >= 0; --i) {
    EXPECT_EQ((*file)[i].source, pairs[i].source);
    EXPECT_EQ((*file)[i].target, pairs[i].target);
    EXPECT_EQ((*file)[i].line, pairs[i].line);
  }
  for (const char* bad : {"a\tb\nno tab\n", "a\tb\tc\n", "\tb\n", "a\t\n",
                          "# only\n\n", "a\tb\n\xFF\n", ""}) {
    const std::string bad_path = File("bad", bad);
    EXPECT_EQ(PairFile::Open(bad_path).status(), ReadPairs(bad_path).status());
    EXPECT_FALSE(PairFile::Open(bad_path).ok());
  }
}

}  // namespace
}  // namespace wengert::train
