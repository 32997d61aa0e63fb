// Files of text, good and broken.
#include "train/text_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/files_testlib.h"

namespace wengert::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TextFileTest : public FilesTest {
 protected:
  // The path of a file with this text, in the test's own folder.
  std::string File(const std::string& text) const {
    return FilesTest::File("text", text);
  }
};

TEST_F(TextFileTest, ReadsLines) {
  EXPECT_THAT(*ReadLines(File("a b\n\nc\n")), ElementsAre("a b", "", "c"));
  EXPECT_THAT(*ReadLines(File("no end")), ElementsAre("no end"));
  EXPECT_THAT(*ReadLines(File("\n")), ElementsAre(""));
}

TEST_F(TextFileTest, AcceptsCarriageReturnsAndByteOrderMark) {
  EXPECT_THAT(*ReadLines(File("\xEF\xBB\xBFone\r\ntwo\r\n")),
              ElementsAre("one", "two"));
  EXPECT_THAT(*ReadLines(File("one\r")), ElementsAre("one"));
}

TEST_F(TextFileTest, ReadsFilesLargerThanItsBuffer) {
  const std::string line(70000, 'x');
  EXPECT_THAT(*ReadLines(File(line + "\n" + line)), ElementsAre(line, line));
}

TEST_F(TextFileTest, NamesThePlaceOfBytesThatAreNotUtf8) {
  const std::string path = File("one\nz\xC3\xA9ro \xFFx\n");
  const auto lines = ReadLines(path);
  EXPECT_EQ(lines.status().code(), absl::StatusCode::kInvalidArgument);
  // Six characters, z é r o and a space among them, stand before the byte.
  EXPECT_EQ(lines.status().message(),
            path + ":2:6: the byte 0xff is not UTF-8");
}

TEST_F(TextFileTest, RefusesWhatIsNoFile) {
  const std::string missing = Path("missing");
  EXPECT_EQ(ReadLines(missing).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadLines(missing).status().message(),
            missing + ": cannot be read: No such file or directory");
  const std::string folder = folder_.string();
  EXPECT_EQ(ReadLines(folder).status().message(),
            folder + ": cannot be read: Is a directory");
  for (const char* text : {"", "\xEF\xBB\xBF"}) {
    const std::string path = File(text);
    EXPECT_EQ(ReadLines(path).status().message(),
              path + ":1:1: the file is empty");
  }
}

TEST(Utf8, LengthOfOneCharacter) {
  EXPECT_EQ(Utf8Length("a"), 1);
  EXPECT_EQ(Utf8Length("\xC3\xA9"), 2);
  EXPECT_EQ(Utf8Length("\xE4\xB8\x83..."), 3);
  EXPECT_EQ(Utf8Length("\xF0\x9F\x99\x82"), 4);
  EXPECT_EQ(Utf8Length("\xF4\x8F\xBF\xBF"), 4);  // U+10FFFF, the last
  EXPECT_EQ(Utf8Length(absl::string_view("\0", 1)), 1);
}

TEST(Utf8, RefusesMalformedCharacters) {
  EXPECT_EQ(Utf8Length(""), 0);
  for (const char* malformed : {
           "\x80",              // a continuation alone
           "\xC3",              // cut short
           "\xC3(",             //
           "\xE4\xB8",          //
           "\xE4\xB8(",         //
           "\xF0\x9F\x99",      //
           "\xC0\x80",          // overlong
           "\xC1\xBF",          //
           "\xE0\x9F\xBF",      //
           "\xF0\x8F\xBF\xBF",  //
           "\xED\xA0\x80",      // a surrogate
           "\xF4\x90\x80\x80",  // above U+10FFFF
           "\xF5\x80\x80\x80",  //
           "\xFF",
       }) {
    EXPECT_EQ(Utf8Length(malformed), 0) << Printable(malformed);
  }
  // The view ends before the character does.
  EXPECT_EQ(Utf8Length(absl::string_view("\xC3\xA9", 1)), 0);
}

TEST(Utf8, CountsCharacters) {
  EXPECT_EQ(CountCharacters(""), 0);
  EXPECT_EQ(CountCharacters("z\xC3\xA9ro \xE4\xB8\x83"), 6);
  EXPECT_EQ(CountCharacters("a\xFF\xFF"), 3);
}

TEST(Words, StandBetweenWhiteSpace) {
  EXPECT_THAT(SplitWords(" 1 =\t\r\n1\v\f"), ElementsAre("1", "=", "1"));
  EXPECT_THAT(SplitWords(" \t "), IsEmpty());
}

TEST(Words, ArePrintable) {
  EXPECT_EQ(Printable("z\xC3\xA9ro <\xE4\xB8\x83>"), "zéro <七>");
  // An escape, a C1 control, a noncharacter, a byte that is not UTF-8.
  EXPECT_EQ(Printable("a\x1B[0m"), "a\uFFFD[0m");
  EXPECT_EQ(Printable("a\xC2\x9B|\xEF\xBF\xBF|\xFF"), "a\uFFFD|\uFFFD|\uFFFD");
  EXPECT_EQ(Quoted("tree"), "\"tree\"");
  EXPECT_EQ(Quoted(std::string(40, 'x')), "\"" + std::string(40, 'x') + "\"");
  EXPECT_EQ(Quoted(std::string(41, 'x')),
            "\"" + std::string(40, 'x') + "...\"");
}

TEST_F(TextFileTest, WritesAndReplacesFiles) {
  const std::string path = Path("written");
  ASSERT_TRUE(WriteFile(path, "first, the longer one").ok());
  ASSERT_TRUE(WriteFile(path, "second").ok());
  EXPECT_EQ(Contents(path), "second");
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST_F(TextFileTest, WritesThroughSymbolicLinks) {
  const std::string path = Path("written"), link = Path("link");
  ASSERT_TRUE(WriteFile(path, "first").ok());
  std::filesystem::create_symlink(path, link);
  ASSERT_TRUE(WriteFile(link, "second").ok());
  EXPECT_EQ(Contents(path), "second");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

TEST_F(TextFileTest, WritesToDevices) {
  EXPECT_TRUE(WriteFile("/dev/null", "text").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(TextFileTest, SaysWhatCannotBeWritten) {
  const std::string path = Path("missing") + "/file";
  EXPECT_EQ(WriteFile(path, "text").message(),
            path + ": cannot be written: No such file or directory");
  const std::string folder = folder_.string();
  EXPECT_EQ(WriteFile(folder, "text").message(),
            folder + ": cannot be written: Is a directory");
}

TEST_F(TextFileTest, AFullDiskLeavesTheOldFile) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  EXPECT_EQ(WriteFile("/dev/full", "text").message(),
            "/dev/full: cannot be written: No space left on device");
  // The name that the text first goes to leads to the full device.
  const std::string path = Path("written"), partial = path + ".partial";
  ASSERT_TRUE(WriteFile(path, "old").ok());
  std::filesystem::create_symlink("/dev/full", partial);
  EXPECT_EQ(WriteFile(path, "new").message(),
            path + ": cannot be written: No space left on device");
  EXPECT_FALSE(std::filesystem::is_symlink(partial));
  ASSERT_FALSE(std::filesystem::is_symlink(path));
  EXPECT_EQ(Contents(path), "old");
}

}  // namespace
}  // namespace wengert::train
