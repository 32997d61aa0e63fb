// A log file that grows record by record and holds whole records only, also on
// a full disk and after the process was killed.
#ifndef WENGERT_TRAIN_APPEND_FILE_H_
#define WENGERT_TRAIN_APPEND_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace wengert::train {

class AppendFile {
 public:
  // Opens the file, or makes it, and cuts what it holds after `size` bytes.
  static absl::StatusOr<AppendFile> Open(const std::string& path, int64_t size);

  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  ~AppendFile();

  // Hands the whole record to the system, which has it then even if this
  // process is killed. After an error, such as a full disk or a file that was
  // removed, none of it is in the file, and the next call tries again.
  absl::Status Append(absl::string_view record);

 private:
  AppendFile(std::string path, int fd, int64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}

  std::string path_;
  int fd_ = -1;
  int64_t size_ = 0;   // of the whole records
  bool torn_ = false;  // there may be more in the file
};

// Lets the first of several failures in a row through, so that a log that
// cannot be written is reported once and training goes on.
class FirstFailure {
 public:
  absl::Status Of(absl::Status status) {
    const bool repeated = failing_ && !status.ok();
    failing_ = !status.ok();
    return repeated ? absl::OkStatus() : status;
  }

 private:
  bool failing_ = false;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_APPEND_FILE_H_
