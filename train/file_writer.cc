#include "train/file_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace wengert::train {
namespace {

namespace fs = std::filesystem;

// Makes a new name in the folder last. There are file systems that cannot.
bool FlushFolder(const fs::path& folder) {
  const int fd = open(folder.empty() ? "." : folder.c_str(),
                      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool good = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
  const int error = errno;
  close(fd);
  errno = error;
  return good;
}

}  // namespace

FileWriter::FileWriter(const std::string& path) : path_(path), name_(path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored) || fs::is_regular_file(path, ignored)) {
    target_ = fs::weakly_canonical(path, ignored).string();
    if (target_.empty()) target_ = path;
    name_ = absl::StrCat(target_, ".partial");
  }
  file_ = std::fopen(name_.c_str(), "wbe");
  Check(file_ != nullptr);
}

FileWriter::~FileWriter() { Close(); }

void FileWriter::Check(bool good) {
  if (!good && error_ == 0) error_ = errno != 0 ? errno : EIO;
}

void FileWriter::Write(const void* data, size_t bytes) {
  if (error_ == 0) Check(std::fwrite(data, 1, bytes, file_) == bytes);
}

// Drops what has not been committed.
void FileWriter::Close() {
  if (file_ == nullptr) return;
  Check(std::fclose(file_) == 0);
  file_ = nullptr;
  if (!target_.empty()) std::remove(name_.c_str());
}

absl::Status FileWriter::Commit() {
  if (error_ == 0) Check(std::fflush(file_) == 0);
  if (error_ == 0 && !target_.empty()) {
    Check(fsync(fileno(file_)) == 0);
    // The open file may be renamed: closing it reports nothing after fsync.
    if (error_ == 0) Check(std::rename(name_.c_str(), target_.c_str()) == 0);
    if (error_ == 0) {
      std::fclose(file_);
      file_ = nullptr;
      Check(FlushFolder(fs::path(target_).parent_path()));
    }
  }
  Close();
  if (error_ == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(error_,
                             absl::StrCat(path_, ": cannot be written"));
}

}  // namespace wengert::train
