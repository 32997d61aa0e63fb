// GPT-2's splitting of text into words.
#include <utf8proc.h>

#include "absl/strings/match.h"
#include "train/byte_pair.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

enum class Kind { kLetter, kNumber, kSpace, kOther };

Kind KindOf(int32_t c) {
  if ((c >= '\t' && c <= '\r') || c == 0x85) return Kind::kSpace;
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return Kind::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return Kind::kNumber;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return Kind::kSpace;
    default:
      return Kind::kOther;
  }
}

struct Character {
  Kind kind = Kind::kOther;
  size_t length = 0;  // 0 at the text's end
};

Character First(absl::string_view text) {
  if (text.empty()) return {};
  const size_t length = Utf8Length(text);
  if (length == 0) return {Kind::kOther, 1};
  int32_t c;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(length), &c);
  return {KindOf(c), length};
}

// Bytes of the characters of one kind that stand at `begin`.
size_t RunLength(absl::string_view text, size_t begin, Kind kind) {
  size_t end = begin;
  for (Character c; (c = First(text.substr(end))).length > 0; end += c.length) {
    if (c.kind != kind) break;
  }
  return end - begin;
}

size_t WordLength(absl::string_view text) {
  for (const char* ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (absl::StartsWith(text, ending)) return absl::string_view(ending).size();
  }
  const size_t space = text[0] == ' ' ? 1 : 0;
  const Character c = First(text.substr(space));
  if (c.length > 0 && c.kind != Kind::kSpace) {
    return space + RunLength(text, space, c.kind);
  }
  // White space: its last character stays for the word that follows.
  size_t length = 0, last = 0;
  for (Character next; (next = First(text.substr(length))).length > 0;) {
    if (next.kind != Kind::kSpace) return last > 0 ? last : length;
    last = length;
    length += next.length;
  }
  return length;
}

}  // namespace

std::vector<absl::string_view> SplitForBytePairs(absl::string_view text) {
  std::vector<absl::string_view> words;
  while (!text.empty()) {
    words.push_back(text.substr(0, WordLength(text)));
    text.remove_prefix(words.back().size());
  }
  return words;
}

}  // namespace wengert::train
