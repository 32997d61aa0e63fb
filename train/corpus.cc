// Sentence pairs from a file, and their words as ids.
#include "train/corpus.h"

#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

// Ids of the words of a side that begins at first_column of the pair's line.
absl::StatusOr<std::vector<int64_t>> EncodeSide(const std::string& path,
                                                int64_t line,
                                                int64_t first_column,
                                                absl::string_view text,
                                                const Vocabulary& vocabulary) {
  std::vector<int64_t> ids;
  for (const absl::string_view word : SplitWords(text)) {
    const absl::StatusOr<int64_t> id = vocabulary.Id(word);
    if (!id.ok()) {
      const absl::string_view before =
          text.substr(0, word.data() - text.data());
      return ErrorAt(path, line, first_column + CountCharacters(before),
                     id.status().message());
    }
    ids.push_back(*id);
  }
  return ids;
}

}  // namespace

absl::StatusOr<std::vector<SentencePair>> ReadPairs(const std::string& path) {
  absl::StatusOr<std::vector<std::string>> lines = ReadLines(path);
  if (!lines.ok()) return lines.status();
  std::vector<SentencePair> pairs;
  for (size_t i = 0; i < lines->size(); ++i) {
    const std::string& text = (*lines)[i];
    const int64_t line = static_cast<int64_t>(i) + 1;
    const size_t tab = text.find('\t');
    const bool blank = tab == std::string::npos && SplitWords(text).empty();
    if (blank || absl::StartsWith(text, "#")) continue;

    const auto error = [&](size_t byte, absl::string_view what) {
      return ErrorAt(
          path, line,
          CountCharacters(absl::string_view(text).substr(0, byte)) + 1,
          absl::StrCat(what, "; a line is source<TAB>target"));
    };
    if (tab == std::string::npos) {
      return error(text.size(), "1 column, no tab");
    }
    const size_t second_tab = text.find('\t', tab + 1);
    if (second_tab != std::string::npos) {
      return error(second_tab, "more than 2 columns");
    }
    SentencePair pair{text.substr(0, tab), text.substr(tab + 1), line};
    if (SplitWords(pair.source).empty()) return error(0, "no source");
    if (SplitWords(pair.target).empty()) return error(tab + 1, "no target");
    pairs.push_back(std::move(pair));
  }
  if (pairs.empty()) {
    return ErrorAt(path, static_cast<int64_t>(lines->size()), 1,
                   "the file has no sentence pairs; a line is "
                   "source<TAB>target");
  }
  return pairs;
}

absl::StatusOr<std::vector<EncodedPair>> EncodePairs(
    const std::string& path, const std::vector<SentencePair>& pairs,
    const Vocabulary& source, const Vocabulary& target) {
  std::vector<EncodedPair> encoded;
  for (const SentencePair& pair : pairs) {
    absl::StatusOr<std::vector<int64_t>> source_ids =
        EncodeSide(path, pair.line, 1, pair.source, source);
    if (!source_ids.ok()) return source_ids.status();
    // The target stands behind the source and one tab.
    absl::StatusOr<std::vector<int64_t>> target_ids = EncodeSide(
        path, pair.line, CountCharacters(pair.source) + 2, pair.target, target);
    if (!target_ids.ok()) return target_ids.status();
    encoded.push_back({*std::move(source_ids), *std::move(target_ids)});
  }
  return encoded;
}

}  // namespace wengert::train
