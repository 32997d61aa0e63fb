// A parallel corpus: a file whose lines are `source<TAB>target`, such as
// "one is one<TAB>1 = 1".
#ifndef WENGERT_TRAIN_CORPUS_H_
#define WENGERT_TRAIN_CORPUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
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

// The word ids of both sides, split at white space. An unknown word's error
// names path, line and column.
absl::StatusOr<std::vector<EncodedPair>> EncodePairs(
    const std::string& path, const std::vector<SentencePair>& pairs,
    const Vocabulary& source, const Vocabulary& target);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_CORPUS_H_
