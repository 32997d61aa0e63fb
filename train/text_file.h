// Text from files, checked: lines that are known to be UTF-8 and know where
// they stood, so that whoever finds a fault in one can name file, line and
// column.
#ifndef WENGERT_TRAIN_TEXT_FILE_H_
#define WENGERT_TRAIN_TEXT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace wengert::train {

// May stand at the beginning of a file, where it is no part of the text.
inline constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";

// The lines of a UTF-8 file without their ends (\n or \r\n) and without a
// byte-order mark; element i is line i + 1. Errors: a file that cannot be read,
// an empty one, bytes that are not UTF-8, and what is no regular file, such as
// a pipe, which may have no end.
absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path);

// Those of a file with this text.
absl::StatusOr<std::vector<std::string>> SplitLines(absl::string_view text,
                                                    const std::string& path);

struct Line {
  absl::string_view text;  // without its end
  int64_t number = 0;      // from 1
};

// Calls f for each line of a file's text, until one is an error or not UTF-8.
absl::Status ForEachLine(absl::string_view text, const std::string& path,
                         absl::FunctionRef<absl::Status(const Line&)> f);

// Takes the first line off `rest`, which is not empty, and returns it without
// its end.
absl::string_view TakeLine(absl::string_view& rest);

// Writes the file whole or leaves what was there; see FileWriter.
absl::Status WriteFile(const std::string& path, absl::string_view text);

// InvalidArgument "path:line:column: what". Lines and columns count from 1,
// columns in characters.
absl::Status ErrorAt(absl::string_view path, int64_t line, int64_t column,
                     absl::string_view what);

// Bytes of the well-formed UTF-8 character that text begins with; 0 if there is
// none (RFC 3629: no surrogates, no overlong forms).
size_t Utf8Length(absl::string_view text);

// Number of characters; a byte that is not UTF-8 counts as one.
int64_t CountCharacters(absl::string_view text);

// The words of text, as they stand between ASCII white space.
std::vector<absl::string_view> SplitWords(absl::string_view text);

// The text with U+FFFD for control characters and for bytes that are not UTF-8:
// safe to print in a terminal and to put into XML.
std::string Printable(absl::string_view text);

// Printable text in quotes for a message, cut where it is long.
std::string Quoted(absl::string_view text);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_TEXT_FILE_H_
