#include "train/tokenizer_json.h"

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "train/text_file.h"

namespace wengert::train::internal {
namespace {

using Json = nlohmann::ordered_json;

// The format writes bytes as characters that can be seen (GPT-2's table): the
// printable ones of Latin-1 stand for themselves, the others, in order, for
// U+0100 and up.
const std::array<std::string, 256>& ByteCharacters() {
  static const auto* const table = [] {
    auto* characters = new std::array<std::string, 256>;
    unsigned next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool seen = (byte >= '!' && byte <= '~') ||
                        (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const unsigned c = seen ? byte : next++;
      std::string& text = (*characters)[byte];
      if (c < 0x80) {
        text = {static_cast<char>(c)};
      } else {
        text = {static_cast<char>(0xC0 | c >> 6),
                static_cast<char>(0x80 | (c & 0x3F))};
      }
    }
    return characters;
  }();
  return *table;
}

std::string ToCharacters(absl::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += ByteCharacters()[static_cast<uint8_t>(c)];
  return text;
}

// nullopt where a character stands for no byte.
std::optional<std::string> ToBytes(absl::string_view text) {
  static const auto* const table = [] {
    auto* bytes = new std::map<absl::string_view, char>;
    for (int byte = 0; byte < 256; ++byte) {
      bytes->emplace(ByteCharacters()[byte], static_cast<char>(byte));
    }
    return bytes;
  }();
  std::string bytes;
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const auto found = table->find(text.substr(0, length));
    if (found == table->end()) return std::nullopt;
    bytes.push_back(found->second);
    text.remove_prefix(length);
  }
  return bytes;
}

absl::Status Fault(const std::string& path, absl::string_view place,
                   absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", place, ": ", what));
}

absl::StatusOr<Json> ParseJson(absl::string_view text,
                               const std::string& path) {
  const auto error_at = [&](size_t offset, absl::string_view what) {
    const absl::string_view before = text.substr(0, offset);
    int64_t line = 1;
    for (const char c : before) line += c == '\n';
    const size_t begin = before.rfind('\n') + 1;  // 0 where there is none
    return ErrorAt(path, line, CountCharacters(before.substr(begin)) + 1, what);
  };
  // Where the parser would take the text for ended.
  const size_t nul = text.find('\0');
  if (nul != text.npos) return error_at(nul, "a byte is 0");
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& e) {
    absl::string_view message = e.what();
    const size_t colon = message.find(": ");
    if (colon != message.npos) message.remove_prefix(colon + 2);
    // Behind it stands a token, which may be most of the file.
    message = message.substr(0, message.find("; last read: "));
    return error_at(e.byte > 0 ? e.byte - 1 : 0, Printable(message));
  } catch (const Json::exception& e) {  // a number that no double can hold
    return Fault(path, "no JSON", Printable(e.what()));
  }
}

// json[key], or null where there is none or json is no object.
const Json& Get(const Json& json, const char* key) {
  static const Json* const null = new Json;
  if (!json.is_object()) return *null;
  const auto found = json.find(key);
  return found == json.end() ? *null : *found;
}

bool IsString(const Json& json, absl::string_view text) {
  return json.is_string() && json.get_ref<const std::string&>() == text;
}

// Reads the parts out of the file's JSON.
class Reader {
 public:
  Reader(const Json& json, const std::string& path)
      : json_(json), model_(Get(json, "model")), path_(path) {}

  absl::StatusOr<TokenizerParts> Read() {
    for (absl::Status (Reader::*step)() :
         {&Reader::ReadKind, &Reader::ReadSpecial, &Reader::ReadVocab,
          &Reader::ReadRest}) {
      const absl::Status status = (this->*step)();
      if (!status.ok()) return status;
    }
    return std::move(parts_);
  }

 private:
  absl::Status Fail(absl::string_view place, absl::string_view what) const {
    return Fault(path_, place, what);
  }

