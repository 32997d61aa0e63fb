// Any metadata is that of a checkpoint or has faults of one line each. What is
// read and written down again is the same. The input is keys and values in
// turn, each ended by a byte of zero.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "train/checkpoint_metadata.h"

namespace wengert::train::internal {
namespace {

void Check(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '\0');
  SafetensorsFile::Metadata metadata;
  for (size_t i = 0; i + 1 < parts.size(); i += 2) {
    metadata[parts[i]] = parts[i + 1];
  }
  std::vector<std::string> faults;
  const CheckpointMetadata checkpoint = ParseMetadata(metadata, faults);
  for (const std::string& fault : faults) {
    if (fault.find('\n') != fault.npos) abort();
  }
  if (!faults.empty()) return;
  const auto printed = PrintMetadata(checkpoint);
  if (!IsCheckpoint(metadata) || !IsCheckpoint(printed)) abort();
  const CheckpointMetadata again = ParseMetadata(printed, faults);
  if (!faults.empty() || PrintMetadata(again) != printed) abort();
}

}  // namespace
}  // namespace wengert::train::internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  wengert::train::internal::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
