// What stays of a run, and what a person sees of it: progress on the terminal
// and, in the run's folder, its configuration, metrics, TensorBoard's events,
// checkpoints and a report. It resumes a run, too.
//
//   Loop loop(run, options);
//   auto recorder = Recorder::Open(loop, {.run_dir = "runs/first"});
//   const auto end = loop.Run(loss);
//   absl::Status status = (*recorder)->Finish(end);
#ifndef WENGERT_TRAIN_RECORDER_H_
#define WENGERT_TRAIN_RECORDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "train/append_file.h"
#include "train/checkpoint_keeper.h"
#include "train/loop.h"
#include "train/metrics_log.h"
#include "train/profile.h"
#include "train/progress.h"
#include "train/report.h"
#include "train/run_folder.h"
#include "train/tensorboard.h"

namespace wengert::train {

struct RecorderOptions {
  std::string run_dir = {};  // without one nothing is written
  bool resume = false;       // go on with the run in it
  uint64_t seed = 0;         // the program's; a resumed run must have the same
  int64_t log_every = 10;    // steps between two rows of metrics
  // Steps between two checkpoints, or, if 0, seconds. A new best and the end
  // are saved too.
  int64_t checkpoint_every = 0;
  double checkpoint_seconds = 60;
  int keep_checkpoints = 3;      // the last ones; the best stays as well
  int64_t histograms_every = 0;  // steps; 0: none of weights and gradients
  std::string unit = "tokens";   // what BatchLoss counts
  ProgressOptions::Style progress = ProgressOptions::kAuto;
  // Prints a table of what the steps spent their time on, and writes it as a
  // Chrome trace: trace.json, in the run's folder or else where the user is.
  bool profile = false;
  // Shown by the report, and attention after each evaluation by TensorBoard.
  std::function<std::vector<AttentionMap>()> attention = {};
  std::function<std::vector<ReportSample>()> samples = {};
};

class Recorder {
 public:
  // Makes the run's folder or, to resume, restores loop and run from its newest
  // checkpoint (with none, the run begins anew) and cuts the rows after it. To
  // be called before loop.Run; it lasts at least as long as the loop runs.
  // Errors, which leave the rows and checkpoints as they were: those of
  // RunFolder, LoadCheckpoint and MetricsLog. Throws Error unless log_every >=
  // 1 and the other intervals are 0 or more.
  static absl::StatusOr<std::unique_ptr<Recorder>> Open(
      Loop& loop, RecorderOptions options);

  // After Run, with what it returned: saves what is not saved yet, waits until
  // it is on disk, writes the report, and says how to go on with a run that is
  // not over. Errors: the run's own, or that the last checkpoint could not be
  // written. What else goes wrong with files is told once, as a warning, and
  // the run goes on.
  absl::Status Finish(const absl::StatusOr<LoopEnd>& end);

  // A text above the progress line, such as an event of the program's own.
  void Message(absl::string_view text) { progress_->Message(text); }

 private:
  Recorder(Loop& loop, RecorderOptions options);
  absl::Status OpenFolder();
  absl::Status RestoreNewest();
  void OnStep(const StepInfo& info);
  void WriteRow(const StepInfo& info);
  void WriteHistograms(int64_t step);
  void TellEvaluation(const StepInfo& info);
  void WriteAttention(int64_t step);
  void WriteReport();
  void TellProfile();
  void SaveCheckpoint(const std::vector<Metric>& evaluation);
  void Warn(const absl::Status& status);
  std::string StopText(const LoopEnd& end) const;

  Loop& loop_;
  const RecorderOptions options_;
  std::unique_ptr<RunFolder> folder_;
  std::optional<MetricsLog> metrics_;
  std::optional<EventWriter> events_;
  std::unique_ptr<CheckpointKeeper> keeper_;
  std::string config_;
  std::vector<std::string> notes_;         // for the first line
  std::vector<absl::Status> passed_over_;  // checkpoints that are not whole
  std::optional<Progress> progress_;
  std::optional<Profile> profile_;

  // Of the row that is being gathered.
  double loss_sum_ = 0;
  int64_t n_losses_ = 0;
  int64_t row_units_ = 0;      // since row_began_
  double seconds_before_ = 0;  // of the processes before this one
  double began_, row_began_, saved_at_;
  int64_t saved_step_ = -1;
  FirstFailure checkpoint_failure_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_RECORDER_H_
