#include "train/loop.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "train/clip.h"
#include "train/clock.h"
#include "train/stop_signals.h"

namespace wengert::train {
namespace {

void Check(const TrainingRun& run, const LoopOptions& o) {
  if (!run.parameters || !run.optimizer || !run.batches) {
    throw Error("Loop: wanted parameters, an optimizer and batches");
  }
  const auto check = [](bool valid, const char* option, double value,
                        const char* wanted) {
    if (valid) return;
    throw Error(
        absl::StrCat("Loop: ", option, " is ", value, "; wanted ", wanted));
  };
  check(o.steps >= 0, "steps", o.steps, "0 or more");
  check(o.epochs >= 0, "epochs", o.epochs, "0 or more");
  check(o.steps > 0 || o.epochs > 0, "steps", o.steps, "more, or epochs");
  check(o.step_budget >= 0, "step_budget", o.step_budget, "0 or more");
  check(o.seconds >= 0, "seconds", o.seconds, "0 or more");
  check(o.accumulate >= 1, "accumulate", o.accumulate, "1 or more");
  check(o.clip_norm >= 0, "clip_norm", o.clip_norm, "0 or more");
  check(o.evaluate_every >= 0, "evaluate_every", o.evaluate_every, "0 or more");
  check(o.patience >= 0, "patience", o.patience, "0 or more");
  check(o.max_skipped >= 1, "max_skipped", o.max_skipped, "1 or more");
  if (o.plateau && o.schedule) {
    throw Error("Loop: a schedule and a plateau; wanted one of them");
  }
}

}  // namespace

Loop::Loop(const TrainingRun& run, LoopOptions options)
    : run_(run), options_(std::move(options)) {
  Check(run_, options_);
}

absl::StatusOr<LoopEnd> Loop::Run(const LossFunction& loss,
                                  const EvaluateFunction& evaluate) {
  std::optional<StopSignals> signals;
  if (options_.stop_on_signals) signals.emplace();
  const double begin = SteadySeconds();
  const int64_t first_step = state_.step;
  stop_ = false;
  while (true) {
    if (const auto why = Complete()) return LoopEnd{*why};
    if (stop_) return LoopEnd{LoopEnd::kStop};
    if (signals && signals->received()) {
      return LoopEnd{LoopEnd::kSignal, signals->received()};
    }
    if ((options_.step_budget > 0 &&
         state_.step - first_step >= options_.step_budget) ||
        (options_.seconds > 0 && SteadySeconds() - begin >= options_.seconds)) {
      return LoopEnd{LoopEnd::kBudget};
    }

    StepInfo info;
    try {
      info = Step(loss);
    } catch (const NonFiniteError& error) {
      return absl::FailedPreconditionError(absl::StrCat(
          "step ", state_.step + 1, ": ", options_.max_skipped,
          " steps in a row were not finite; first, ", error.what()));
    }
    if (state_.skipped_in_a_row >= options_.max_skipped) {
      return absl::FailedPreconditionError(absl::StrCat(
          "step ", state_.step, ": ", options_.max_skipped,
          " steps in a row were not finite, and no operation made the first "
          "such value: look at the parameters and the data"));
    }
    const bool due = options_.evaluate_every > 0 &&
                     state_.step % options_.evaluate_every == 0;
    info.last = Complete().has_value();
    if (evaluate && (due || info.last)) {
      Evaluate(evaluate, info);
      info.last = Complete().has_value();  // patience may be at its end
    }
    for (const auto& f : on_step_) f(info);
  }
}

// One update from `accumulate` batches.
StepInfo Loop::Step(const LossFunction& loss) {
  nn::ParameterStore& store = *run_.parameters;
  Optimizer& optimizer = *run_.optimizer;
  const bool blame = state_.skipped_in_a_row + 1 >= options_.max_skipped;
  StepInfo info = {.step = state_.step + 1};
  double loss_sum = 0;
  // It may throw, so it comes before there are gradients.
  if (options_.schedule) optimizer.set_lr(options_.schedule(state_.step));
  if (options_.plateau) optimizer.set_lr(options_.plateau->lr());
  try {
    for (int64_t i = 0; i < options_.accumulate; ++i) {
      info.epoch = run_.batches->epoch();
      const absl::Span<const int64_t> rows = run_.batches->Next();
      Tape tape = run_.generator ? Tape(*run_.generator) : Tape();
      tape.set_check_finite(blame);
      tape.set_observer(profile_);
      const BatchLoss batch = loss(rows);
      if (batch.units < 0) {
        throw Error(absl::StrCat("Loop: a loss of ", batch.units,
                                 " units; wanted 0 or more"));
      }
      if (options_.accumulate == 1) {
        tape.Backward(batch.loss);
      } else {
        tape.Backward(batch.loss, Tensor::Full(batch.loss.shape(), batch.units,
                                               batch.loss.dtype()));
      }
      loss_sum += batch.loss.item() * batch.units;
      info.units += batch.units;
    }
    if (info.units == 0) {
      store.ZeroGrad();  // there was nothing to learn from
    } else if (options_.accumulate > 1) {
      ScaleGradients(store, 1.0 / info.units);
    }
  } catch (...) {
    store.ZeroGrad();
    throw;
  }
  const Profile::Span span(profile_, "optimizer");
  info.loss = info.units > 0 ? loss_sum / info.units : 0;
  const ClipResult clip = ClipGradNorm(store, options_.clip_norm);
  info.grad_norm = clip.norm;
  info.skipped = !clip.finite || !std::isfinite(info.loss);
  if (info.skipped) store.ZeroGrad();
  info.lr = optimizer.lr();
  optimizer.Step();
  if (run_.average && !info.skipped && info.units > 0) run_.average->Update();

  ++state_.step;
  state_.skipped += info.skipped;
  state_.skipped_in_a_row = info.skipped ? state_.skipped_in_a_row + 1 : 0;
  state_.units += info.units;
  return info;
}

void Loop::Evaluate(const EvaluateFunction& evaluate, StepInfo& info) {
  const Profile::Span span(profile_, "evaluation");
  info.evaluation = evaluate();
  const auto metric = std::find_if(
      info.evaluation.begin(), info.evaluation.end(),
      [&](const Metric& m) { return m.name == options_.best_metric; });
  if (metric == info.evaluation.end()) {
    if (options_.patience == 0 && !options_.plateau) return;
    throw Error(absl::StrCat("Loop: the evaluation gave no \"",
                             options_.best_metric, "\" to be patient about"));
  }
  const double value = metric->value;
  if (options_.plateau) options_.plateau->Observe(value);
  info.best =
      !std::isnan(value) &&
      (!state_.best || (options_.lower_is_better ? value < *state_.best
                                                 : value > *state_.best));
  if (info.best) state_.best = value;
  state_.evaluations_since_best =
      info.best ? 0 : state_.evaluations_since_best + 1;
}

std::optional<LoopEnd::Why> Loop::Complete() const {
  if (options_.steps > 0 && state_.step >= options_.steps) {
    return LoopEnd::kSteps;
  }
  if (options_.epochs > 0 && run_.batches->epoch() >= options_.epochs) {
    return LoopEnd::kEpochs;
  }
  if (options_.patience > 0 &&
      state_.evaluations_since_best >= options_.patience) {
    return LoopEnd::kPatience;
  }
  return std::nullopt;
}

int64_t Loop::total_steps() const {
  if (options_.epochs == 0) return options_.steps;
  const int64_t per_epoch = run_.batches->batches_per_epoch();
  const int64_t batches =
      options_.epochs > std::numeric_limits<int64_t>::max() / per_epoch
          ? std::numeric_limits<int64_t>::max()
          : options_.epochs * per_epoch;
  const int64_t steps = batches / options_.accumulate +
                        (batches % options_.accumulate > 0 ? 1 : 0);
  return options_.steps > 0 ? std::min(steps, options_.steps) : steps;
}

void Loop::Save(CheckpointInfo& info) const {
  info.step = state_.step;
  info.cursor = run_.batches->state();
  info.schedule = options_.schedule_name;
  info.metrics["loop.skipped"] = state_.skipped;
  info.metrics["loop.skipped_in_a_row"] = state_.skipped_in_a_row;
  info.metrics["loop.units"] = state_.units;
  info.metrics["loop.evaluations_since_best"] = state_.evaluations_since_best;
  if (state_.best) info.metrics["loop.best"] = *state_.best;
  if (!options_.plateau) return;
  const PlateauSchedule::State& plateau = options_.plateau->state();
  info.metrics["loop.plateau.lr"] = plateau.lr;
  info.metrics["loop.plateau.not_better"] = plateau.not_better;
  info.metrics["loop.plateau.cooldown"] = plateau.cooldown;
  if (plateau.best) info.metrics["loop.plateau.best"] = *plateau.best;
}

void Loop::Restore(const CheckpointInfo& info) {
  // A count that no loop saves, as a file may hold it, is taken for 0.
  const auto number = [&](const char* name) {
    const auto found = info.metrics.find(name);
    const bool valid = found != info.metrics.end() && found->second >= 0 &&
                       found->second < 0x1p63;
    return valid ? static_cast<int64_t>(found->second) : 0;
  };
  state_ = {.step = info.step,
            .skipped = number("loop.skipped"),
            .skipped_in_a_row = number("loop.skipped_in_a_row"),
            .units = number("loop.units"),
            .evaluations_since_best = number("loop.evaluations_since_best")};
  const auto best = info.metrics.find("loop.best");
  if (best != info.metrics.end()) state_.best = best->second;
  const auto lr = info.metrics.find("loop.plateau.lr");
  if (!options_.plateau || lr == info.metrics.end()) return;
  PlateauSchedule::State plateau = {
      .lr = lr->second,
      .not_better = number("loop.plateau.not_better"),
      .cooldown = number("loop.plateau.cooldown")};
  const auto plateau_best = info.metrics.find("loop.plateau.best");
  if (plateau_best != info.metrics.end()) plateau.best = plateau_best->second;
  options_.plateau->set_state(plateau);
}

}  // namespace wengert::train
