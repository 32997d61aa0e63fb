// Any text is a vocabulary or an error with its place. A vocabulary that is
// written down again is the same, and gives each word its id.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "train/place_fuzz.h"
#include "train/vocabulary.h"

namespace wengert::train {
namespace {

void Check(absl::string_view text) {
  Tokenize(text);
  const auto vocabulary = Vocabulary::Parse(text, "input");
  if (!vocabulary.ok()) return CheckPlace(vocabulary.status(), "input", text);
  std::string lines;
  for (int64_t id = 0; id < vocabulary->size(); ++id) {
    const std::string& word = vocabulary->Word(id);
    if (*vocabulary->Id(word) != id) abort();
    const auto unknown = vocabulary->Id(absl::StrCat(word, " "));
    if (unknown.ok() ||
        unknown.status().message().find('\n') != absl::string_view::npos) {
      abort();
    }
    absl::StrAppend(&lines, word, "\n");
  }
  // A first word may begin with a byte-order mark.
  const auto again =
      Vocabulary::Parse(absl::StrCat(kByteOrderMark, lines), "again");
  if (!again.ok() || again->size() != vocabulary->size()) abort();
  for (int64_t id = 0; id < again->size(); ++id) {
    if (again->Word(id) != vocabulary->Word(id)) abort();
  }
}

}  // namespace
}  // namespace wengert::train

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  wengert::train::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
