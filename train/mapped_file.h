// A file's bytes, mapped into memory: reading touches no more of the file than
// is looked at, and the system takes the memory back when it needs it.
#ifndef WENGERT_TRAIN_MAPPED_FILE_H_
#define WENGERT_TRAIN_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace wengert::train {

// Copies share the mapping. Whoever truncates the file meanwhile ends the
// process; FileWriter replaces a file without doing so.
class MappedFile {
 public:
  // Regular files alone: a device or a pipe may have no end. Errors, of one
  // line: "path: cannot be read: why", "path: is no regular file".
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  absl::Span<const uint8_t> bytes() const { return {data_.get(), size_}; }
  absl::string_view text() const {
    return {reinterpret_cast<const char*>(data_.get()), size_};
  }

  // Whether the system should read on behind what is looked at, as it does at
  // first: not for parts here and there of a file larger than memory.
  void SetReadAhead(bool on) const;

 private:
  MappedFile(std::string path, std::shared_ptr<const uint8_t> data, size_t size)
      : path_(std::move(path)), data_(std::move(data)), size_(size) {}

  std::string path_;
  std::shared_ptr<const uint8_t> data_;
  size_t size_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_MAPPED_FILE_H_
