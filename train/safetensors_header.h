// The JSON in front of a safetensors file, apart from the bytes it speaks of.
#ifndef WENGERT_TRAIN_SAFETENSORS_HEADER_H_
#define WENGERT_TRAIN_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "train/safetensors.h"

namespace wengert::train::internal {

// The largest header that readers of the format accept.
inline constexpr uint64_t kMaxHeaderSize = 100'000'000;

struct HeaderEntry {
  std::string name;
  ElementType type;
  std::vector<int64_t> dims;
  uint64_t begin, end;  // in the bytes behind the header
};

struct SafetensorsHeader {
  SafetensorsFile::Metadata metadata;
  std::vector<HeaderEntry> entries;  // in the order of the text
};

// InvalidArgument, without the file's name, for what is no such header.
// Whether its numbers fit each other is for the caller to see.
absl::Status ParseHeader(absl::string_view json, SafetensorsHeader& header);

// The text of a header, entries in the order given, padded with spaces to a
// multiple of 8 bytes. InvalidArgument for the same name twice and for text
// that is not UTF-8.
absl::StatusOr<std::string> PrintHeader(const SafetensorsHeader& header);

}  // namespace wengert::train::internal

#endif  // WENGERT_TRAIN_SAFETENSORS_HEADER_H_
