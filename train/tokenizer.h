// What turns text into the ids that a model reads, and back. There are four:
//
//   Vocabulary                  words between white space (vocabulary.h)
//   CharacterTokenizer          characters (character_tokenizer.h)
//   BytePairTokenizer::Bytes()  bytes (byte_pair.h)
//   BytePairTokenizer           pieces of words (byte_pair.h)
//
//   auto tokenizer = LoadTokenizer(path);
//   const auto ids = (*tokenizer)->Encode("To be, or not");
//   (*tokenizer)->Decode(*ids);   // "To be, or not"
#ifndef WENGERT_TRAIN_TOKENIZER_H_
#define WENGERT_TRAIN_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "train/tokenizer_json.h"

namespace wengert::train {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Ids are 0 .. size() - 1, those of special tokens too.
  virtual int64_t size() const = 0;

  // Text never gives the id of a special token, also where its name stands in
  // the text: whoever wants one puts Id(name) among the ids. Errors: what the
  // tokeniser has no token for.
  virtual absl::StatusOr<std::vector<int64_t>> Encode(
      absl::string_view text) const = 0;

  // The text of the ids: of what Encode gave, that text; of a special token,
  // its name. Throws Error unless 0 <= id < size().
  virtual std::string Decode(absl::Span<const int64_t> ids) const = 0;

  // The id of one token. NotFound where there is none.
  virtual absl::StatusOr<int64_t> Id(absl::string_view token) const = 0;

  // Writes the file whole or leaves what was there; see FileWriter.
  virtual absl::Status Save(const std::string& path) const = 0;

 protected:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;
};

// Whichever is in the file: a name that ends in .json is a file in the format
// of Hugging Face's tokenizers, any other the words of a Vocabulary.
// Truncation, padding and post-processing that a .json asks for are left to the
// caller.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(
    const std::string& path);

// That of a .json file with this text. Errors, of one line: the file with line
// and column where it is no JSON, else with the place in the JSON.
absl::StatusOr<std::unique_ptr<Tokenizer>> ParseTokenizer(
    absl::string_view json, const std::string& path);

// A tokeniser whose text is that of its tokens, one after the other.
class TableTokenizer : public Tokenizer {
 public:
  int64_t size() const override { return static_cast<int64_t>(tokens_.size()); }
  std::string Decode(absl::Span<const int64_t> ids) const override;
  absl::StatusOr<int64_t> Id(absl::string_view token) const override;

  // The bytes that the id stands for. Throws Error unless 0 <= id < size().
  const std::string& Token(int64_t id) const;
  bool IsSpecial(int64_t id) const { return id < size() && special_[id]; }

 protected:
  // Appends a token; an error says that it is empty, or that there is one of
  // this name.
  absl::Status Add(const std::string& token, bool special = false);
  absl::Status AddSpecial(absl::Span<const std::string> names);
  // Writes the .json file of these parts and the tokens.
  absl::Status SaveParts(const std::string& path,
                         internal::TokenizerParts parts) const;

 private:
  std::vector<std::string> tokens_;
  std::vector<bool> special_;  // parallel to tokens_
  absl::flat_hash_map<std::string, int64_t> ids_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_TOKENIZER_H_
