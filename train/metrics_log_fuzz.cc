// Any metrics.jsonl is opened or refused with the place. What is opened keeps
// the rows it had, as a beginning of the file, and a table with as many.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "train/metrics_log.h"
#include "train/place_fuzz.h"

namespace wengert::train {
namespace {

// A folder for the run, in memory where there is such a place.
class Folder {
 public:
  Folder() { std::filesystem::create_directories(path_); }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string File(const std::string& name) const { return path_ / name; }

 private:
  const std::filesystem::path path_ =
      (std::filesystem::exists("/dev/shm")
           ? std::filesystem::path("/dev/shm")
           : std::filesystem::temp_directory_path()) /
      absl::StrCat("metrics_log_fuzz.", getpid());
};

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void Check(const std::string& text, int64_t last_step) {
  static const Folder folder;
  const std::string csv = folder.File("csv"), jsonl = folder.File("jsonl");
  std::ofstream(jsonl, std::ios::binary) << text;
  auto log = MetricsLog::Open(csv, jsonl, last_step);
  if (!log.ok()) {
    if (Contents(jsonl) != text) abort();
    return CheckPlace(log.status(), jsonl, text);
  }
  const std::string rows = Contents(jsonl), table = Contents(csv);
  if (!absl::StartsWith(text, rows)) abort();
  if (std::count(rows.begin(), rows.end(), '\n') + 1 !=
      std::count(table.begin(), table.end(), '\n')) {
    abort();
  }
  log = MetricsLog::Open(csv, jsonl, last_step);
  if (!log.ok() || Contents(jsonl) != rows || Contents(csv) != table) abort();
}

}  // namespace
}  // namespace wengert::train

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  wengert::train::Check({reinterpret_cast<const char*>(data) + 1, size - 1},
                        data[0] == '*' ? INT64_MAX : data[0]);
  return 0;
}
