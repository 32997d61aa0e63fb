// Looking words up, and saying helpfully which one is not there.
#include "train/vocabulary.h"

#include <algorithm>
#include <cstddef>
#include <unordered_set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/error.h"
#include "nn/name_pattern.h"
#include "train/mapped_file.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

// What to try instead of an unknown word: the nearest known one, or, where none
// is near, the first few.
std::string Suggestion(absl::string_view word,
                       const std::vector<std::string>& words) {
  constexpr size_t kShown = 16;
  // A near word keeps at least half of what was typed; longer ones than any
  // word a person mistypes are not compared, which would take long.
  size_t best = std::min<size_t>(word.size() <= 64 ? word.size() / 2 : 0, 2);
  const std::string* nearest = nullptr;
  for (const std::string& known : words) {
    const size_t longer = std::max(known.size(), word.size());
    if (longer - std::min(known.size(), word.size()) > best) continue;
    const size_t distance = nn::EditDistance(word, known);
    if (distance < best || (distance == best && nearest == nullptr)) {
      best = distance;
      nearest = &known;
    }
  }
  if (nearest != nullptr) {
    return absl::StrCat("did you mean ", Quoted(*nearest), "?");
  }
  const size_t shown = std::min(words.size(), kShown);
  std::string list = "known are";
  for (size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&list, " ", Printable(words[i]));
  }
  if (shown < words.size()) {
    absl::StrAppend(&list, " and ", words.size() - shown, " more");
  }
  return list;
}

}  // namespace

std::vector<std::string> Tokenize(absl::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (!absl::ascii_ispunct(c)) plain.push_back(absl::ascii_tolower(c));
  }
  const std::vector<absl::string_view> words = SplitWords(plain);
  return std::vector<std::string>(words.begin(), words.end());
}

absl::Status Vocabulary::Add(const std::string& word) {
  if (word.empty()) return absl::InvalidArgumentError("the word is empty");
  if (SplitWords(word) != std::vector<absl::string_view>{word}) {
    return absl::InvalidArgumentError(
        absl::StrCat("the word ", Quoted(word), " contains white space"));
  }
  for (absl::string_view rest = word; !rest.empty();) {
    const size_t length = Utf8Length(rest);
    if (length == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the word ", Quoted(word), " is not UTF-8"));
    }
    rest.remove_prefix(length);
  }
  const auto [found, inserted] = ids_.try_emplace(word, size());
  if (!inserted) {
    return absl::InvalidArgumentError(
        absl::StrCat("the word ", Quoted(word),
                     " is listed twice, first as word ", found->second + 1));
  }
  words_.push_back(word);
  return absl::OkStatus();
}

absl::StatusOr<Vocabulary> Vocabulary::FromWords(
    const std::vector<std::string>& words) {
  if (words.empty()) {
    return absl::InvalidArgumentError("vocabulary: there are no words");
  }
  Vocabulary vocabulary;
  for (const std::string& word : words) {
    const absl::Status status = vocabulary.Add(word);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "vocabulary: word ", vocabulary.size() + 1, ": ", status.message()));
    }
  }
  return vocabulary;
}

absl::StatusOr<Vocabulary> Vocabulary::FromTexts(
    absl::Span<const absl::string_view> texts,
    const std::vector<std::string>& first) {
  std::vector<std::string> words = first;
  std::unordered_set<std::string> seen(first.begin(), first.end());
  for (const absl::string_view text : texts) {
    for (const absl::string_view word : SplitWords(text)) {
      if (seen.emplace(word).second) words.emplace_back(word);
    }
  }
  return FromWords(words);
}

absl::StatusOr<Vocabulary> Vocabulary::Load(const std::string& path) {
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  return Parse(file->text(), path);
}

absl::StatusOr<Vocabulary> Vocabulary::Parse(absl::string_view text,
                                             const std::string& path) {
  const auto lines = SplitLines(text, path);
  if (!lines.ok()) return lines.status();
  Vocabulary vocabulary;
  for (const std::string& line : *lines) {
    const absl::Status status = vocabulary.Add(line);
    if (!status.ok()) {
      const size_t space = line.find_first_of(" \t\v\f\r");
      const int64_t column =
          space == line.npos ? 1 : CountCharacters(line.substr(0, space)) + 1;
      return ErrorAt(path, vocabulary.size() + 1, column, status.message());
    }
  }
  return vocabulary;
}

absl::Status Vocabulary::Save(const std::string& path) const {
  return WriteFile(path, absl::StrCat(absl::StrJoin(words_, "\n"), "\n"));
}

absl::StatusOr<int64_t> Vocabulary::Id(absl::string_view word) const {
  const auto found = ids_.find(std::string(word));
  if (found != ids_.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("unknown word ", Quoted(word), "; ",
                                          Suggestion(word, words_)));
}

const std::string& Vocabulary::Word(int64_t id) const {
  if (id < 0 || id >= size()) {
    throw Error(absl::StrCat("Vocabulary::Word: id ", id,
                             " is outside a vocabulary of ", size(), " words"));
  }
  return words_[id];
}

absl::StatusOr<std::vector<int64_t>> Vocabulary::Encode(
    const std::vector<std::string>& words) const {
  std::vector<int64_t> ids;
  for (const std::string& word : words) {
    absl::StatusOr<int64_t> id = Id(word);
    if (!id.ok()) return id.status();
    ids.push_back(*id);
  }
  return ids;
}

absl::StatusOr<std::vector<int64_t>> Vocabulary::Encode(
    absl::string_view text) const {
  const std::vector<absl::string_view> words = SplitWords(text);
  return Encode(std::vector<std::string>(words.begin(), words.end()));
}

std::string Vocabulary::Decode(absl::Span<const int64_t> ids) const {
  return absl::StrJoin(ids, " ", [this](std::string* out, int64_t id) {
    absl::StrAppend(out, Word(id));
  });
}

}  // namespace wengert::train
