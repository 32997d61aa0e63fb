#include "train/line_file.h"

#include "absl/strings/str_cat.h"
#include "autograd/error.h"

namespace wengert::train {

absl::StatusOr<LineFile> LineFile::Open(const std::string& path,
                                        Filter filter) {
  auto file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  LineFile lines(*std::move(file), filter);
  const char* const begin = lines.file_.text().data();
  const absl::Status status =
      ForEachLine(lines.file_.text(), path, [&](const Line& line) {
        lines.last_line_ = line.number;
        const auto counts = filter(path, line);
        if (!counts.ok()) return counts.status();
        if (*counts && lines.size_++ % kStride == 0) {
          lines.places_.push_back(
              {static_cast<size_t>(line.text.data() - begin), line.number});
        }
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return lines;
}

Line LineFile::operator[](int64_t i) const {
  if (i < 0 || i >= size_) {
    throw Error(
        absl::StrCat("LineFile: line ", i, " of ", size_, " in ", path()));
  }
  const Place& place = places_[i / kStride];
  absl::string_view rest = file_.text().substr(place.offset);
  int64_t left = i % kStride;
  for (int64_t number = place.number; !rest.empty(); ++number) {
    const Line line{TakeLine(rest), number};
    const auto counts = filter_(path(), line);
    if (counts.ok() && *counts && left-- == 0) return line;
  }
  throw Error(absl::StrCat("LineFile: ", path(), " has changed"));
}

}  // namespace wengert::train
