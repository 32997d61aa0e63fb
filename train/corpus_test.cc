// Corpora of sentence pairs, good and broken.
#include "train/corpus.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string File(const std::string& text) {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string path =
      ::testing::TempDir() + "/corpus_" + info->name() + ".tsv";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

// What stands behind the file's name in the error of reading this text.
std::string ReadError(const std::string& text) {
  const std::string path = File(text);
  const auto pairs = ReadPairs(path);
  EXPECT_EQ(pairs.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(pairs.status().message());
  EXPECT_THAT(message, HasSubstr(path + ":"));
  return message.substr(path.size());
}

TEST(ReadPairs, ReadsPairsAndTheirLines) {
  const auto pairs =
      ReadPairs(File("\xEF\xBB\xBF# numbers\r\none is one\t1 = 1\r\n\r\n  \n"
                     "two is two\t2 = 2"));
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  ASSERT_EQ(pairs->size(), 2);
  EXPECT_EQ((*pairs)[0].source, "one is one");
  EXPECT_EQ((*pairs)[0].target, "1 = 1");
  EXPECT_EQ((*pairs)[0].line, 2);
  EXPECT_EQ((*pairs)[1].source, "two is two");
  EXPECT_EQ((*pairs)[1].target, "2 = 2");
  EXPECT_EQ((*pairs)[1].line, 5);
}

TEST(ReadPairs, RefusesAWrongNumberOfColumns) {
  EXPECT_EQ(ReadError("a\tb\nzéro\n"),
            ":2:5: 1 column, no tab; a line is source<TAB>target");
  EXPECT_EQ(ReadError("a\tb\tc\n"),
            ":1:4: more than 2 columns; a line is source<TAB>target");
  EXPECT_EQ(ReadError("a\tb\t\n"),
            ":1:4: more than 2 columns; a line is source<TAB>target");
}

TEST(ReadPairs, RefusesEmptyColumns) {
  EXPECT_EQ(ReadError("\t1\n"), ":1:1: no source; a line is source<TAB>target");
  EXPECT_EQ(ReadError("七 \t \n"),
            ":1:4: no target; a line is source<TAB>target");
  EXPECT_EQ(ReadError("\t\n"), ":1:1: no source; a line is source<TAB>target");
}

TEST(ReadPairs, RefusesFilesWithoutPairs) {
  EXPECT_EQ(ReadError(""), ":1:1: the file is empty");
  EXPECT_EQ(ReadError("# only\n\n"),
            ":2:1: the file has no sentence pairs; a line is "
            "source<TAB>target");
}

TEST(ReadPairs, RefusesBytesThatAreNotUtf8) {
  EXPECT_EQ(ReadError("a\tb\nab\t\xC3\n"), ":2:4: the byte 0xc3 is not UTF-8");
  // In a comment too: the file is not what it seems to be.
  EXPECT_EQ(ReadError("# \xFF\na\tb\n"), ":1:3: the byte 0xff is not UTF-8");
}

TEST(ReadPairs, RefusesWhatIsNoFile) {
  EXPECT_EQ(ReadPairs("/nowhere/corpus.tsv").status().message(),
            "/nowhere/corpus.tsv: cannot be read: No such file or directory");
  EXPECT_EQ(ReadPairs("/tmp").status().message(),
            "/tmp: cannot be read: Is a directory");
}

class EncodePairsTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<EncodedPair>> Encode(const std::string& text) {
    path_ = File(text);
    return EncodePairs(path_, *ReadPairs(path_), words_, symbols_);
  }

  // What stands behind the file's name in the error.
  std::string Error(const std::string& text) {
    const std::string message(Encode(text).status().message());
    EXPECT_THAT(message, HasSubstr(path_));
    return message.substr(path_.size());
  }

  std::string path_;
  Vocabulary words_ = *Vocabulary::FromWords({"one", "two", "is", "七"});
  Vocabulary symbols_ = *Vocabulary::FromWords({"2", "1", "="});
};

TEST_F(EncodePairsTest, GivesIds) {
  const auto pairs = Encode("one is  one\t1 = 1\n# no\ntwo \t2\n");
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  ASSERT_EQ(pairs->size(), 2);
  EXPECT_THAT((*pairs)[0].source, ElementsAre(0, 2, 0));
  EXPECT_THAT((*pairs)[0].target, ElementsAre(1, 2, 1));
  EXPECT_THAT((*pairs)[1].source, ElementsAre(1));
  EXPECT_THAT((*pairs)[1].target, ElementsAre(0));
}

TEST_F(EncodePairsTest, NamesThePlaceOfAnUnknownWord) {
  EXPECT_EQ(Error("one\t1\n\n七 is nil\t1\n"),
            ":3:6: unknown word \"nil\"; known are one two is 七");
  EXPECT_EQ(Error("七 is  七\t1 = 3\n"),
            ":1:13: unknown word \"3\"; known are 2 1 =");
  EXPECT_EQ(Error("One\t1\n"),
            ":1:1: unknown word \"One\"; did you mean \"one\"?");
}

}  // namespace
}  // namespace wengert::train
