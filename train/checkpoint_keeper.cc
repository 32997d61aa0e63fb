#include "train/checkpoint_keeper.h"

#include <signal.h>

#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "autograd/error.h"

namespace wengert::train {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "step-", kSuffix[] = ".safetensors";
constexpr char kPartial[] = ".partial";  // of FileWriter

std::string NameOf(int64_t step) {
  return absl::StrFormat("%s%09d%s", kPrefix, step, kSuffix);
}

std::string PathOf(const std::string& folder, int64_t step) {
  return (fs::path(folder) / NameOf(step)).string();
}

std::optional<int64_t> StepOf(absl::string_view name) {
  absl::string_view digits = name;
  int64_t step;
  if (absl::ConsumePrefix(&digits, kPrefix) &&
      absl::ConsumeSuffix(&digits, kSuffix) &&
      absl::SimpleAtoi(digits, &step) && NameOf(step) == name) {
    return step;
  }
  return {};
}

// The names in the folder; none where there is no such folder.
std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  return names;
}

// The whole checkpoints of the folder by step; adds to `faults` what is wrong
// with others, the highest step last.
std::map<int64_t, CheckpointInfo> CheckpointsIn(
    const std::string& folder, std::vector<absl::Status>& faults) {
  std::set<int64_t> steps;
  for (const std::string& name : NamesIn(folder)) {
    if (const auto step = StepOf(name)) steps.insert(*step);
  }
  std::map<int64_t, CheckpointInfo> checkpoints;
  for (const int64_t step : steps) {
    const auto info = ReadCheckpointInfo(PathOf(folder, step));
    if (info.ok()) {
      checkpoints[step] = *info;
    } else {
      faults.push_back(info.status());
    }
  }
  return checkpoints;
}

// The step of the best; nothing where none has the metric.
std::optional<int64_t> Best(const std::map<int64_t, CheckpointInfo>& from,
                            const CheckpointKeeperOptions& options) {
  std::optional<int64_t> best;
  double best_value = 0;
  for (const auto& [step, info] : from) {
    const auto metric = info.metrics.find(options.best_metric);
    if (metric == info.metrics.end() || std::isnan(metric->second)) continue;
    const double value =
        options.lower_is_better ? metric->second : -metric->second;
    if (best && value >= best_value) continue;
    best = step;
    best_value = value;
  }
  return best;
}

absl::Status NoneIn(const std::string& folder,
                    const std::vector<absl::Status>& faults,
                    absl::string_view which = "") {
  if (!faults.empty()) return faults.back();
  return absl::NotFoundError(
      absl::StrCat(folder, ": there is no checkpoint", which));
}

}  // namespace

CheckpointKeeper::CheckpointKeeper(std::string folder,
                                   CheckpointKeeperOptions options)
    : folder_(std::move(folder)), options_(std::move(options)) {
  if (options_.keep_last < 1) {
    throw Error(absl::StrCat("CheckpointKeeper: keep_last is ",
                             options_.keep_last, "; wanted >= 1"));
  }
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) {
    Report(absl::ErrnoToStatus(error.value(),
                               absl::StrCat(folder_, ": cannot be made")));
  }
  std::vector<absl::Status> broken;  // is left alone
  kept_ = CheckpointsIn(folder_, broken);
  // Signals are for the thread that trains.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { Work(); });
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

CheckpointKeeper::~CheckpointKeeper() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

absl::Status CheckpointKeeper::Save(const TrainingRun& run,
                                    const CheckpointInfo& info) {
  auto contents = CollectCheckpoint(run, info);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !busy_; });
  const absl::Status earlier = TakeStatus();
  if (!contents.ok()) {
    Report(absl::InvalidArgumentError(
        absl::StrCat(PathOf(folder_, info.step),
                     ": cannot be written: ", contents.status().message())));
    return earlier;
  }
  try {
    Copy(*std::move(contents));
    pending_info_ = info;
    busy_ = true;
  } catch (const std::bad_alloc&) {
    Report(absl::ResourceExhaustedError(
        absl::StrCat(PathOf(folder_, info.step),
                     ": cannot be written: no memory for a copy")));
  }
  if (busy_ && !thread_.joinable()) {
    lock.unlock();
    Write();
    lock.lock();
    busy_ = false;
  }
  changed_.notify_all();
  return earlier;
}

