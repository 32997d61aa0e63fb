// Token files: both kinds, blocks, ids outside, and files of any size.
#include "train/token_file.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "autograd/ops.h"
#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/batch_stream.h"
#include "train/files_testlib.h"

namespace wengert::train {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

template <class T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

std::string Header(int32_t magic, int32_t version, int32_t count) {
  std::vector<int32_t> words(256);
  words[0] = magic, words[1] = version, words[2] = count;
  return Bytes(words);
}

class TokenFileTest : public FilesTest {
 protected:
  // What stands behind the file's name in the error.
  std::string Fault(const std::string& contents, ElementType type) {
    const std::string path = File("tokens", contents);
    const auto file = TokenFile::Open(path, type, 100);
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    const std::string message(file.status().message());
    return message.substr(std::min(message.size(), path.size() + 2));
  }
};

TEST_F(TokenFileTest, EveryTypeWithAndWithoutAHeader) {
  const std::string a = Bytes<uint8_t>({7, 8, 9, 10, 11});
  const std::string b = Bytes<uint16_t>({7, 8, 9, 10, 11});
  const std::string c = Bytes<int32_t>({7, 8, 9, 10, 11});
  const std::vector<std::pair<std::string, ElementType>> files = {
      {a, ElementType::kU8},
      {b, ElementType::kU16},
      {Header(20240520, 1, 5) + b, ElementType::kU16},
      {c, ElementType::kU32},
      {Header(20240801, 7, 5) + c, ElementType::kU32},
      {c, ElementType::kI32}};
  for (const auto& [contents, type] : files) {
    const auto file = TokenFile::Open(File("tokens", contents), type, 12);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->size(), 5);
    EXPECT_TRUE(file->Check().ok());
    const auto batch = file->Blocks({1, 0}, 2);
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_TRUE(SameBits(batch->x, Tensor::Of<int64_t>({2, 2}, {9, 10, 7, 8})));
    EXPECT_TRUE(
        SameBits(batch->y, Tensor::Of<int64_t>({2, 2}, {10, 11, 8, 9})));
  }
}

// 10 tokens, batch 1, block 3.
TEST_F(TokenFileTest, TenTokensInBlocksOfThreeAreThreeBatches) {
  const auto file =
      *TokenFile::Open(File("text", "abcdefghij"), ElementType::kU8, 256);
  EXPECT_EQ(NumBlocks(file.size(), 3), 3);
  BatchStream batches(NumBlocks(file.size(), 3), 1, 1);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::string> seen;
    for (int i = 0; i < 3; ++i) {
      const auto batch = *file.Blocks(batches.Next(), 3);
      std::string text;
      for (const int64_t id : batch.x.span<int64_t>()) text.push_back(id);
      text.push_back(batch.y.span<int64_t>()[2]);
      seen.push_back(text);
    }
    EXPECT_THAT(seen, UnorderedElementsAre("abcd", "defg", "ghij"));
  }
}

TEST_F(TokenFileTest, NamesThePositionOfAnIdOutsideTheVocabulary) {
  const std::string path = File("tokens", Bytes<uint16_t>({1, 2, 3, 4, 5}));
  const auto file = *TokenFile::Open(path, ElementType::kU16, 5);
  const std::string message =
      path + ": token 4 is 5, outside a vocabulary of 5";
  EXPECT_TRUE(file.Blocks({0}, 2).ok());
  EXPECT_EQ(file.Blocks({0, 1}, 2).status().message(), message);
  EXPECT_EQ(file.Check().message(), message);
  const std::string negative = File("negative", Bytes<int32_t>({0, -1}));
  EXPECT_EQ(TokenFile::Open(negative, ElementType::kI32, 5)->Check().message(),
            negative + ": token 1 is -1, outside a vocabulary of 5");
  EXPECT_EQ(TokenFile::Open(negative, ElementType::kU32, 5)->Check().message(),
            negative + ": token 1 is 4294967295, outside a vocabulary of 5");
}

