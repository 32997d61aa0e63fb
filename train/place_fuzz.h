// What the fuzz targets of text files share.
#ifndef WENGERT_TRAIN_PLACE_FUZZ_H_
#define WENGERT_TRAIN_PLACE_FUZZ_H_

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "train/text_file.h"

namespace wengert::train {

// Aborts unless the status is an error of one line, "path:line:column: what",
// whose place is in the text or at the end of a line of it.
inline void CheckPlace(const absl::Status& status, absl::string_view path,
                       absl::string_view text) {
  absl::string_view message = status.message();
  if (message.find('\n') != message.npos) abort();
  if (!absl::ConsumePrefix(&message, path)) abort();
  const std::vector<absl::string_view> parts = absl::StrSplit(message, ':');
  int64_t line, column;
  if (parts.size() < 4 || !absl::SimpleAtoi(parts[1], &line) ||
      !absl::SimpleAtoi(parts[2], &column)) {
    abort();
  }
  absl::ConsumePrefix(&text, kByteOrderMark);
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (line < 1 || line > static_cast<int64_t>(lines.size())) abort();
  if (column < 1 || column > CountCharacters(lines[line - 1]) + 1) abort();
}

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_PLACE_FUZZ_H_