absl::Status CheckpointKeeper::Finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !busy_; });
  return TakeStatus();
}

// Takes the contents over, with tensors of its own.
void CheckpointKeeper::Copy(CheckpointContents contents) {
  buffers_.resize(contents.tensors.size());
  for (size_t i = 0; i < buffers_.size(); ++i) {
    Tensor& from = contents.tensors[i].tensor;
    Tensor& to = buffers_[i];
    if (!to.defined() || to.shape() != from.shape() ||
        to.dtype() != from.dtype()) {
      to = Tensor::Empty(from.shape(), from.dtype());
    }
    std::memcpy(to.impl()->data, from.impl()->data,
                from.size() * ByteSize(from.dtype()));
    from = to;
  }
  pending_ = std::move(contents);
}

void CheckpointKeeper::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return busy_ || stopping_; });
    if (!busy_) return;
    lock.unlock();
    Write();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void CheckpointKeeper::Write() {
  absl::Status status;
  try {
    status = WriteSafetensors(PathOf(folder_, pending_info_.step),
                              pending_.tensors, pending_.metadata);
    if (status.ok()) {
      kept_[pending_info_.step] = pending_info_;
      Prune();
    }
  } catch (const std::exception& error) {  // such as no memory
    status = absl::InternalError(
        absl::StrCat(PathOf(folder_, pending_info_.step),
                     ": cannot be written: ", error.what()));
  }
  const std::lock_guard lock(mutex_);
  Report(status);
}

// Removes what is not kept, now that a newer one is safe.
void CheckpointKeeper::Prune() {
  std::set<int64_t> keep = {pending_info_.step};
  if (const auto best = Best(kept_, options_)) keep.insert(*best);
  int last = 0;
  for (auto it = kept_.rbegin();
       it != kept_.rend() && last < options_.keep_last; ++it, ++last) {
    keep.insert(it->first);
  }
  // A file that cannot be removed is no reason to complain: it is tried again
  // when the folder is next read.
  std::error_code ignored;
  for (auto it = kept_.begin(); it != kept_.end();) {
    if (keep.count(it->first) > 0) {
      ++it;
    } else {
      fs::remove(PathOf(folder_, it->first), ignored);
      it = kept_.erase(it);
    }
  }
  // What a run that was killed had not finished.
  for (absl::string_view name : NamesIn(folder_)) {
    const std::string full(name);
    if (absl::ConsumeSuffix(&name, kPartial) && StepOf(name)) {
      fs::remove(fs::path(folder_) / full, ignored);
    }
  }
}

void CheckpointKeeper::Report(const absl::Status& status) {
  status_.Update(status);
}

absl::Status CheckpointKeeper::TakeStatus() {
  return std::exchange(status_, absl::OkStatus());
}

absl::StatusOr<std::string> NewestCheckpoint(
    const std::string& folder, std::vector<absl::Status>* passed_over) {
  std::vector<absl::Status> faults;
  const auto checkpoints = CheckpointsIn(folder, faults);
  if (checkpoints.empty()) return NoneIn(folder, faults);
  if (passed_over) *passed_over = std::move(faults);
  return PathOf(folder, checkpoints.rbegin()->first);
}

absl::StatusOr<std::string> BestCheckpoint(
    const std::string& folder, const CheckpointKeeperOptions& options) {
  std::vector<absl::Status> faults;
  const auto best = Best(CheckpointsIn(folder, faults), options);
  if (!best) {
    return NoneIn(folder, faults,
                  absl::StrCat(" with the metric '", options.best_metric, "'"));
  }
  return PathOf(folder, *best);
}

}  // namespace wengert::train
