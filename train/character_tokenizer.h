// Characters and their ids: the alphabet of a text, each character of which is
// one token.
#ifndef WENGERT_TRAIN_CHARACTER_TOKENIZER_H_
#define WENGERT_TRAIN_CHARACTER_TOKENIZER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "train/tokenizer.h"
#include "train/tokenizer_json.h"

namespace wengert::train {

struct CharacterOptions {
  std::vector<std::string> special_tokens = {};
  // One of special_tokens, which stands for characters outside the alphabet;
  // without one they are errors.
  std::string unknown = {};
};

class CharacterTokenizer : public TableTokenizer {
 public:
  // The characters of the texts in the order of their code points, then the
  // special tokens. Errors: bytes that are not UTF-8; a special token that is
  // empty, a character of the texts, or there twice; `unknown` is none.
  static absl::StatusOr<CharacterTokenizer> Train(
      absl::Span<const absl::string_view> texts,
      const CharacterOptions& options = {});
  // Errors: a token that is not special and not one character; the same token
  // twice.
  static absl::StatusOr<CharacterTokenizer> FromParts(
      const internal::TokenizerParts& parts);

  // An error, where there is no token for others, names the first character
  // that is not in the alphabet, and where it stands: "line 2, column 7".
  absl::StatusOr<std::vector<int64_t>> Encode(
      absl::string_view text) const override;
  // A file that LoadTokenizer reads; see tokenizer_json.h.
  absl::Status Save(const std::string& path) const override;

 private:
  CharacterTokenizer() = default;

  std::optional<int64_t> unknown_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_CHARACTER_TOKENIZER_H_
