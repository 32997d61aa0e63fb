// Any bytes are a safetensors file or an error of one line, and what a file
// holds can be read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "train/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using wengert::DType;
  const auto file =
      wengert::train::SafetensorsFile::Parse({data, size}, "input");
  if (!file.ok()) {
    if (file.status().message().find('\n') != absl::string_view::npos) abort();
    return 0;
  }
  size_t total = 0;
  for (const auto& entry : file->entries()) {
    total += entry.bytes.size();
    if (file->Find(entry.name) != &entry) abort();
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32,
                              DType::kInt64, DType::kBool}) {
      if (!Converts(entry.type, dtype)) continue;
      std::vector<char> x(entry.shape.size() * wengert::ByteSize(dtype));
      CopyElements(entry, dtype, x.data());
    }
  }
  if (total > size) abort();
  return 0;
}
