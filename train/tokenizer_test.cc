// Characters, words and the choice among tokenisers by file; what is wrong with
// a tokeniser's file.
#include "train/tokenizer.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/byte_pair.h"
#include "train/character_tokenizer.h"
#include "train/files_testlib.h"
#include "train/vocabulary.h"

namespace wengert::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using TokenizerTest = FilesTest;

TEST_F(TokenizerTest, CharactersByCodePoint) {
  const auto tokenizer =
      CharacterTokenizer::Train({"hé\n", "七h"}, {.special_tokens = {"<end>"}});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->size(), 5);
  EXPECT_THAT(*tokenizer->Encode("\nhé七"), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(*tokenizer->Id("<end>"), 4);
  for (const char* text : {"", "七七\n", "hé\nhé"}) {
    EXPECT_EQ(tokenizer->Decode(*tokenizer->Encode(text)), text);
  }
  EXPECT_EQ(tokenizer->Encode("h\néxh").status().message(),
            "line 2, column 2: the character \"x\" is not in the alphabet");
  EXPECT_FALSE(tokenizer->Encode("h\xFF").ok());
  EXPECT_FALSE(tokenizer->Encode("<end>").ok());  // "<" is none
}

TEST_F(TokenizerTest, CharactersWithOneForTheUnknown) {
  const auto tokenizer = CharacterTokenizer::Train(
      {"ab"}, {.special_tokens = {"<pad>", "<unk>"}, .unknown = "<unk>"});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(*tokenizer->Encode("aé\xFF"
                                 "b"),
              ElementsAre(0, 3, 3, 1));
  EXPECT_EQ(CharacterTokenizer::Train({"ab"}, {.unknown = "<unk>"})
                .status()
                .message(),
            "characters: \"<unk>\" for the unknown is none of the special "
            "tokens");
  EXPECT_EQ(CharacterTokenizer::Train({"ab\nc\xFF"}).status().message(),
            "characters: line 2, column 2: the byte 0xff is not UTF-8");
  EXPECT_THAT(CharacterTokenizer::Train({"a"}, {.special_tokens = {"a"}})
                  .status()
                  .message(),
              HasSubstr("\"a\" stands twice, as ids 0 and 1"));
}

TEST_F(TokenizerTest, WordsOfTexts) {
  const auto tokenizer =
      Vocabulary::FromTexts({"b a\nb", "c  a"}, {"<pad>", "a"});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(*tokenizer->Encode("a b c"), ElementsAre(1, 2, 3));
  EXPECT_EQ(*tokenizer->Id("<pad>"), 0);
  EXPECT_FALSE(Vocabulary::FromTexts({}).ok());
}

TEST_F(TokenizerTest, AFileSaysWhichOneItIs) {
  const auto words = Vocabulary::FromTexts({"to be or not to be"});
  const auto characters = CharacterTokenizer::Train(
      {"to be or not to be"},
      {.special_tokens = {"<unk>"}, .unknown = "<unk>"});
  const auto bytes = BytePairTokenizer::Bytes();
  const auto pairs = BytePairTokenizer::Train({"to be or not to be"},
                                              {.vocabulary_size = 258});
  const std::vector<std::pair<const Tokenizer*, std::string>> all = {
      {&*words, Path("words.txt")},
      {&*characters, Path("characters.json")},
      {&*bytes, Path("bytes.json")},
      {&*pairs, Path("pairs.json")}};
  const std::string text = "not to be";
  for (const auto& [tokenizer, path] : all) {
    ASSERT_TRUE(tokenizer->Save(path).ok());
    const auto loaded = LoadTokenizer(path);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ((*loaded)->size(), tokenizer->size());
    EXPECT_EQ(*(*loaded)->Encode(text), *tokenizer->Encode(text)) << path;
    EXPECT_EQ((*loaded)->Decode(*(*loaded)->Encode(text)), text);
  }
  EXPECT_THAT(*(*LoadTokenizer(Path("characters.json")))->Encode("x"),
              ElementsAre(*characters->Id("<unk>")));
  EXPECT_THAT(LoadTokenizer(Path("none.json")).status().message(),
              HasSubstr("none.json: cannot be read"));
}

// Parts of a file that is right.
struct Json {
  std::string pre = R"({"type": "ByteLevel", "add_prefix_space": false})";
  std::string added = "[]";
  std::string more_vocab = R"(, "ab": 256)";
  std::string merges = R"(["a b"])";
  std::string more_model = "";
  std::string more = "";
};

