// Reading, checking and writing of text files.
#include "train/text_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "train/file_writer.h"

namespace wengert::train {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD
constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be read"));
  }
  std::string text;
  char buffer[1 << 14];
  size_t n;
  while ((n = std::fread(buffer, 1, sizeof(buffer), file)) > 0) {
    text.append(buffer, n);
  }
  const int error = std::ferror(file) ? errno : 0;
  std::fclose(file);
  if (error != 0) {
    return absl::ErrnoToStatus(error, absl::StrCat(path, ": cannot be read"));
  }
  return text;
}

// Length of the next piece of text that stands for one character.
size_t StepLength(absl::string_view text) {
  return std::max<size_t>(Utf8Length(text), 1);
}

// Neither a control character nor one that XML 1.0 forbids.
bool IsPrintable(absl::string_view character) {
  if (character.size() == 1) return !absl::ascii_iscntrl(character[0]);
  const bool c1_control = character >= "\xC2\x80" && character <= "\xC2\x9F";
  const bool noncharacter = character == "\xEF\xBF\xBE" ||  // U+FFFE
                            character == "\xEF\xBF\xBF";    // U+FFFF
  return !c1_control && !noncharacter;
}

}  // namespace

size_t Utf8Length(absl::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto continues = [&](size_t i, unsigned low = 0x80,
                             unsigned high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  if (text.empty()) return 0;
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool second = lead == 0xE0   ? continues(1, 0xA0)
                        : lead == 0xED ? continues(1, 0x80, 0x9F)
                                       : continues(1);
    return second && continues(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool second = lead == 0xF0   ? continues(1, 0x90)
                        : lead == 0xF4 ? continues(1, 0x80, 0x8F)
                                       : continues(1);
    return second && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

int64_t CountCharacters(absl::string_view text) {
  int64_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(StepLength(text));
  return count;
}

std::vector<absl::string_view> SplitWords(absl::string_view text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \t\n\v\f\r"),
                        absl::SkipEmpty());
}

std::string Printable(absl::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const bool keep = length > 0 && IsPrintable(text.substr(0, length));
    absl::StrAppend(&result, keep ? text.substr(0, length) : kReplacement);
    text.remove_prefix(StepLength(text));
  }
  return result;
}

std::string Quoted(absl::string_view text) {
  constexpr int kLongest = 40;
  absl::string_view rest = text;
  for (int i = 0; i < kLongest && !rest.empty(); ++i) {
    rest.remove_prefix(StepLength(rest));
  }
  return absl::StrCat("\"",
                      Printable(text.substr(0, text.size() - rest.size())),
                      rest.empty() ? "" : "...", "\"");
}

absl::Status ErrorAt(absl::string_view path, int64_t line, int64_t column,
                     absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ":", line, ":", column, ": ", what));
}

absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  absl::string_view rest = *text;
  absl::ConsumePrefix(&rest, kByteOrderMark);
  if (rest.empty()) return ErrorAt(path, 1, 1, "the file is empty");
  absl::ConsumeSuffix(&rest, "\n");  // ends the last line, begins no other
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(rest, '\n')) {
    absl::ConsumeSuffix(&line, "\r");
    for (absl::string_view tail = line; !tail.empty();) {
      const size_t length = Utf8Length(tail);
      if (length == 0) {
        const absl::string_view before =
            line.substr(0, line.size() - tail.size());
        return ErrorAt(path, static_cast<int64_t>(lines.size()) + 1,
                       CountCharacters(before) + 1,
                       absl::StrCat("the byte 0x", absl::Hex(uint8_t(tail[0])),
                                    " is not UTF-8"));
      }
      tail.remove_prefix(length);
    }
    lines.emplace_back(line);
  }
  return lines;
}

absl::Status WriteFile(const std::string& path, absl::string_view text) {
  FileWriter file(path);
  file.Write(text.data(), text.size());
  return file.Commit();
}

}  // namespace wengert::train
