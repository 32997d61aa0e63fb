// Words and ids, and the messages for words that are not there.
#include "train/vocabulary.h"

#include <fstream>
#include <string>
#include <vector>

#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

Vocabulary Numbers() {
  return *Vocabulary::FromWords({"one", "two", "three", "four", "is"});
}

std::string File(const std::string& text) {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string path =
      ::testing::TempDir() + "/vocabulary_" + info->name() + ".txt";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(Tokenize, TheDocumentsSentences) {
  EXPECT_THAT(Tokenize("I wonder what will come next!"),
              ElementsAre("i", "wonder", "what", "will", "come", "next"));
  EXPECT_THAT(Tokenize("This is a basic example paragraph."),
              ElementsAre("this", "is", "a", "basic", "example", "paragraph"));
  EXPECT_THAT(Tokenize("Hello, what is a basic split?"),
              ElementsAre("hello", "what", "is", "a", "basic", "split"));
}

TEST(Tokenize, Edges) {
  EXPECT_THAT(Tokenize(""), IsEmpty());
  EXPECT_THAT(Tokenize(" \t?! ... "), IsEmpty());
  EXPECT_THAT(Tokenize("\tDon't\r\n  re-do 3 - 2"),
              ElementsAre("dont", "redo", "3", "2"));
  EXPECT_THAT(Tokenize("\xC3\x89t\xC3\xA9 \xE4\xB8\x83"),
              ElementsAre("Été", "七"));
}

TEST(Vocabulary, KeepsTheListedOrder) {
  const Vocabulary symbols =
      *Vocabulary::FromWords({"9", "8", "7", "=", "<", ">"});
  EXPECT_EQ(symbols.size(), 6);
  EXPECT_EQ(*symbols.Id("9"), 0);
  EXPECT_EQ(*symbols.Id(">"), 5);
  EXPECT_EQ(symbols.Word(0), "9");
  EXPECT_EQ(symbols.Word(3), "=");
}

TEST(Vocabulary, EncodesAndDecodes) {
  const Vocabulary numbers = Numbers();
  EXPECT_THAT(*numbers.Encode("  three\tis three\n"), ElementsAre(2, 4, 2));
  EXPECT_THAT(*numbers.Encode(Tokenize("Three is three!")),
              ElementsAre(2, 4, 2));
  EXPECT_THAT(*numbers.Encode({"two", "is"}), ElementsAre(1, 4));
  EXPECT_THAT(*numbers.Encode(""), IsEmpty());
  EXPECT_EQ(numbers.Decode({2, 4, 2}), "three is three");
  EXPECT_EQ(numbers.Decode({}), "");
}

TEST(Vocabulary, SuggestsTheNearestWord) {
  const Vocabulary numbers = Numbers();
  const absl::Status status = numbers.Id("tree").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "unknown word \"tree\"; did you mean \"three\"?");
  for (const char* near_two : {"tow", "Two", "tw", "twoo", "t o"}) {
    EXPECT_THAT(std::string(numbers.Id(near_two).status().message()),
                HasSubstr("did you mean \"two\"?"));
  }
  EXPECT_THAT(std::string(numbers.Id("fuors").status().message()),
              HasSubstr("did you mean \"four\"?"));
  EXPECT_EQ(numbers.Encode("one is nil").status().message(),
            "unknown word \"nil\"; known are one two three four is");
}

TEST(Vocabulary, ListsKnownWordsWhereNoneIsNear) {
  EXPECT_EQ(Numbers().Id("=").status().message(),
            "unknown word \"=\"; known are one two three four is");
  Words many;
  for (int i = 100; i < 120; ++i) many.push_back(std::to_string(i));
  EXPECT_EQ(Vocabulary::FromWords(many)->Id("word").status().message(),
            "unknown word \"word\"; known are 100 101 102 103 104 105 106 107 "
            "108 109 110 111 112 113 114 115 and 4 more");
  EXPECT_THAT(
      std::string(Numbers().Id(std::string(1000, 'x')).status().message()),
      HasSubstr("xxx...\"; known are one"));
}

TEST(Vocabulary, RefusesBadLists) {
  const auto message = [](Words words) {
    return std::string(Vocabulary::FromWords(words).status().message());
  };
  EXPECT_EQ(message({}), "vocabulary: there are no words");
  EXPECT_EQ(message({"one", "two", "one"}),
            "vocabulary: word 3: the word \"one\" is listed twice, first as "
            "word 1");
  EXPECT_EQ(message({"one", ""}), "vocabulary: word 2: the word is empty");
  EXPECT_EQ(message({"one two"}),
            "vocabulary: word 1: the word \"one two\" contains white space");
  EXPECT_EQ(message({" one"}),
            "vocabulary: word 1: the word \" one\" contains white space");
  EXPECT_EQ(message({"\t"}),
            "vocabulary: word 1: the word \"\uFFFD\" contains white space");
  EXPECT_EQ(message({"\xFFz"}),
            "vocabulary: word 1: the word \"\uFFFDz\" is not UTF-8");
}

TEST(Vocabulary, RefusesIdsOutside) {
  const Vocabulary numbers = Numbers();
  for (const int64_t id : {int64_t{-1}, int64_t{5}}) {
    EXPECT_THROW(numbers.Word(id), Error);
    EXPECT_THROW(numbers.Decode({0, id}), Error);
  }
  EXPECT_EQ(ErrorOf([&] { numbers.Word(5); }),
            "Vocabulary::Word: id 5 is outside a vocabulary of 5 words");
}

TEST(Vocabulary, SavesAndLoads) {
  const std::string path = File("");
  const Vocabulary saved = *Vocabulary::FromWords({"=", "#", "七", "one"});
  ASSERT_TRUE(saved.Save(path).ok());
  const absl::StatusOr<Vocabulary> loaded = Vocabulary::Load(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->Decode({0, 1, 2, 3}), "= # 七 one");
  EXPECT_EQ(loaded->size(), 4);
  EXPECT_EQ(*loaded->Id("七"), 2);
  EXPECT_FALSE(saved.Save(path + "/file").ok());
}

TEST(Vocabulary, LoadNamesThePlaceOfAFault) {
  const auto error = [](const std::string& text) {
    const std::string path = File(text);
    const std::string message(Vocabulary::Load(path).status().message());
    EXPECT_THAT(message, HasSubstr(path));
    return message.substr(path.size());
  };
  EXPECT_EQ(error("one\ntwo\none\n"),
            ":3:1: the word \"one\" is listed twice, first as word 1");
  EXPECT_EQ(error("one\n\ntwo\n"), ":2:1: the word is empty");
  EXPECT_EQ(error("one\n七x three\n"),
            ":2:3: the word \"七x three\" contains white space");
  EXPECT_EQ(error("one\nt\xFFwo\n"), ":2:2: the byte 0xff is not UTF-8");
  EXPECT_EQ(error(""), ":1:1: the file is empty");
  EXPECT_EQ(Vocabulary::Load("/nowhere/words").status().message(),
            "/nowhere/words: cannot be read: No such file or directory");
}

}  // namespace
}  // namespace wengert::train
