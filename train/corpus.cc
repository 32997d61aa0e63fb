// Sentence pairs from a file, and their words as ids.
#include "train/corpus.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "train/mapped_file.h"
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

// What stands on both sides of a line's tab.
struct Sides {
  absl::string_view source;
  absl::string_view target;
};

// None for a line to skip.
absl::StatusOr<std::optional<Sides>> Split(const std::string& path,
                                           const Line& line) {
  const absl::string_view text = line.text;
  const size_t tab = text.find('\t');
  const bool blank = tab == text.npos && SplitWords(text).empty();
  if (blank || absl::StartsWith(text, "#")) return std::nullopt;

  const auto error = [&](size_t byte, absl::string_view what) {
    return ErrorAt(path, line.number, CountCharacters(text.substr(0, byte)) + 1,
                   absl::StrCat(what, "; a line is source<TAB>target"));
  };
  if (tab == text.npos) return error(text.size(), "1 column, no tab");
  const size_t second_tab = text.find('\t', tab + 1);
  if (second_tab != text.npos) return error(second_tab, "more than 2 columns");
  const Sides sides{text.substr(0, tab), text.substr(tab + 1)};
  if (SplitWords(sides.source).empty()) return error(0, "no source");
  if (SplitWords(sides.target).empty()) return error(tab + 1, "no target");
  return sides;
}

SentencePair ToPair(const Sides& sides, int64_t line) {
  return {std::string(sides.source), std::string(sides.target), line};
}

absl::Status NoPairs(const std::string& path, int64_t last_line) {
  return ErrorAt(path, last_line, 1,
                 "the file has no sentence pairs; a line is "
                 "source<TAB>target");
}

}  // namespace

absl::StatusOr<std::vector<SentencePair>> ReadPairs(const std::string& path) {
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  return ParsePairs(file->text(), path);
}

absl::StatusOr<std::vector<SentencePair>> ParsePairs(absl::string_view text,
                                                     const std::string& path) {
  std::vector<SentencePair> pairs;
  int64_t last_line = 0;
  const absl::Status status = ForEachLine(text, path, [&](const Line& line) {
    last_line = line.number;
    const auto sides = Split(path, line);
    if (!sides.ok()) return sides.status();
    if (*sides) pairs.push_back(ToPair(**sides, line.number));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (pairs.empty()) return NoPairs(path, last_line);
  return pairs;
}

absl::StatusOr<PairFile> PairFile::Open(const std::string& path) {
  auto lines =
      LineFile::Open(path, [](const std::string& path, const Line& line) {
        const auto sides = Split(path, line);
        return sides.ok() ? absl::StatusOr<bool>(sides->has_value())
                          : sides.status();
      });
  if (!lines.ok()) return lines.status();
  if (lines->size() == 0) return NoPairs(path, lines->last_line());
  return PairFile(*std::move(lines));
}

SentencePair PairFile::operator[](int64_t i) const {
  const Line line = lines_[i];
  return ToPair(**Split(path(), line), line.number);
}

absl::StatusOr<EncodedPair> EncodePair(const std::string& path,
                                       const SentencePair& pair,
                                       const Vocabulary& source,
                                       const Vocabulary& target) {
  auto source_ids = EncodeSide(path, pair.line, 1, pair.source, source);
  if (!source_ids.ok()) return source_ids.status();
  // The target stands behind the source and one tab.
  auto target_ids = EncodeSide(
      path, pair.line, CountCharacters(pair.source) + 2, pair.target, target);
  if (!target_ids.ok()) return target_ids.status();
  return EncodedPair{*std::move(source_ids), *std::move(target_ids)};
}

absl::StatusOr<std::vector<EncodedPair>> EncodePairs(
    const std::string& path, const std::vector<SentencePair>& pairs,
    const Vocabulary& source, const Vocabulary& target) {
  std::vector<EncodedPair> encoded;
  for (const SentencePair& pair : pairs) {
    auto ids = EncodePair(path, pair, source, target);
    if (!ids.ok()) return ids.status();
    encoded.push_back(*std::move(ids));
  }
  return encoded;
}

}  // namespace wengert::train
