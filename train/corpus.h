// A parallel corpus: a file whose lines are `source<TAB>target`, such as
// "one is one<TAB>1 = 1".
#ifndef WENGERT_TRAIN_CORPUS_H_
#define WENGERT_TRAIN_CORPUS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "train/line_file.h"
#include "train/vocabulary.h"

namespace wengert::train {

struct SentencePair {
  std::string source;  // as it stands in the file
  std::string target;
  int64_t line = 0;  // where, from 1
};

struct EncodedPair {
  std::vector<int64_t> source;
  std::vector<int64_t> target;
};

// The pairs of a UTF-8 file. Lines that are blank or begin with # are skipped;
// any other line that is not two non-empty columns is an error, as is a file
// without pairs: "file:line:column: what", the column in characters.
absl::StatusOr<std::vector<SentencePair>> ReadPairs(const std::string& path);
// Those of a file with this text.
absl::StatusOr<std::vector<SentencePair>> ParsePairs(absl::string_view text,
                                                     const std::string& path);

// The same pairs left in their file, for a corpus that is larger than memory.
class PairFile {
 public:
  // Reads the file once. Errors as above.
  static absl::StatusOr<PairFile> Open(const std::string& path);

  const std::string& path() const { return lines_.path(); }
  int64_t size() const { return lines_.size(); }
  // Throws Error unless 0 <= i < size().
  SentencePair operator[](int64_t i) const;

 private:
  explicit PairFile(LineFile lines) : lines_(std::move(lines)) {}

  LineFile lines_;
};

// The word ids of both sides, split at white space. An unknown word's error
// names path, line and column.
absl::StatusOr<EncodedPair> EncodePair(const std::string& path,
                                       const SentencePair& pair,
                                       const Vocabulary& source,
                                       const Vocabulary& target);
absl::StatusOr<std::vector<EncodedPair>> EncodePairs(
    const std::string& path, const std::vector<SentencePair>& pairs,
    const Vocabulary& source, const Vocabulary& target);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_CORPUS_H_
