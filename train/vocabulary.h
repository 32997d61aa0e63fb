// The words of a model and their ids: id i is the i-th word listed, so that the
// order in which a document or a file lists its words is the order of the rows
// of an embedding and of the classes of a prediction.
#ifndef WENGERT_TRAIN_VOCABULARY_H_
#define WENGERT_TRAIN_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "train/tokenizer.h"

namespace wengert::train {

// The words of a sentence in lower case without punctuation:
// "I wonder what will come next!" -> i wonder what will come next. Only ASCII
// letters and punctuation change; a word of punctuation alone disappears.
std::vector<std::string> Tokenize(absl::string_view text);

class Vocabulary : public Tokenizer {
 public:
  // Errors: no words, a word listed twice, an empty word, white space in a
  // word, bytes that are not UTF-8.
  static absl::StatusOr<Vocabulary> FromWords(
      const std::vector<std::string>& words);
  // The words of texts as they stand between white space, in the order of their
  // first appearance, behind those of `first` ("<pad>", say). Errors as above.
  static absl::StatusOr<Vocabulary> FromTexts(
      absl::Span<const absl::string_view> texts,
      const std::vector<std::string>& first = {});

  // A file of one word a line. Errors name file, line and column.
  static absl::StatusOr<Vocabulary> Load(const std::string& path);
  // That of a file with this text.
  static absl::StatusOr<Vocabulary> Parse(absl::string_view text,
                                          const std::string& path);
  absl::Status Save(const std::string& path) const override;

  int64_t size() const override { return static_cast<int64_t>(words_.size()); }

  // NotFound for an unknown word, naming what was probably meant.
  absl::StatusOr<int64_t> Id(absl::string_view word) const override;

  // Throws Error unless 0 <= id < size().
  const std::string& Word(int64_t id) const;

  // The ids of words, or of a text's words as they stand between white space.
  absl::StatusOr<std::vector<int64_t>> Encode(
      const std::vector<std::string>& words) const;
  absl::StatusOr<std::vector<int64_t>> Encode(
      absl::string_view text) const override;

  // The words joined by single spaces. Throws Error as Word does.
  std::string Decode(absl::Span<const int64_t> ids) const override;

 private:
  Vocabulary() = default;

  // Appends a word; the status says what is wrong with it.
  absl::Status Add(const std::string& word);

  std::vector<std::string> words_;
  std::unordered_map<std::string, int64_t> ids_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_VOCABULARY_H_
