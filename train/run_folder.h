// The folder that holds everything of one run, from its flags to its report,
// and that one process at a time writes to.
//
//   auto run = RunFolder::Create(UserPath("runs/first"), seed);
//   if (!run.ok()) return run.status();
//   auto log = MetricsLog::Open((*run)->metrics_csv(), ...);
#ifndef WENGERT_TRAIN_RUN_FOLDER_H_
#define WENGERT_TRAIN_RUN_FOLDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wengert::train {

inline constexpr char kWengertVersion[] = "0.1.0";

class RunFolder {
 public:
  // Makes the folder, and those above it, and writes config.json: the version,
  // program, seed, start, machine, and every flag of the program with its
  // value. Errors: a folder that holds anything already, such as another run;
  // one that cannot be written.
  static absl::StatusOr<std::unique_ptr<RunFolder>> Create(
      const std::string& path, uint64_t seed);

  // Opens the folder of a run and changes nothing. Errors: there is no run in
  // it, or one of another seed; its config.json is not that of a run; another
  // process trains in it.
  static absl::StatusOr<std::unique_ptr<RunFolder>> Resume(
      const std::string& path, uint64_t seed);

  // Of a resumed run that can go on: its config.json gets a further entry under
  // "resumed": when, on which machine, and the flags that are not as they were
  // at first. Error: it cannot be written.
  absl::Status NoteResumption() const;

  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }  // event files lie here
  std::string config() const { return path_ + "/config.json"; }
  std::string metrics_csv() const { return path_ + "/metrics.csv"; }
  std::string metrics_jsonl() const { return path_ + "/metrics.jsonl"; }
  std::string report() const { return path_ + "/report.html"; }
  std::string checkpoints() const { return path_ + "/checkpoints"; }

  // Of a resumed run: "--lr is 0.1, was 0.3", for each flag that changed, but
  // for --run_dir and --resume.
  const std::vector<std::string>& changed_flags() const { return changed_; }

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  // Keeps other processes out until this one ends, however it does.
  absl::Status Lock();

  std::string path_;
  int lock_ = -1;  // the open folder
  std::vector<std::string> changed_;
  std::string resumed_;  // what config.json is to be
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_RUN_FOLDER_H_
