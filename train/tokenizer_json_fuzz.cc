// Any bytes are a tokeniser or an error of one line. A tokeniser gives text
// back as it was, and so does the one that is read from the file that it
// writes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "train/tokenizer.h"
#include "train/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using wengert::train::internal::ParseTokenizerJson;
  using wengert::train::internal::PrintTokenizerJson;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = wengert::train::ParseTokenizer(text, "input");
  if (!tokenizer.ok()) {
    if (tokenizer.status().message().find('\n') != text.npos) abort();
    return 0;
  }
  const auto ids = (*tokenizer)->Encode(text.substr(0, 1 << 12));
  const auto printed = PrintTokenizerJson(*ParseTokenizerJson(text, "input"));
  if (!printed.ok()) return 0;
  const auto again = wengert::train::ParseTokenizer(*printed, "again");
  if (!again.ok() || (*again)->size() != (*tokenizer)->size()) abort();
  if (!ids.ok()) return 0;
  if (*(*again)->Encode(text.substr(0, 1 << 12)) != *ids) abort();
  return 0;
}
