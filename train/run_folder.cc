#include "train/run_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <thread>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "train/text_file.h"

namespace wengert::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The flags of the program by name, less those that Abseil itself defines.
// Numbers and bools are such in JSON too, unless JSON has no word for them.
Json Flags() {
  std::map<std::string, Json> flags;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (absl::StrContains(flag->Filename(), "absl/flags/")) continue;
    const std::string text = flag->CurrentValue();
    // Bytes that are not UTF-8 become U+FFFD, as JSON cannot hold them.
    Json value = Json::parse(
        Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
    if (!flag->IsOfType<std::string>()) {
      const Json parsed = Json::parse(text, nullptr, false);
      if (parsed.is_number() || parsed.is_boolean()) value = parsed;
    }
    flags.emplace(std::string(name), std::move(value));
  }
  return flags;
}

std::string Now() {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(),
                          absl::UTCTimeZone());
}

Json Machine() {
  std::string cpu = "unknown", line;
  for (std::ifstream info("/proc/cpuinfo"); std::getline(info, line);) {
    if (!absl::StartsWith(line, "model name")) continue;
    cpu = line.substr(line.find(':') + 1);
    absl::StripAsciiWhitespace(&cpu);
    break;
  }
#ifdef __clang__
  const std::string compiler = __VERSION__;
#else
  const std::string compiler = absl::StrCat("g++ ", __VERSION__);
#endif
  return {{"cpu", cpu},
          {"cores", std::thread::hardware_concurrency()},
          {"compiler", compiler}};
}

std::string Text(const Json& json) { return json.dump(2) + "\n"; }

}  // namespace

absl::StatusOr<std::unique_ptr<RunFolder>> RunFolder::Create(
    const std::string& path, uint64_t seed) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat(path, ": cannot be made"));
  }
  std::unique_ptr<RunFolder> run(new RunFolder(path));
  if (absl::Status status = run->Lock(); !status.ok()) return status;
  if (fs::exists(run->config(), error)) {
    return absl::AlreadyExistsError(absl::StrCat(
        path, ": holds a run already; resume it or name another folder"));
  }
  for (const auto& entry : fs::directory_iterator(path, error)) {
    // Left by a process that was killed as it began.
    if (entry.path().filename() == "config.json.partial") continue;
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": is not empty and holds no run; name another folder"));
  }
  const Json config = {{"version", kWengertVersion},
                       {"program", Printable(program_invocation_short_name)},
                       {"started", Now()},
                       {"seed", seed},
                       {"flags", Flags()},
                       {"machine", Machine()}};
  absl::Status status = WriteFile(run->config(), Text(config));
  if (!status.ok()) return status;
  return run;
}

absl::StatusOr<std::unique_ptr<RunFolder>> RunFolder::Resume(
    const std::string& path, uint64_t seed) {
  std::unique_ptr<RunFolder> run(new RunFolder(path));
  const std::string name = run->config();
  std::ifstream file(name, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(absl::StrCat(path, ": holds no run to resume"));
  }
  if (absl::Status status = run->Lock(); !status.ok()) return status;
  Json config = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object() || !config.contains("seed") ||
      !config.contains("flags") || !config["flags"].is_object() ||
      (config.contains("resumed") && !config["resumed"].is_array())) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": not the configuration of a run"));
  }
  if (config["seed"] != seed) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": its run has seed ", config["seed"].dump(), ", not ", seed));
  }
  Json changed = Json::object();
  const Json before = config["flags"], now = Flags();
  for (const auto& [flag, value] : now.items()) {
    const Json old = before.contains(flag) ? before[flag] : Json();
    if (old == value || flag == "run_dir" || flag == "resume") continue;
    changed[flag] = value;
    run->changed_.push_back(
        absl::StrCat("--", flag, " is ", value.dump(), ", was ", old.dump()));
  }
  config["resumed"].push_back({{"version", kWengertVersion},
                               {"time", Now()},
                               {"flags", changed},
                               {"machine", Machine()}});
  run->resumed_ = Text(config);
  return run;
}

absl::Status RunFolder::NoteResumption() const {
  return WriteFile(config(), resumed_);
}

absl::Status RunFolder::Lock() {
  lock_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path_, ": cannot be read"));
  }
  // Where a file system knows no locks, go without.
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": another process trains in this folder"));
  }
  return absl::OkStatus();
}

RunFolder::~RunFolder() {
  if (lock_ >= 0) close(lock_);
}

}  // namespace wengert::train
