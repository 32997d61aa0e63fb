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

// In memory where there is such a folder, for each input is a file.
const std::string& Folder() {
  static const std::string folder = [] {
    const std::string shared = "/dev/shm";
    const std::string path =
        absl::StrCat(std::filesystem::exists(shared)
                         ? shared
                         : std::filesystem::temp_directory_path().string(),
                     "/metrics_log_fuzz.", getpid());
    std::filesystem::create_directories(path);
    std::atexit([] { std::filesystem::remove_all(Folder()); });
    return path;
  }();
  return folder;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void Check(const std::string& text, int64_t last_step) {
  const std::string csv = Folder() + "/csv", jsonl = Folder() + "/jsonl";
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
