#include "train/tokenizer.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "train/byte_pair.h"
#include "train/character_tokenizer.h"
#include "train/mapped_file.h"
#include "train/text_file.h"
#include "train/vocabulary.h"

namespace wengert::train {
namespace {

// On the heap, behind the interface.
template <class T>
absl::StatusOr<std::unique_ptr<Tokenizer>> Boxed(absl::StatusOr<T> tokenizer) {
  if (!tokenizer.ok()) return tokenizer.status();
  return std::make_unique<T>(*std::move(tokenizer));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(
    const std::string& path) {
  if (!absl::EndsWith(path, ".json")) return Boxed(Vocabulary::Load(path));
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  return ParseTokenizer(file->text(), path);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> ParseTokenizer(
    absl::string_view json, const std::string& path) {
  auto parts = internal::ParseTokenizerJson(json, path);
  if (!parts.ok()) return parts.status();
  auto tokenizer = parts->characters
                       ? Boxed(CharacterTokenizer::FromParts(*parts))
                       : Boxed(BytePairTokenizer::FromParts(*parts));
  if (tokenizer.ok()) return tokenizer;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", tokenizer.status().message()));
}

absl::Status TableTokenizer::Add(const std::string& token, bool special) {
  if (token.empty()) return absl::InvalidArgumentError("a token is empty");
  const auto [found, inserted] = ids_.try_emplace(token, size());
  if (!inserted) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token ", Quoted(token), " stands twice, as ids ",
                     found->second, " and ", size()));
  }
  tokens_.push_back(token);
  special_.push_back(special);
  return absl::OkStatus();
}

absl::Status TableTokenizer::AddSpecial(absl::Span<const std::string> names) {
  for (const std::string& name : names) {
    const absl::Status status = Add(name, /*special=*/true);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status TableTokenizer::SaveParts(const std::string& path,
                                       internal::TokenizerParts parts) const {
  for (int64_t id = 0; id < size(); ++id) {
    parts.tokens.push_back({tokens_[id], special_[id]});
  }
  const auto json = internal::PrintTokenizerJson(parts);
  if (json.ok()) return WriteFile(path, *json);
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", json.status().message()));
}

const std::string& TableTokenizer::Token(int64_t id) const {
  if (id < 0 || id >= size()) {
    throw Error(absl::StrCat("Tokenizer: id ", id, " is outside a table of ",
                             size(), " tokens"));
  }
  return tokens_[id];
}

std::string TableTokenizer::Decode(absl::Span<const int64_t> ids) const {
  std::string text;
  for (const int64_t id : ids) text += Token(id);
  return text;
}

absl::StatusOr<int64_t> TableTokenizer::Id(absl::string_view token) const {
  const auto found = ids_.find(token);
  if (found != ids_.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("there is no token ", Quoted(token)));
}

}  // namespace wengert::train
