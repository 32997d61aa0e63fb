// The tokenizer.json of Hugging Face's tokenizers package, as far as it holds
// what Wengert's tokenisers are: byte-pair encoding of bytes with GPT-2's
// splitting, and characters. GPT-2's own file is one; so are RoBERTa's and
// GPT-NeoX's.
#ifndef WENGERT_TRAIN_TOKENIZER_JSON_H_
#define WENGERT_TRAIN_TOKENIZER_JSON_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace wengert::train::internal {

struct TokenizerParts {
  struct Token {
    std::string text;  // its bytes
    bool special = false;
  };
  bool characters = false;         // or byte-pair encoding
  std::vector<Token> tokens = {};  // by id
  // Byte-pair encoding: the bytes of both sides, the first merge first.
  std::vector<std::pair<std::string, std::string>> merges = {};
  std::string unknown =
      {};  // characters: the token for others, if there is one
};

// Ids are known to be 0 .. n - 1, each given once. What the file asks for and
// these tokenisers do not do (a normaliser, another splitting) is an error.
// What is done with the ids of a text (truncation, padding, post-processing) is
// the caller's, and not read.
absl::StatusOr<TokenizerParts> ParseTokenizerJson(absl::string_view json,
                                                  const std::string& path);
// Error: a special token's name that is not UTF-8.
absl::StatusOr<std::string> PrintTokenizerJson(const TokenizerParts& parts);

}  // namespace wengert::train::internal

#endif  // WENGERT_TRAIN_TOKENIZER_JSON_H_