  absl::Status ReadKind() {
    if (!model_.is_object()) return Fail("model", "wanted an object");
    const Json& type = Get(model_, "type");
    parts_.characters = IsString(type, "WordLevel");
    if (!parts_.characters && !IsString(type, "BPE") &&
        !(type.is_null() && Get(model_, "merges").is_array())) {
      return Fail("model.type", "wanted BPE or WordLevel");
    }
    if (!Get(json_, "normalizer").is_null()) {
      return Fail("normalizer", "wanted null");
    }
    const Json& splitting = Get(json_, "pre_tokenizer");
    if (parts_.characters) {
      if (!IsString(Get(splitting, "type"), "Split") ||
          !IsString(Get(Get(splitting, "pattern"), "Regex"), kAnyCharacter) ||
          !IsString(Get(splitting, "behavior"), "Isolated")) {
        return Fail("pre_tokenizer",
                    absl::StrCat("wanted Split, Isolated, by the Regex ",
                                 kAnyCharacter));
      }
      return absl::OkStatus();
    }
    if (!IsString(Get(splitting, "type"), "ByteLevel") ||
        Get(splitting, "use_regex") == false) {
      return Fail("pre_tokenizer", "wanted ByteLevel, with use_regex");
    }
    if (Get(splitting, "add_prefix_space") != false) {
      return Fail("pre_tokenizer.add_prefix_space", "wanted false");
    }
    for (const char* option :
         {"continuing_subword_prefix", "end_of_word_suffix", "unk_token",
          "dropout", "byte_fallback", "ignore_merges"}) {
      const Json& value = Get(model_, option);
      if (!value.is_null() && value != "" && value != false && value != 0) {
        return Fail(absl::StrCat("model.", option), "wanted none");
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadSpecial() {
    const Json& added = Get(json_, "added_tokens");
    if (added.is_null()) return absl::OkStatus();
    if (!added.is_array()) return Fail("added_tokens", "wanted an array");
    for (size_t i = 0; i < added.size(); ++i) {
      const std::string place = absl::StrCat("added_tokens[", i, "]");
      const Json& content = Get(added[i], "content");
      if (!content.is_string()) {
        return Fail(place, "wanted a string \"content\"");
      }
      const std::string& name = content.get_ref<const std::string&>();
      const absl::Status status = Place(Get(added[i], "id"), place, name, true);
      if (!status.ok()) return status;
      if (!special_.emplace(name, Get(added[i], "id").get<int64_t>()).second) {
        return Fail(place, absl::StrCat(Quoted(name), " stands twice"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadVocab() {
    const Json& vocab = Get(model_, "vocab");
    if (!vocab.is_object()) return Fail("model.vocab", "wanted an object");
    for (const auto& [text, id] : vocab.items()) {
      const std::string place = absl::StrCat("model.vocab[", Quoted(text), "]");
      const auto special = special_.find(text);
      if (special != special_.end()) {
        if (id == special->second) continue;
        return Fail(place, absl::StrCat("wanted the id of added_tokens, ",
                                        special->second));
      }
      const auto bytes =
          parts_.characters ? std::optional(text) : ToBytes(text);
      if (!bytes) return Fail(place, "a character stands for no byte");
      const absl::Status status = Place(id, place, *bytes, false);
      if (!status.ok()) return status;
    }
    // No id is beyond as many tokens as the file has.
    for (auto& [id, token] : by_id_) {
      if (id != static_cast<int64_t>(parts_.tokens.size())) {
        return Fail("model.vocab",
                    absl::StrCat("no token has the id ", parts_.tokens.size()));
      }
      parts_.tokens.push_back(std::move(token));
    }
    return absl::OkStatus();
  }

  // Notes a token under its id.
  absl::Status Place(const Json& id, const std::string& place,
                     const std::string& text, bool special) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > kLastId) {
      return Fail(place, "wanted an id, a whole number from 0 on");
    }
    if (!by_id_.emplace(id.get<int64_t>(), TokenizerParts::Token{text, special})
             .second) {
      return Fail(place,
                  absl::StrCat("another token has the id ", id.get<int64_t>()));
    }
    return absl::OkStatus();
  }

  absl::Status ReadRest() {
    if (parts_.characters) {
      const Json& unknown = Get(model_, "unk_token");
      if (unknown.is_string()) parts_.unknown = unknown.get<std::string>();
      return absl::OkStatus();
    }
    const Json& merges = Get(model_, "merges");
    if (!merges.is_array()) return Fail("model.merges", "wanted an array");
    for (size_t i = 0; i < merges.size(); ++i) {
      std::optional<std::string> left, right;
      const Json& merge = merges[i];
      if (merge.is_string()) {
        const absl::string_view text = merge.get_ref<const std::string&>();
        const size_t space = text.find(' ');
        left = ToBytes(text.substr(0, space));
        if (space != text.npos) right = ToBytes(text.substr(space + 1));
      } else if (merge.is_array() && merge.size() == 2 &&
                 merge[0].is_string() && merge[1].is_string()) {
        left = ToBytes(merge[0].get_ref<const std::string&>());
        right = ToBytes(merge[1].get_ref<const std::string&>());
      }
      if (!left || !right) {
        return Fail(absl::StrCat("model.merges[", i, "]"),
                    "wanted two tokens, \"a b\" or [\"a\", \"b\"]");
      }
      parts_.merges.emplace_back(*std::move(left), *std::move(right));
    }
    return absl::OkStatus();
  }

  static constexpr uint64_t kLastId = 0x7FFFFFFE;

 public:
  static constexpr char kAnyCharacter[] = "[\\s\\S]";

 private:
  const Json& json_;
  const Json& model_;
  const std::string& path_;
  TokenizerParts parts_;
  std::map<std::string, int64_t> special_;
  std::map<int64_t, TokenizerParts::Token> by_id_;
};

}  // namespace

absl::StatusOr<TokenizerParts> ParseTokenizerJson(absl::string_view json,
                                                  const std::string& path) {
  const auto parsed = ParseJson(json, path);
  if (!parsed.ok()) return parsed.status();
  return Reader(*parsed, path).Read();
}

absl::StatusOr<std::string> PrintTokenizerJson(const TokenizerParts& parts) {
  Json added = Json::array(), vocab = Json::object(), merges = Json::array();
  for (size_t id = 0; id < parts.tokens.size(); ++id) {
    const auto& [text, special] = parts.tokens[id];
    const std::string key =
        special || parts.characters ? text : ToCharacters(text);
    if (vocab.contains(key)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the file's format has one name for two tokens, ", Quoted(key)));
    }
    vocab[key] = id;
    if (special) {
      added.push_back({{"id", id},
                       {"content", text},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
    }
  }
  for (const auto& [left, right] : parts.merges) {
    merges.push_back(Json::array({ToCharacters(left), ToCharacters(right)}));
  }
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", true}};
  const Json any_character = {{"type", "Split"},
                              {"pattern", {{"Regex", Reader::kAnyCharacter}}},
                              {"behavior", "Isolated"},
                              {"invert", false}};
  const Json byte_pair = {{"type", "BPE"},
                          {"dropout", nullptr},
                          {"unk_token", nullptr},
                          {"continuing_subword_prefix", nullptr},
                          {"end_of_word_suffix", nullptr},
                          {"fuse_unk", false},
                          {"byte_fallback", false},
                          {"ignore_merges", false},
                          {"vocab", vocab},
                          {"merges", merges}};
  const Json word_level = {
      {"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", parts.unknown}};
  const Json file = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer", parts.characters ? any_character : byte_level},
      {"post_processor", nullptr},
      {"decoder", parts.characters ? Json{{"type", "Fuse"}} : byte_level},
      {"model", parts.characters ? word_level : byte_pair}};
  try {
    return absl::StrCat(file.dump(1), "\n");
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError("a special token is not UTF-8");
  }
}

}  // namespace wengert::train::internal
