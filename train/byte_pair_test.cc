// Byte-pair encoding: hand-made cases, any bytes back as they were, and the ids
// that Hugging Face's tokenizers gives (testdata/tokenizer_reference.py).
#include "train/byte_pair.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "autograd/error.h"
#include "autograd/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/files_testlib.h"

namespace wengert::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using BytePair = FilesTest;

constexpr char kText[] =
    "the reader reads what the reader read; the other reader's book isn't "
    "there.\n\nThey've read 12 books, and 345 more.\n";

BytePairTokenizer Trained(int64_t size,
                          const std::vector<std::string>& special = {}) {
  return *BytePairTokenizer::Train(
      {kText},
      {.vocabulary_size = size, .special_tokens = special, .min_count = 1});
}

// Bytes of which most are ASCII, some UTF-8 and some neither.
std::string RandomText(uint64_t seed, int64_t size) {
  std::vector<float> x(size);
  FillUniform(3, seed, 0, 1, size, x.data());
  std::string text;
  for (const float u : x) {
    const int byte = static_cast<int>(u * 4096);
    if (byte < 256) {
      text.push_back(static_cast<char>(byte));
    } else {
      text.push_back("abe tr\n's"[byte % 9]);
    }
  }
  return text;
}

TEST_F(BytePair, Splits) {
  EXPECT_THAT(SplitForBytePairs(""), IsEmpty());
  EXPECT_THAT(SplitForBytePairs("It's 2 o'clock,  we'll go!\n\n ok \n"),
              ElementsAre("It", "'s", " 2", " o", "'", "clock", ",", " ", " we",
                          "'ll", " go", "!", "\n\n", " ok", " \n"));
  EXPECT_THAT(SplitForBytePairs("\xFF\xFE"
                                "a\xC3"),
              ElementsAre("\xFF\xFE", "a", "\xC3"));
}

TEST_F(BytePair, MergesTheMostFrequentPairAndTiesBySmallerIds) {
  // "ab" is there 3 times; " a", " c", " e", "cd" and "ef" twice, but the "a"
  // of " a" is one of the new "ab", whose id is larger than that of "e".
  const auto tokenizer = BytePairTokenizer::Train({"ab ab ab ef ef cd cd"},
                                                  {.vocabulary_size = 260});
  EXPECT_EQ(tokenizer->size(), 260);
  std::vector<std::string> merged;
  for (int64_t id = 256; id < 260; ++id) merged.push_back(tokenizer->Token(id));
  EXPECT_THAT(merged, ElementsAre("ab", " c", " e", " ab"));
  EXPECT_THAT(*tokenizer->Encode("ab ab"), ElementsAre(256, 259));
}

TEST_F(BytePair, CountsNeighboursAsTheyChange) {
  // aaaa: pairs aa, aa, aa; joined from the left to two of "aa", then "aaaa".
  const auto tokenizer =
      BytePairTokenizer::Train({"aaaa", "aaaa"}, {.vocabulary_size = 300});
  EXPECT_EQ(tokenizer->size(), 258);
  EXPECT_EQ(tokenizer->Token(256), "aa");
  EXPECT_EQ(tokenizer->Token(257), "aaaa");
  EXPECT_THAT(*tokenizer->Encode("aaaaaaa"), ElementsAre(257, 256, 'a'));
}

TEST_F(BytePair, StopsWhereNothingIsLeftToMerge) {
  for (const char* text : {"", "a"}) {
    const auto tokenizer =
        BytePairTokenizer::Train({text}, {.vocabulary_size = 260});
    ASSERT_TRUE(tokenizer.ok());
    EXPECT_EQ(tokenizer->size(), 256);
    EXPECT_EQ(tokenizer->Decode(*tokenizer->Encode("ab\xFF")), "ab\xFF");
  }
  EXPECT_EQ(BytePairTokenizer::Train({}, {.vocabulary_size = 260})->size(),
            256);
  // A pair that is there once is merged only where that is asked for.
  EXPECT_EQ(BytePairTokenizer::Train({"ab"}, {.vocabulary_size = 260})->size(),
            256);
  EXPECT_EQ(
      BytePairTokenizer::Train({"ab"}, {.vocabulary_size = 260, .min_count = 0})
          ->size(),
      257);
}

