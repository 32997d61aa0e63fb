#include "train/npz.h"

#include <zip.h>

#include <algorithm>
#include <cstddef>
#include <list>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "train/file_writer.h"
#include "train/mapped_file.h"
#include "train/npy.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

struct Free {
  void operator()(zip_t* zip) const { zip_discard(zip); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using Archive = std::unique_ptr<zip_t, Free>;
using Source = std::unique_ptr<zip_source_t, Free>;

// libzip's words for what it met.
std::string Text(zip_error_t* error) {
  return Printable(zip_error_strerror(error));
}
class Reason {
 public:
  Reason() { zip_error_init(&error_); }
  ~Reason() { zip_error_fini(&error_); }
  Reason(const Reason&) = delete;
  zip_error_t* get() { return &error_; }

 private:
  zip_error_t error_;
};

// An archive without entries, which libzip does not write.
constexpr char kEmpty[22] = {'P', 'K', 5, 6};

// All that the entry unpacks to.
absl::StatusOr<std::vector<uint8_t>> ReadEntry(zip_t* zip, uint64_t index) {
  const std::unique_ptr<zip_file_t, Free> file(zip_fopen_index(zip, index, 0));
  if (file == nullptr) {
    return absl::InvalidArgumentError(Text(zip_get_error(zip)));
  }
  std::vector<uint8_t> bytes;
  size_t size = 0;
  while (true) {
    bytes.resize(size + std::max<size_t>(size / 2, 1 << 12));
    const int64_t n =
        zip_fread(file.get(), bytes.data() + size, bytes.size() - size);
    if (n < 0) {
      return absl::InvalidArgumentError(Text(zip_file_get_error(file.get())));
    }
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> LoadNpz(const std::string& path) {
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  return ParseNpz(file->bytes(), path);
}

absl::StatusOr<std::vector<NamedTensor>> ParseNpz(
    absl::Span<const uint8_t> bytes, const std::string& path) {
  const auto error = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", what...));
  };
  if (bytes.empty()) return error("is no zip archive: it is empty");
  Reason reason;
  Source source(
      zip_source_buffer_create(bytes.data(), bytes.size(), 0, reason.get()));
  Archive zip(source == nullptr ? nullptr
                                : zip_open_from_source(source.get(), ZIP_RDONLY,
                                                       reason.get()));
  if (zip == nullptr) {
    return error("is no zip archive: ", Text(reason.get()));
  }
  source.release();  // the archive's own now
  std::vector<NamedTensor> tensors;
  std::set<std::string> names;
  const int64_t n = zip_get_num_entries(zip.get(), 0);
  for (int64_t i = 0; i < n; ++i) {
    const char* const raw = zip_get_name(zip.get(), i, ZIP_FL_ENC_GUESS);
    const std::string entry = raw ? raw : "";
    absl::string_view name = entry;
    if (!absl::ConsumeSuffix(&name, ".npy") || name.empty()) {
      return error("the entry ", Quoted(entry), " is no .npy file");
    }
    if (!names.emplace(name).second) {
      return error("the entry ", Quoted(entry), " stands twice");
    }
    const auto contents = ReadEntry(zip.get(), i);
    if (!contents.ok()) {
      return error(Printable(entry), ": ", contents.status().message());
    }
    auto tensor =
        ParseNpy(*contents, absl::StrCat(path, ": ", Printable(entry)));
    if (!tensor.ok()) return tensor.status();
    tensors.push_back({std::string(name), *std::move(tensor)});
  }
  return tensors;
}

absl::Status SaveNpz(const std::string& path,
                     absl::Span<const NamedTensor> tensors,
                     NpzOptions options) {
  const auto error = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", what...));
  };
  if (tensors.empty()) return WriteFile(path, {kEmpty, sizeof(kEmpty)});
  Reason reason;
  const Source archive(zip_source_buffer_create(nullptr, 0, 0, reason.get()));
  if (archive == nullptr) return error(Text(reason.get()));
  zip_source_keep(archive.get());  // what zip_close writes stays readable
  Archive zip(zip_open_from_source(archive.get(), ZIP_TRUNCATE, reason.get()));
  if (zip == nullptr) {
    zip_source_free(archive.get());
    return error(Text(reason.get()));
  }
  std::list<std::string> headers;  // which libzip reads when it closes
  std::set<std::string> names;
  for (const NamedTensor& x : tensors) {
    if (x.name.empty() || !names.insert(x.name).second) {
      return error("the name ", Quoted(x.name), " is empty or stands twice");
    }
    if (x.name.find('\0') != std::string::npos) {
      return error("the name ", Quoted(x.name), " has a zero byte");
    }
    const std::string& header = headers.emplace_back(NpyHeader(x.tensor));
    const absl::Span<const uint8_t> bytes = ElementBytes(x.tensor);
    auto* const data = const_cast<uint8_t*>(bytes.data());  // libzip reads it
    zip_buffer_fragment_t parts[] = {
        {reinterpret_cast<zip_uint8_t*>(const_cast<char*>(header.data())),
         header.size()},
        {data, bytes.size()}};
    zip_source_t* const source =
        zip_source_buffer_fragment(zip.get(), parts, bytes.empty() ? 1 : 2, 0);
    const std::string entry = absl::StrCat(x.name, ".npy");
    const int64_t index =
        source == nullptr
            ? -1
            : zip_file_add(zip.get(), entry.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      return error("the name ", Quoted(x.name), ": ",
                   Text(zip_get_error(zip.get())));
    }
    zip_set_file_compression(
        zip.get(), index, options.compress ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
    // The first day that a zip archive knows, not the hour of writing.
    zip_file_set_dostime(zip.get(), index, 0, 1 << 5 | 1, 0);
  }
  if (zip_close(zip.get()) != 0) return error(Text(zip_get_error(zip.get())));
  zip.release();

  FileWriter file(path);
  char buffer[1 << 16];
  int64_t n = zip_source_open(archive.get());
  while (n == 0 &&
         (n = zip_source_read(archive.get(), buffer, sizeof(buffer))) > 0) {
    file.Write(buffer, static_cast<size_t>(n));
    n = 0;
  }
  if (n < 0) return error(Text(zip_source_error(archive.get())));
  return file.Commit();
}

}  // namespace wengert::train
