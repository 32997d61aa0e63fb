#include "train/run_flags.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "train/command_line.h"

ABSL_FLAG(std::string, run_dir, "",
          "A new folder for this run's configuration, metrics, checkpoints and "
          "report. Without it nothing is kept.");
ABSL_FLAG(std::string, resume, "",
          "Go on with the run in this folder, with its flags; others given "
          "beside it take their place.");
ABSL_FLAG(int64_t, log_every, 10, "Steps between two rows of metrics.");
ABSL_FLAG(int64_t, checkpoint_every, 0,
          "Steps between two checkpoints; 0: see --checkpoint_seconds.");
ABSL_FLAG(double, checkpoint_seconds, 60, "Seconds between two checkpoints.");
ABSL_FLAG(int32_t, keep_checkpoints, 3,
          "How many checkpoints stay, beside the best.");
ABSL_FLAG(int64_t, histograms_every, 0,
          "Steps between two histograms of weights and gradients for "
          "TensorBoard; 0: none.");
ABSL_FLAG(
    double, seconds, 0,
    "Stop after so many seconds and save; --resume goes on. 0: no limit.");
ABSL_FLAG(
    bool, profile, false,
    "At the end print a table of operations by time, and write trace.json "
    "(into the run's folder), which https://ui.perfetto.dev shows.");
ABSL_FLAG(bool, quiet, false, "No progress, only warnings.");

namespace wengert::train {
namespace {

// Sets the flags as a run's config.json has them. Those that it does not know
// keep their defaults, and those that the program has no more are passed over.
absl::Status SetFlagsOf(const std::string& run_dir) {
  const std::string path = run_dir + "/config.json";
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat(run_dir, ": holds no run to resume"));
  }
  const auto config =
      nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object() || !config.contains("flags") ||
      !config["flags"].is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not the configuration of a run"));
  }
  nlohmann::json flags = config["flags"];
  // As the run last had them.
  if (config.contains("resumed") && config["resumed"].is_array() &&
      !config["resumed"].empty() && config["resumed"].back().is_object()) {
    const auto& last = config["resumed"].back();
    if (last.contains("flags") && last["flags"].is_object()) {
      flags.update(last["flags"]);
    }
  }
  for (const auto& [name, value] : flags.items()) {
    if (name == "run_dir" || name == "resume" || name == "quiet" ||
        name == "profile")
      continue;
    absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    if (!flag) continue;
    std::string error;
    const std::string text =
        value.is_string() ? value.get<std::string>() : value.dump();
    if (!flag->ParseFrom(text, &error)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": ", text, " is not a value for --", name, " ", error));
    }
  }
  return absl::OkStatus();
}

// Where a standard file was closed, as by 2>&-, the next file that is opened
// would take its number, and progress would go into a run's metrics.
void OpenStandardFiles() {
  int fd;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) close(fd);
}

}  // namespace

absl::Status ParseRunCommandLine(int argc, const char* const* argv,
                                 const std::string& about,
                                 const std::string& file) {
  OpenStandardFiles();
  const std::vector<std::string> files = {file, __FILE__};
  absl::Status status = ParseCommandLine(argc, argv, about, files);
  const std::string resume = absl::GetFlag(FLAGS_resume);
  if (status.ok() && !resume.empty()) {
    if (!absl::GetFlag(FLAGS_run_dir).empty()) {
      return absl::InvalidArgumentError(
          "--run_dir begins a run and --resume goes on with one: wanted one "
          "of them");
    }
    status = SetFlagsOf(UserPath(resume));
    if (!status.ok()) return status;
    status = ParseCommandLine(argc, argv, about, files);
  }
  if (!status.ok()) return status;
  for (const absl::Status& range :
       {CheckFlag<int64_t>(FLAGS_log_every, 1),
        CheckFlag<int64_t>(FLAGS_checkpoint_every, 0),
        CheckFlag<double>(FLAGS_checkpoint_seconds, 0),
        CheckFlag<int32_t>(FLAGS_keep_checkpoints, 1),
        CheckFlag<int64_t>(FLAGS_histograms_every, 0),
        CheckFlag<double>(FLAGS_seconds, 0)}) {
    if (!range.ok()) return range;
  }
  return absl::OkStatus();
}

RecorderOptions RecorderFlags(uint64_t seed) {
  const std::string resume = absl::GetFlag(FLAGS_resume);
  return {.run_dir =
              UserPath(resume.empty() ? absl::GetFlag(FLAGS_run_dir) : resume),
          .resume = !resume.empty(),
          .seed = seed,
          .log_every = absl::GetFlag(FLAGS_log_every),
          .checkpoint_every = absl::GetFlag(FLAGS_checkpoint_every),
          .checkpoint_seconds = absl::GetFlag(FLAGS_checkpoint_seconds),
          .keep_checkpoints = absl::GetFlag(FLAGS_keep_checkpoints),
          .histograms_every = absl::GetFlag(FLAGS_histograms_every),
          .progress = absl::GetFlag(FLAGS_quiet) ? ProgressOptions::kQuiet
                                                 : ProgressOptions::kAuto,
          .profile = absl::GetFlag(FLAGS_profile)};
}

LoopOptions LoopFlags() { return {.seconds = absl::GetFlag(FLAGS_seconds)}; }

}  // namespace wengert::train
