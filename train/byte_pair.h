// Byte-pair encoding (Sennrich, Haddow, Birch 2016) of bytes, as GPT-2's: text
// is cut into words, and in each the pairs of neighbours that training found
// most frequent are joined, in the order in which it found them. Any bytes can
// be encoded, and come back as they were.
//
//   auto tokenizer = BytePairTokenizer::Train(
//       {file.text()}, {.vocabulary_size = 4096,
//                       .special_tokens = {"<|end|>"}});
//   tokenizer->Save("tokenizer.json");   // Hugging Face's tokenizers reads it
#ifndef WENGERT_TRAIN_BYTE_PAIR_H_
#define WENGERT_TRAIN_BYTE_PAIR_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "train/tokenizer.h"
#include "train/tokenizer_json.h"

namespace wengert::train {

struct BytePairOptions {
  int64_t vocabulary_size = 4096;  // bytes, merges and special tokens
  std::vector<std::string> special_tokens = {};
  int64_t min_count = 2;  // of a pair that is merged
};

// The words that byte-pair encoding keeps apart, one after the other the text:
// the longest run, each with at most one space before it, of letters, of
// numbers, or of what is neither (Unicode's L and N; bytes that are not UTF-8
// count as neither); the endings 's 't 're 've 'm 'll 'd; white space, without
// the last of its characters where a word follows. This is GPT-2's splitting.
std::vector<absl::string_view> SplitForBytePairs(absl::string_view text);

class BytePairTokenizer : public TableTokenizer {
 public:
  // Byte b is token b; merges follow in the order of training, then the special
  // tokens. Each merge joins the pair that is most frequent in all texts; of
  // several, that of the smaller left id, then of the smaller right id. Ends
  // early where no pair is as frequent as min_count. Errors: a vocabulary too
  // small for bytes and special tokens, a special token twice or empty.
  static absl::StatusOr<BytePairTokenizer> Train(
      absl::Span<const absl::string_view> texts,
      const BytePairOptions& options);
  // Without merges: byte b is token b, and special tokens follow.
  static absl::StatusOr<BytePairTokenizer> Bytes(
      const std::vector<std::string>& special_tokens = {});
  // Errors: a byte without a token, a token twice, a merge of what is no token.
  static absl::StatusOr<BytePairTokenizer> FromParts(
      const internal::TokenizerParts& parts);

  // Never an error.
  absl::StatusOr<std::vector<int64_t>> Encode(
      absl::string_view text) const override;
  // A file that LoadTokenizer reads; see tokenizer_json.h.
  absl::Status Save(const std::string& path) const override;

 private:
  struct Merge {
    int32_t rank, id;
  };
  class Trainer;
  class Encoder;

  BytePairTokenizer() = default;
  static uint64_t Pair(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }

  std::array<int32_t, 256> byte_ids_;
  absl::flat_hash_map<uint64_t, Merge> merges_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_BYTE_PAIR_H_
