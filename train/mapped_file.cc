#include "train/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace wengert::train {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const auto error = [&](int number) {
    return absl::ErrnoToStatus(number, absl::StrCat(path, ": cannot be read"));
  };
  // Non-blocking, for a pipe would wait for its other end.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return error(errno);
  struct stat info;
  const bool known = fstat(fd, &info) == 0;
  const bool regular = known && S_ISREG(info.st_mode);
  const size_t size = regular ? static_cast<size_t>(info.st_size) : 0;
  void* const bytes =
      size > 0 ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0) : nullptr;
  const int number = errno;
  close(fd);
  if (!known || bytes == MAP_FAILED) return error(number);
  if (S_ISDIR(info.st_mode)) return error(EISDIR);
  if (!regular) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is no regular file"));
  }
  std::shared_ptr<const uint8_t> data(static_cast<const uint8_t*>(bytes),
                                      [size](const uint8_t* p) {
                                        if (p != nullptr)
                                          munmap(const_cast<uint8_t*>(p), size);
                                      });
  return MappedFile(path, std::move(data), size);
}

void MappedFile::SetReadAhead(bool on) const {
  if (size_ == 0) return;
  // Advice: what the system makes of it changes no byte.
  madvise(const_cast<uint8_t*>(data_.get()), size_,
          on ? MADV_NORMAL : MADV_RANDOM);
}

}  // namespace wengert::train
