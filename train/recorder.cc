#include "train/recorder.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "autograd/error.h"
#include "train/clock.h"
#include "train/command_line.h"
#include "train/png.h"

namespace wengert::train {
namespace {

void Check(const RecorderOptions& o) {
  const auto check = [](bool valid, const char* option, double value,
                        const char* wanted) {
    if (valid) return;
    throw Error(
        absl::StrCat("Recorder: ", option, " is ", value, "; wanted ", wanted));
  };
  check(o.log_every >= 1, "log_every", o.log_every, "1 or more");
  check(o.checkpoint_every >= 0, "checkpoint_every", o.checkpoint_every,
        "0 or more");
  check(o.checkpoint_seconds >= 0, "checkpoint_seconds", o.checkpoint_seconds,
        "0 or more");
  check(o.histograms_every >= 0, "histograms_every", o.histograms_every,
        "0 or more");
  check(o.keep_checkpoints >= 1, "keep_checkpoints", o.keep_checkpoints,
        "1 or more");
}

std::string SignalName(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP";
    default:
      return absl::StrCat("signal ", signal);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Recorder>> Recorder::Open(
    Loop& loop, RecorderOptions options) {
  Check(options);
  std::unique_ptr<Recorder> recorder(new Recorder(loop, std::move(options)));
  if (!recorder->options_.run_dir.empty()) {
    const absl::Status status = recorder->OpenFolder();
    if (!status.ok()) return status;
  }
  const RecorderOptions& o = recorder->options_;
  recorder->progress_.emplace(ProgressOptions{.total_steps = loop.total_steps(),
                                              .first_step = loop.state().step,
                                              .unit = o.unit,
                                              .style = o.progress});
  for (const absl::Status& broken : recorder->passed_over_) {
    recorder->progress_->Warning(
        absl::StrCat(broken.message(), "; passed over"));
  }
  for (const std::string& note : recorder->notes_) {
    recorder->progress_->Message(note);
  }
  if (o.profile) loop.set_profile(&recorder->profile_.emplace());
  loop.OnStep([r = recorder.get()](const StepInfo& info) { r->OnStep(info); });
  return recorder;
}

Recorder::Recorder(Loop& loop, RecorderOptions options)
    : loop_(loop),
      options_(std::move(options)),
      began_(SteadySeconds()),
      row_began_(began_),
      saved_at_(began_) {}

absl::Status Recorder::OpenFolder() {
  const std::string& path = options_.run_dir;
  auto folder = options_.resume ? RunFolder::Resume(path, options_.seed)
                                : RunFolder::Create(path, options_.seed);
  if (!folder.ok()) return folder.status();
  folder_ = *std::move(folder);

  const LoopOptions& loop = loop_.options();
  if (options_.resume) {
    // First: flags that do not fit the checkpoint leave the run as it was.
    absl::Status status = RestoreNewest();
    if (status.ok()) status = folder_->NoteResumption();
    if (!status.ok()) return status;
  }
  std::ifstream config(folder_->config(), std::ios::binary);
  config_.assign(std::istreambuf_iterator<char>(config), {});
  const int64_t last_step = options_.resume ? loop_.state().step : -1;
  auto metrics = MetricsLog::Open(folder_->metrics_csv(),
                                  folder_->metrics_jsonl(), last_step);
  if (!metrics.ok()) return metrics.status();
  metrics_ = *std::move(metrics);
  auto events = EventWriter::Open(folder_->path(), last_step);
  if (!events.ok()) return events.status();
  events_ = *std::move(events);
  keeper_ = std::make_unique<CheckpointKeeper>(
      folder_->checkpoints(),
      CheckpointKeeperOptions{.keep_last = options_.keep_checkpoints,
                              .best_metric = loop.best_metric,
                              .lower_is_better = loop.lower_is_better});
  return absl::OkStatus();
}

absl::Status Recorder::RestoreNewest() {
  for (const std::string& flag : folder_->changed_flags()) {
    notes_.push_back("changed: " + flag);
  }
  const auto path = NewestCheckpoint(folder_->checkpoints(), &passed_over_);
  if (absl::IsNotFound(path.status())) {
    notes_.push_back(absl::StrCat(
        options_.run_dir, ": has no checkpoint yet; the run begins anew"));
    return absl::OkStatus();
  }
  if (!path.ok()) return path.status();
  const auto info = LoadCheckpoint(*path, loop_.run());
  if (!info.ok()) return info.status();
  loop_.Restore(*info);
  const auto number = [&](const char* name) {
    const auto found = info->metrics.find(name);
    return found == info->metrics.end() ? 0 : found->second;
  };
  loss_sum_ = number("recorder.loss_sum");
  n_losses_ = static_cast<int64_t>(number("recorder.n_losses"));
  seconds_before_ = number("recorder.seconds");
  saved_step_ = info->step;
  const bool over = info->step >= loop_.total_steps();
  notes_.push_back(absl::StrCat("resumed at step ", info->step,
                                over ? ", where the run ends" : ""));
  if (info->schedule != loop_.options().schedule_name) {
    notes_.push_back(absl::StrCat("the schedule is ",
                                  loop_.options().schedule_name, ", was ",
                                  info->schedule));
  }
  return absl::OkStatus();
}

void Recorder::OnStep(const StepInfo& info) {
  progress_->Update(info.step, info.loss, info.lr, info.units);
  row_units_ += info.units;
  if (!info.skipped) {
    loss_sum_ += info.loss;
    ++n_losses_;
  } else if (loop_.state().skipped_in_a_row == 1) {
    progress_->Warning(absl::StrCat(
        "step ", info.step, ": loss ", info.loss, ", gradient norm ",
        info.grad_norm, ": skipped (", loop_.state().skipped, " so far)"));
  }
  if (!info.evaluation.empty()) TellEvaluation(info);
  if (!folder_) return;
  if (info.step % options_.log_every == 0 || !info.evaluation.empty() ||
      info.last) {
    WriteRow(info);
  }
  if (options_.histograms_every > 0 &&
      info.step % options_.histograms_every == 0) {
    WriteHistograms(info.step);
  }
  if (!info.evaluation.empty() && options_.attention) {
    WriteAttention(info.step);
  }
  // The checkpoint last, so that it never knows less than the rows.
  const bool due =
      options_.checkpoint_every > 0
          ? info.step % options_.checkpoint_every == 0
          : SteadySeconds() - saved_at_ >= options_.checkpoint_seconds;
  if (due || info.best) SaveCheckpoint(info.evaluation);
}

void Recorder::TellEvaluation(const StepInfo& info) {
  const std::string numbers = absl::StrJoin(
      info.evaluation, "  ", [](std::string* out, const Metric& metric) {
        absl::StrAppendFormat(out, "%s %.6g", metric.name, metric.value);
      });
  progress_->Message(absl::StrCat("step ", info.step, ": ", numbers,
                                  info.best ? "  (best so far)" : ""));
}

void Recorder::WriteRow(const StepInfo& info) {
  const double now = SteadySeconds();
  std::vector<Metric> row = {
      {"epoch", static_cast<double>(info.epoch)},
      // Of the steps since the row before.
      {"loss", n_losses_ > 0 ? loss_sum_ / static_cast<double>(n_losses_)
                             : std::numeric_limits<double>::quiet_NaN()},
      {"lr", info.lr},
      {"grad_norm", info.grad_norm},
      {"skipped", static_cast<double>(loop_.state().skipped)},
      {options_.unit, static_cast<double>(loop_.state().units)}};
  row.insert(row.end(), info.evaluation.begin(), info.evaluation.end());
  row.push_back({"time/seconds", seconds_before_ + now - began_});
  row.push_back({absl::StrCat("time/", options_.unit, "_per_second"),
                 static_cast<double>(row_units_) / (now - row_began_)});
  Warn(metrics_->Write(info.step, row));
  Warn(events_->Scalars(info.step, row));
  loss_sum_ = 0;
  n_losses_ = 0;
  row_units_ = 0;
  row_began_ = now;
}

void Recorder::WriteHistograms(int64_t step) {
  for (const Parameter* p : loop_.run().parameters->parameters()) {
    Warn(events_->Histogram(step, "weights/" + p->name, p->value));
    if (p->state != Parameter::Grad::kUsed) continue;  // it got none
    Warn(events_->Histogram(step, "gradients/" + p->name, p->grad));
  }
}

// The first sentence's layers.
void Recorder::WriteAttention(int64_t step) {
  const std::vector<AttentionMap> maps = options_.attention();
  for (const AttentionMap& map : maps) {
    if (map.sentence != maps[0].sentence) break;
    Warn(events_->Image(step, "attention/" + map.layer, AttentionPng(map)));
  }
}

void Recorder::WriteReport() {
  const auto rows = ReadMetrics(folder_->metrics_jsonl());
  if (!rows.ok()) return Warn(rows.status());
  std::error_code ignored;
  ReportContents report = {
      .title = std::filesystem::weakly_canonical(options_.run_dir, ignored)
                   .filename(),
      .config_json = config_,
      .rows = *rows,
      .parameters = ParameterRows(*loop_.run().parameters)};
  if (options_.samples) report.samples = options_.samples();
  if (options_.attention) report.attention = options_.attention();
  Warn(train::WriteReport(folder_->report(), report));
}

void Recorder::TellProfile() {
  loop_.set_profile(nullptr);
  progress_->Message(profile_->Table());
  const std::string path =
      folder_ ? folder_->path() + "/trace.json" : UserPath("trace.json");
  const absl::Status status = profile_->WriteChromeTrace(path);
  Warn(status);
  if (status.ok()) progress_->Message("wrote " + path);
}

void Recorder::SaveCheckpoint(const std::vector<Metric>& evaluation) {
  CheckpointInfo info;
  loop_.Save(info);
  info.config = config_;
  for (const Metric& metric : evaluation) {
    info.metrics[metric.name] = metric.value;
  }
  info.metrics["recorder.loss_sum"] = loss_sum_;
  info.metrics["recorder.n_losses"] = static_cast<double>(n_losses_);
  info.metrics["recorder.seconds"] = seconds_before_ + SteadySeconds() - began_;
  progress_->Message(absl::StrCat("step ", info.step, ": saving a checkpoint"));
  Warn(checkpoint_failure_.Of(keeper_->Save(loop_.run(), info)));
  saved_step_ = info.step;
  saved_at_ = SteadySeconds();
}

void Recorder::Warn(const absl::Status& status) {
  if (!status.ok()) progress_->Warning(status.message());
}

std::string Recorder::StopText(const LoopEnd& end) const {
  const std::string why = end.why == LoopEnd::kSignal   ? SignalName(end.signal)
                          : end.why == LoopEnd::kBudget ? "its budget"
                                                        : "the program";
  return absl::StrCat(
      "stopped after step ", loop_.state().step, " by ", why,
      folder_ ? absl::StrCat("; to go on: --resume=", options_.run_dir)
              : "; without --run_dir nothing was saved");
}

absl::Status Recorder::Finish(const absl::StatusOr<LoopEnd>& end) {
  absl::Status status = end.status();
  if (keeper_) {
    // A run that went wrong stays as its last checkpoint has it.
    if (end.ok() && saved_step_ != loop_.state().step) SaveCheckpoint({});
    status.Update(keeper_->Finish());
    WriteReport();
  }
  progress_->Finish();
  if (profile_) TellProfile();
  if (end.ok() && !end->complete()) progress_->Warning(StopText(*end));
  if (end.ok() && end->why == LoopEnd::kPatience) {
    progress_->Message(absl::StrCat("no better ", loop_.options().best_metric,
                                    " in ", loop_.options().patience,
                                    " evaluations: ended after step ",
                                    loop_.state().step));
  }
  return status;
}

}  // namespace wengert::train
