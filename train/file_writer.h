// A file that is written whole or not at all, also when the disk is full or the
// machine goes down.
#ifndef WENGERT_TRAIN_FILE_WRITER_H_
#define WENGERT_TRAIN_FILE_WRITER_H_

#include <cstddef>
#include <cstdio>
#include <string>

#include "absl/status/status.h"

namespace wengert::train {

// The bytes go to `path`.partial, which is flushed to the disk and then takes
// the name. Devices and pipes are written directly; through a symbolic link the
// file that it points to is replaced.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path);
  // Without Commit, what was written is dropped.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // Appends. After an error it does nothing; Commit reports it.
  void Write(const void* data, size_t bytes);
  // The first error there was, "path: cannot be written: why"; the old file is
  // then still there. To be called once, last.
  absl::Status Commit();

 private:
  void Check(bool good);
  void Close();

  const std::string path_;
  std::string target_;  // path_ with links followed; empty: written directly
  std::string name_;    // what is open
  std::FILE* file_ = nullptr;
  int error_ = 0;  // errno of the first error
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_FILE_WRITER_H_
