// Any bytes are arrays or an error of one line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "train/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto tensors = wengert::train::ParseNpz({data, size}, "input");
  if (!tensors.ok() &&
      tensors.status().message().find('\n') != absl::string_view::npos) {
    abort();
  }
  return 0;
}
