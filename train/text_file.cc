// Reading, checking and writing of text files.
#include "train/text_file.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "train/file_writer.h"
#include "train/mapped_file.h"

namespace wengert::train {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

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

absl::Status CheckUtf8(const std::string& path, const Line& line) {
  absl::string_view rest = line.text;
  while (!rest.empty()) {
    // Most text is ASCII, and files may be large: eight bytes at once.
    uint64_t word;
    if (rest.size() >= sizeof(word)) {
      std::memcpy(&word, rest.data(), sizeof(word));
      if ((word & 0x8080808080808080) == 0) {
        rest.remove_prefix(sizeof(word));
        continue;
      }
    }
    const size_t length = Utf8Length(rest);
    if (length == 0) {
      const auto before = line.text.substr(0, line.text.size() - rest.size());
      return ErrorAt(path, line.number, CountCharacters(before) + 1,
                     absl::StrCat("the byte 0x", absl::Hex(uint8_t(rest[0])),
                                  " is not UTF-8"));
    }
    rest.remove_prefix(length);
  }
  return absl::OkStatus();
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

absl::string_view TakeLine(absl::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  absl::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  absl::ConsumeSuffix(&line, "\r");
  return line;
}

absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path) {
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  return SplitLines(file->text(), path);
}

absl::StatusOr<std::vector<std::string>> SplitLines(absl::string_view text,
                                                    const std::string& path) {
  std::vector<std::string> lines;
  const absl::Status status = ForEachLine(text, path, [&](const Line& line) {
    lines.emplace_back(line.text);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return lines;
}

absl::Status ForEachLine(absl::string_view text, const std::string& path,
                         absl::FunctionRef<absl::Status(const Line&)> f) {
  absl::ConsumePrefix(&text, kByteOrderMark);
  if (text.empty()) return ErrorAt(path, 1, 1, "the file is empty");
  for (int64_t number = 1; !text.empty(); ++number) {
    const Line line{TakeLine(text), number};
    absl::Status status = CheckUtf8(path, line);
    if (status.ok()) status = f(line);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status WriteFile(const std::string& path, absl::string_view text) {
  FileWriter file(path);
  file.Write(text.data(), text.size());
  return file.Commit();
}

}  // namespace wengert::train