TEST_F(TokenFileTest, RefusesBrokenFiles) {
  const std::string two = Bytes<uint16_t>({1, 2});
  EXPECT_EQ(Fault("abc", ElementType::kU16),
            "has 3 bytes, no whole number of tokens of U16");
  EXPECT_EQ(Fault(Header(20240520, 2, 2) + two, ElementType::kU16),
            "has a header of version 2; wanted 1");
  EXPECT_EQ(Fault(Header(20240801, 1, 1) + two, ElementType::kU32),
            "has a header of version 1; wanted 7");
  EXPECT_EQ(Fault(Header(20240520, 1, 2) + two, ElementType::kU32),
            "has tokens of U16; wanted U32");
  EXPECT_EQ(Fault(Header(20240520, 1, 3) + two, ElementType::kU16),
            "has 3 tokens of 2 bytes by its header, and 4 bytes behind that");
  EXPECT_EQ(Fault(Header(20240520, 1, 1) + two, ElementType::kU16),
            "has 1 tokens of 2 bytes by its header, and 4 bytes behind that");
  EXPECT_EQ(Fault(Header(20240520, 1, -1) + two, ElementType::kU16),
            "has -1 tokens of 2 bytes by its header, and 4 bytes behind that");
  EXPECT_EQ(
      Fault(Header(20240520, 1, 2).substr(0, 1000) + two, ElementType::kU16),
      "is cut off: the header has 1024 bytes, of which 1004 are there");
  EXPECT_EQ(
      TokenFile::Open(Path("missing"), ElementType::kU16, 5).status().message(),
      Path("missing") + ": cannot be read: No such file or directory");
}

TEST_F(TokenFileTest, MisuseThrows) {
  const auto file =
      *TokenFile::Open(File("text", "abcdefg"), ElementType::kU8, 256);
  EXPECT_EQ(ErrorOf([&] { (void)file.Blocks({2}, 3); }),
            "TokenFile::Blocks: block 2, wanted 0 <= block < 2");
  EXPECT_THROW((void)file.Blocks({-1}, 3), Error);
  EXPECT_THROW((void)file.Blocks({0}, 7), Error);
  EXPECT_THROW((void)file.Blocks({0}, 0), Error);
  EXPECT_EQ(ErrorOf([&] {
              (void)TokenFile::Open(Path("text"), ElementType::kI64, 5);
            }),
            "TokenFile: type I64, wanted U8, U16, U32 or I32");
}

// Kilobytes of this process's own memory; what the system can take back, the
// mapped pages of files, is not among it.
int64_t OwnMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "RssAnon:") {
      status >> word;
      return std::stoll(word);
    }
  }
  return 0;
}

TEST_F(TokenFileTest, ACorpusLargerThanMemoryStreams) {
  const std::string path = File("tokens", "");
  constexpr int64_t kSize = int64_t{1} << 33, kLength = 8;
  if (truncate(path.c_str(), kSize) != 0) GTEST_SKIP() << "no sparse files";
  const auto file = TokenFile::Open(path, ElementType::kU16, 100);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->size(), kSize / 2);
  const int64_t n = NumBlocks(file->size(), kLength);
  const int64_t before = OwnMemory();
  ASSERT_GT(before, 0);
  BatchStream batches(n, 16, 1, {.low_memory = true});
  for (int i = 0; i < 100; ++i) {
    const auto batch = file->Blocks(batches.Next(), kLength);
    ASSERT_TRUE(batch.ok());
    EXPECT_EQ(Sum(batch->y.To(DType::kFloat32)).item(), 0);
  }
  // The order alone would take 4 GB.
  EXPECT_LT(OwnMemory() - before, 64 << 10);
  const auto last = file->Blocks({n - 1}, kLength);
  EXPECT_TRUE(last.ok());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace wengert::train