TEST_F(BytePair, AnyBytesComeBack) {
  const BytePairTokenizer trained = Trained(300, {"<|end|>"});
  EXPECT_EQ(trained.size(), 300);
  const BytePairTokenizer bytes = *BytePairTokenizer::Bytes({"<|end|>"});
  EXPECT_EQ(bytes.size(), 257);
  std::string every;
  for (int byte = 0; byte < 256; ++byte)
    every.push_back(static_cast<char>(byte));
  for (uint64_t i = 0; i < 40; ++i) {
    const std::string text = i == 0   ? every
                             : i == 1 ? "x<|end|>y"
                                      : RandomText(i, 25 * i);
    for (const BytePairTokenizer* tokenizer : {&trained, &bytes}) {
      const auto ids = *tokenizer->Encode(text);
      EXPECT_EQ(tokenizer->Decode(ids), text);
      for (const int64_t id : ids) EXPECT_FALSE(tokenizer->IsSpecial(id));
    }
    EXPECT_EQ(bytes.Encode(text)->size(), text.size());
  }
  EXPECT_LT(trained.Encode(kText)->size(), sizeof(kText) * 2 / 3);
}

TEST_F(BytePair, ALongWordTakesNoLongTime) {
  const std::string word(1 << 20, 'e');
  const auto tokenizer = BytePairTokenizer::Train({"eeeeeeee", "eeeeeeee"},
                                                  {.vocabulary_size = 300});
  EXPECT_EQ(tokenizer->Encode(word)->size(), word.size() / 8);
}

TEST_F(BytePair, SpecialTokensStandLastAndAreAskedForByName) {
  const BytePairTokenizer tokenizer = Trained(290, {"<|pad|>", "<|end|>"});
  EXPECT_EQ(*tokenizer.Id("<|pad|>"), 288);
  EXPECT_EQ(*tokenizer.Id("<|end|>"), 289);
  EXPECT_TRUE(tokenizer.IsSpecial(289));
  EXPECT_EQ(*tokenizer.Id("a"), 'a');
  EXPECT_EQ(tokenizer.Decode({'o', 'k', 289}), "ok<|end|>");
  EXPECT_EQ(tokenizer.Id("<|no|>").status().message(),
            "there is no token \"<|no|>\"");
  EXPECT_THROW(tokenizer.Decode({290}), Error);
  EXPECT_THROW(tokenizer.Decode({-1}), Error);
}

TEST_F(BytePair, RefusesWhatCannotBe) {
  const auto error = [](int64_t size, std::vector<std::string> special) {
    return std::string(
        BytePairTokenizer::Train(
            {}, {.vocabulary_size = size, .special_tokens = std::move(special)})
            .status()
            .message());
  };
  EXPECT_EQ(error(256, {"<s>"}),
            "byte pairs: a vocabulary of 256; wanted at least the 256 bytes "
            "and 1 special tokens");
  EXPECT_THAT(error(-1, {}), HasSubstr("a vocabulary of -1"));
  EXPECT_THAT(error(300, {"<s>", "<s>"}), HasSubstr("\"<s>\" stands twice"));
  EXPECT_THAT(error(300, {"a"}), HasSubstr("\"a\" stands twice"));
  EXPECT_THAT(error(300, {""}), HasSubstr("a token is empty"));
}

TEST_F(BytePair, SavesAndLoads) {
  const BytePairTokenizer tokenizer = Trained(310, {"<|end|>", "naïve \"x\""});
  ASSERT_TRUE(tokenizer.Save(Path("a.json")).ok());
  const auto loaded = LoadTokenizer(Path("a.json"));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->size(), tokenizer.size());
  EXPECT_EQ(*(*loaded)->Id("naïve \"x\""), tokenizer.size() - 1);
  for (uint64_t i = 0; i < 10; ++i) {
    const std::string text = kText + RandomText(i, 300);
    EXPECT_EQ(*(*loaded)->Encode(text), *tokenizer.Encode(text));
  }
  ASSERT_TRUE((*loaded)->Save(Path("b.json")).ok());
  EXPECT_EQ(Contents(Path("a.json")), Contents(Path("b.json")));
  // Names that the file could not tell apart, or not hold.
  EXPECT_THAT(Trained(300, {"Ġ"}).Save(Path("c.json")).message(),
              HasSubstr("one name for two tokens, \"Ġ\""));
  EXPECT_THAT(Trained(300, {"<\xFF"}).Save(Path("c.json")).message(),
              HasSubstr("c.json: a special token is not UTF-8"));
}

TEST_F(BytePair, GivesTheIdsOfHuggingFace) {
  const auto tokenizer =
      LoadTokenizer("train/testdata/tokenizer_reference.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::ifstream file("train/testdata/tokenizer_reference_ids.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  EXPECT_GT(cases.size(), 20u);
  for (const auto& pair : cases) {
    const auto text = pair[0].get<std::string>();
    const auto want = pair[1].get<std::vector<int64_t>>();
    EXPECT_EQ(*(*tokenizer)->Encode(text), want) << text;
    EXPECT_EQ((*tokenizer)->Decode(want), text);
  }
}

}  // namespace
}  // namespace wengert::train
