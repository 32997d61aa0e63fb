// The training loop: takes batches from a stream, steps, evaluates, and ends
// when one of its limits is reached or somebody asks it to.
//
//   Loop loop({&store, &optimizer, &generator, &batches},
//             {.steps = 5000, .clip_norm = 1,
//              .schedule = WarmupCosine(3e-4, 100, 5000)});
//   auto recorder = Recorder::Open(loop, {.run_dir = "runs/first"});
//   auto end = loop.Run([&](auto rows) { return Loss(model, rows); });
//
// Whoever wants another loop writes one from the same parts; see Loop::Step.
#ifndef WENGERT_TRAIN_LOOP_H_
#define WENGERT_TRAIN_LOOP_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autograd/tape.h"
#include "autograd/tensor.h"
#include "train/checkpoint.h"
#include "train/metrics_log.h"
#include "train/profile.h"
#include "train/schedule.h"

namespace wengert::train {

// The loss of a batch, one element, and how many units (tokens, rows) it is the
// mean of: batches that are accumulated weigh by their units. A step without
// any has loss 0 and changes nothing.
struct BatchLoss {
  BatchLoss(Tensor loss, int64_t units = 1)  // NOLINT: a loss alone will do
      : loss(std::move(loss)), units(units) {}
  Tensor loss;
  int64_t units;
};
// Computes it, on the current tape, of the rows that a batch lists.
using LossFunction = std::function<BatchLoss(absl::Span<const int64_t> rows)>;
// Measures the model, with no tape: {{"eval/loss", 1.5}}.
using EvaluateFunction = std::function<std::vector<Metric>()>;

struct LoopOptions {
  // Limits; 0 is none, and steps or epochs must be given. Those of a whole run:
  int64_t steps = 0;  // updates of the parameters
  int64_t epochs = 0;
  // and those of this call of Run, for a run that goes on another day:
  int64_t step_budget = 0;
  double seconds = 0;

  int64_t accumulate = 1;  // batches in a step
  double clip_norm = std::numeric_limits<double>::infinity();
  // The rate of a step, counted from 0. Without one it stays the optimizer's.
  std::function<double(int64_t step)> schedule = {};
  // Instead of it: a rate that follows best_metric. Must outlive the loop.
  PlateauSchedule* plateau = nullptr;
  std::string schedule_name = {};  // in words; a resumed run warns of another
  int64_t evaluate_every = 0;      // steps; 0: at the run's end alone
  std::string best_metric = "eval/loss";
  bool lower_is_better = true;
  int64_t patience = 0;  // ends after so many evaluations with no new best
  // A step whose loss or gradient is not finite changes nothing. After so many
  // in a row Run gives up; the last is run with Tape::set_check_finite.
  int64_t max_skipped = 10;
  bool stop_on_signals = true;  // see StopSignals
};

// Where a run stands: what a checkpoint keeps of the loop.
struct LoopState {
  int64_t step = 0;     // done, skipped ones too
  int64_t skipped = 0;  // of them
  int64_t skipped_in_a_row = 0;
  int64_t units = 0;
  std::optional<double> best = {};  // of the best metric
  int64_t evaluations_since_best = 0;
};

// What is known after a step.
struct StepInfo {
  int64_t step = 0;   // its number, from 1
  int64_t epoch = 0;  // of its last batch, from 0
  double loss = 0;
  double lr = 0;
  double grad_norm = 0;  // before clipping
  bool skipped = false;
  int64_t units = 0;
  bool last = false;                    // of the whole run
  std::vector<Metric> evaluation = {};  // if there was one
  bool best = false;                    // it has the best metric so far
};

struct LoopEnd {
  enum Why { kSteps, kEpochs, kPatience, kBudget, kSignal, kStop };
  Why why;
  int signal = 0;
  // Whether the run is over, or is to go on another day.
  bool complete() const { return why <= kPatience; }
};

class Loop {
 public:
  // The run needs parameters, an optimizer and batches; a generator where the
  // model draws random numbers. All must outlive the loop. Throws Error for
  // options out of their range.
  Loop(const TrainingRun& run, LoopOptions options);

  // Calls f after each step and its evaluation, in the order of the calls.
  void OnStep(std::function<void(const StepInfo&)> f) {
    on_step_.push_back(std::move(f));
  }

  // Trains to the end, or until a limit of this call. May be called again.
  // Errors: too many steps in a row that were not finite, with the operation
  // that went wrong first. What `loss` throws passes through; nothing was
  // updated by that step.
  absl::StatusOr<LoopEnd> Run(const LossFunction& loss,
                              const EvaluateFunction& evaluate = {});

  // Ends Run after this step; for OnStep.
  void Stop() { stop_ = true; }

  // Watches what the steps spend their time on; null does not. It must outlive
  // the loop's runs.
  void set_profile(Profile* profile) { profile_ = profile; }

  const TrainingRun& run() const { return run_; }
  const LoopOptions& options() const { return options_; }
  const LoopState& state() const { return state_; }
  // Steps of the whole run.
  int64_t total_steps() const;
  // To and from a checkpoint.
  void Save(CheckpointInfo& info) const;
  void Restore(const CheckpointInfo& info);

 private:
  StepInfo Step(const LossFunction& loss);
  void Evaluate(const EvaluateFunction& evaluate, StepInfo& info);
  std::optional<LoopEnd::Why> Complete() const;

  const TrainingRun run_;
  const LoopOptions options_;
  LoopState state_;
  bool stop_ = false;
  Profile* profile_ = nullptr;
  std::vector<std::function<void(const StepInfo&)>> on_step_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_LOOP_H_
