// The lines of a text file of any size, by their index: the text stays in the
// file, and the index takes a quarter of a byte for each line.
#ifndef WENGERT_TRAIN_LINE_FILE_H_
#define WENGERT_TRAIN_LINE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "train/mapped_file.h"
#include "train/text_file.h"

namespace wengert::train {

// A file that changes meanwhile gives other lines, but none beyond its end.
class LineFile {
 public:
  // Whether a line is one of those that count, or what is wrong with it.
  using Filter = absl::StatusOr<bool> (*)(const std::string& path,
                                          const Line& line);
  static absl::StatusOr<bool> TakeAll(const std::string&, const Line&) {
    return true;
  }

  // Reads the file once. Errors: those of ReadLines and of the filter.
  static absl::StatusOr<LineFile> Open(const std::string& path,
                                       Filter filter = TakeAll);

  const std::string& path() const { return file_.path(); }
  int64_t size() const { return size_; }            // lines that count
  int64_t last_line() const { return last_line_; }  // number of the file's last
  // Throws Error unless 0 <= i < size().
  Line operator[](int64_t i) const;

 private:
  LineFile(MappedFile file, Filter filter)
      : file_(std::move(file)), filter_(filter) {}

  struct Place {
    size_t offset;
    int64_t number;
  };
  static constexpr int64_t kStride = 64;

  MappedFile file_;
  Filter filter_;
  int64_t size_ = 0;
  int64_t last_line_ = 0;
  std::vector<Place> places_;  // of the lines 0, kStride, 2 kStride, ...
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_LINE_FILE_H_
