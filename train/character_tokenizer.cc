#include "train/character_tokenizer.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

// "line 2, column 7" of what stands behind `before`.
std::string Position(absl::string_view before) {
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t begin = before.rfind('\n') + 1;  // 0 where there is none
  return absl::StrCat("line ", line, ", column ",
                      CountCharacters(before.substr(begin)) + 1);
}

}  // namespace

absl::StatusOr<CharacterTokenizer> CharacterTokenizer::Train(
    absl::Span<const absl::string_view> texts,
    const CharacterOptions& options) {
  std::set<std::string> alphabet;  // bytes of UTF-8 sort as code points do
  for (const absl::string_view text : texts) {
    for (absl::string_view rest = text; !rest.empty();) {
      const size_t length = Utf8Length(rest);
      if (length == 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "characters: ", Position(text.substr(0, text.size() - rest.size())),
            ": the byte 0x",
            absl::Hex(static_cast<uint8_t>(rest[0]), absl::kZeroPad2),
            " is not UTF-8"));
      }
      alphabet.emplace(rest.substr(0, length));
      rest.remove_prefix(length);
    }
  }
  internal::TokenizerParts parts = {.characters = true};
  for (const std::string& c : alphabet) parts.tokens.push_back({c});
  for (const std::string& name : options.special_tokens) {
    parts.tokens.push_back({name, /*special=*/true});
  }
  parts.unknown = options.unknown;
  auto tokenizer = FromParts(parts);
  if (tokenizer.ok() && !options.unknown.empty() && !tokenizer->unknown_) {
    return absl::InvalidArgumentError(
        absl::StrCat("characters: ", Quoted(options.unknown),
                     " for the unknown is none of the special tokens"));
  }
  return tokenizer;
}

absl::StatusOr<CharacterTokenizer> CharacterTokenizer::FromParts(
    const internal::TokenizerParts& parts) {
  CharacterTokenizer tokenizer;
  for (const auto& [text, special] : parts.tokens) {
    if (!special && Utf8Length(text) != text.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("characters: the token ", Quoted(text),
                       " is neither one character nor special"));
    }
    const absl::Status status = tokenizer.Add(text, special);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("characters: ", status.message()));
    }
  }
  const auto id = tokenizer.Id(parts.unknown);
  if (id.ok() && tokenizer.IsSpecial(*id)) tokenizer.unknown_ = *id;
  return tokenizer;
}

absl::StatusOr<std::vector<int64_t>> CharacterTokenizer::Encode(
    absl::string_view text) const {
  std::vector<int64_t> ids;
  for (absl::string_view rest = text; !rest.empty();) {
    const size_t length = std::max<size_t>(Utf8Length(rest), 1);
    const absl::string_view c = rest.substr(0, length);
    const auto id = Id(c);
    if (id.ok() && !IsSpecial(*id)) {
      ids.push_back(*id);
    } else if (unknown_) {
      ids.push_back(*unknown_);
    } else {
      return absl::NotFoundError(absl::StrCat(
          Position(text.substr(0, text.size() - rest.size())),
          ": the character ", Quoted(c), " is not in the alphabet"));
    }
    rest.remove_prefix(length);
  }
  return ids;
}

absl::Status CharacterTokenizer::Save(const std::string& path) const {
  return SaveParts(path,
                   {.characters = true,
                    .unknown = unknown_ ? Token(*unknown_) : std::string()});
}

}  // namespace wengert::train
