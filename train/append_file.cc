#include "train/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wengert::train {
namespace {

absl::Status CannotWrite(const std::string& path, int number) {
  return absl::ErrnoToStatus(number, absl::StrCat(path, ": cannot be written"));
}

}  // namespace

absl::StatusOr<AppendFile> AppendFile::Open(const std::string& path,
                                            int64_t size) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return CannotWrite(path, errno);
  AppendFile file(path, fd, size);
  struct stat now;
  if (fstat(fd, &now) != 0) return CannotWrite(path, errno);
  file.size_ = std::min<int64_t>(size, now.st_size);
  if (ftruncate(fd, file.size_) != 0) return CannotWrite(path, errno);
  return file;
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      torn_(other.torn_) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  std::swap(torn_, other.torn_);
  return *this;
}

AppendFile::~AppendFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status AppendFile::Append(absl::string_view record) {
  struct stat now;
  if (fstat(fd_, &now) != 0) return CannotWrite(path_, errno);
  if (now.st_nlink == 0) return CannotWrite(path_, ENOENT);
  if (torn_ && ftruncate(fd_, size_) != 0) return CannotWrite(path_, errno);
  torn_ = true;
  for (absl::string_view rest = record; !rest.empty();) {
    const ssize_t n = write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int number = errno;
      torn_ = ftruncate(fd_, size_) != 0;
      return CannotWrite(path_, number);
    }
    rest.remove_prefix(n);
  }
  torn_ = false;
  size_ += static_cast<int64_t>(record.size());
  return absl::OkStatus();
}

}  // namespace wengert::train