std::string Print(const Json& json) {
  std::string vocab;
  const auto bytes = BytePairTokenizer::Bytes();
  internal::TokenizerParts parts;
  for (int64_t id = 0; id < 256; ++id)
    parts.tokens.push_back({bytes->Token(id)});
  const std::string printed = *internal::PrintTokenizerJson(parts);
  const size_t begin = printed.find("\"vocab\": {") + 10;
  vocab = printed.substr(begin, printed.find("255\n", begin) + 3 - begin);
  return absl::StrCat(
      "{\"pre_tokenizer\": ", json.pre, ", \"added_tokens\": ", json.added,
      json.more, ",\n \"model\": {\"type\": \"BPE\", \"vocab\": {", vocab,
      json.more_vocab, "}, \"merges\": ", json.merges, json.more_model, "}}");
}

std::string FaultOf(const std::string& json) {
  return std::string(ParseTokenizer(json, "t.json").status().message());
}

TEST_F(TokenizerTest, ReadsWhatIsRight) {
  EXPECT_EQ(FaultOf(Print({})), "");
  EXPECT_EQ(FaultOf(Print({.merges = R"([["a", "b"]])"})), "");
  EXPECT_EQ(FaultOf(Print({.added = R"([{"id": 257, "content": "<s>"}])"})),
            "");
}

TEST_F(TokenizerTest, SaysWhatIsWrong) {
  EXPECT_THAT(FaultOf("{\"model\":\n {"),
              AllOf(HasSubstr("t.json:2:3: syntax error"),
                    Not(HasSubstr("last read"))));
  EXPECT_THAT(FaultOf(std::string("{\n\0}", 4)), "t.json:2:1: a byte is 0");
  EXPECT_THAT(FaultOf(""), HasSubstr("t.json:1:1: "));
  EXPECT_EQ(FaultOf("[]"), "t.json: model: wanted an object");
  EXPECT_EQ(FaultOf(R"({"model": {"type": "Unigram"}})"),
            "t.json: model.type: wanted BPE or WordLevel");
  EXPECT_EQ(FaultOf(Print({.pre = "null"})),
            "t.json: pre_tokenizer: wanted ByteLevel, with use_regex");
  EXPECT_EQ(FaultOf(Print({.pre = R"({"type": "ByteLevel"})"})),
            "t.json: pre_tokenizer.add_prefix_space: wanted false");
  EXPECT_EQ(FaultOf(Print({.more = R"(, "normalizer": {"type": "NFC"})"})),
            "t.json: normalizer: wanted null");
  EXPECT_EQ(FaultOf(Print({.more_model = R"(, "end_of_word_suffix": "@")"})),
            "t.json: model.end_of_word_suffix: wanted none");
  EXPECT_EQ(FaultOf(Print({.added = R"([{"id": 7, "content": 7}])"})),
            "t.json: added_tokens[0]: wanted a string \"content\"");
  EXPECT_EQ(FaultOf(Print({.added = R"([{"id": -7, "content": "<s>"}])"})),
            "t.json: added_tokens[0]: wanted an id, a whole number from 0 on");
  EXPECT_EQ(FaultOf(Print({.added = R"([{"id": 256, "content": "<s>"}])"})),
            "t.json: model.vocab[\"ab\"]: another token has the id 256");
  EXPECT_EQ(FaultOf(Print({.added = R"([{"id": 257, "content": "ab"}])"})),
            "t.json: model.vocab[\"ab\"]: wanted the id of added_tokens, 257");
  EXPECT_EQ(FaultOf(Print({.more_vocab = R"(, "ab": 2147483646)"})),
            "t.json: model.vocab: no token has the id 256");
  EXPECT_EQ(FaultOf(Print({.more_vocab = R"(, "a b": 256)"})),
            "t.json: model.vocab[\"a b\"]: a character stands for no byte");
  EXPECT_EQ(FaultOf(Print({.more_vocab = R"(, "a": 256)"})),
            "t.json: model.vocab: no token has the id 97");
  EXPECT_EQ(FaultOf(Print({.merges = R"(["ab"])"})),
            "t.json: model.merges[0]: wanted two tokens, \"a b\" or [\"a\", "
            "\"b\"]");
  EXPECT_EQ(FaultOf(Print({.merges = R"(["a b", "b c"])"})),
            "t.json: merge 1 is of \"b\" and \"c\"; wanted tokens that make a "
            "token");
  EXPECT_EQ(FaultOf(Print({.merges = R"(["a b", "a b"])"})),
            "t.json: merge 1, of \"a\" and \"b\", stands twice");
  std::string without = Print({.merges = "[]"});
  without.replace(without.find("\"a\": 97"), 3, "\"aa\"");
  EXPECT_EQ(FaultOf(without), "t.json: the byte 0x61 has no token");
}

}  // namespace
}  // namespace wengert::train
