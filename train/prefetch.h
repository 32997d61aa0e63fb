// Prepares the batches to come on a thread of its own, while steps run.
//
//   BatchStream batches(...);  // what a checkpoint saves
//   Prefetch<TokenFile::Batch> prefetch(batches, make);
//   for (...) {
//     const auto batch = prefetch.Get(batches.Next());
//
// The thread reads a copy of the stream ahead, so the place that a checkpoint
// saves is always that of the batches that steps have consumed.
#ifndef WENGERT_TRAIN_PREFETCH_H_
#define WENGERT_TRAIN_PREFETCH_H_

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "autograd/error.h"
#include "train/batch_stream.h"

namespace wengert::train {

// T may be a StatusOr.
template <class T>
class Prefetch {
 public:
  // Called on the thread of this Prefetch, one batch after the other.
  using Make = std::function<T(absl::Span<const int64_t> indices)>;

  // Of the batches that `batches` gives next. At most `depth` are kept
  // prepared, and one more is being made. After batches.Restore a new Prefetch
  // is needed. Throws Error unless depth >= 1.
  Prefetch(const BatchStream& batches, Make make, int64_t depth = 2)
      : batches_(batches), make_(std::move(make)) {
    if (depth < 1) {
      throw Error(absl::StrCat("Prefetch: depth ", depth, ", wanted >= 1"));
    }
    slots_.resize(depth);
    thread_ = std::thread([this] { Run(); });
  }

  // Waits for the one `make` that may be running.
  ~Prefetch() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    room_.notify_one();
    thread_.join();
  }
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // What `make` returned for the next batch, or throws what it threw. Waits
  // until it is there. Throws Error, and keeps the batch, when that batch is
  // not of these indices.
  T Get(absl::Span<const int64_t> indices) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return prepared_ > 0; });
    Slot& slot = slots_[next_];
    if (indices != absl::MakeConstSpan(slot.indices)) {
      throw Error(absl::StrCat("Prefetch: batch ", Show(indices),
                               ", prepared was ", Show(slot.indices)));
    }
    // Left empty, for the thread fills it again.
    std::optional<T> value = std::exchange(slot.value, std::nullopt);
    const std::exception_ptr error = std::exchange(slot.error, nullptr);
    next_ = (next_ + 1) % slots_.size();
    --prepared_;
    lock.unlock();
    room_.notify_one();
    if (error) std::rethrow_exception(error);
    return *std::move(value);
  }

 private:
  struct Slot {
    std::vector<int64_t> indices;
    std::optional<T> value;
    std::exception_ptr error;
  };

  static std::string Show(absl::Span<const int64_t> indices) {
    constexpr size_t kShown = 8;
    const auto some = indices.subspan(0, kShown);
    return absl::StrCat("[", absl::StrJoin(some, ", "),
                        some.size() < indices.size() ? ", ...] of " : "] of ",
                        indices.size());
  }

  void Run() {
    for (size_t i = 0;; i = (i + 1) % slots_.size()) {
      Slot& slot = slots_[i];
      {
        std::unique_lock lock(mutex_);
        room_.wait(lock, [&] {
          return stop_ || prepared_ < static_cast<int64_t>(slots_.size());
        });
        if (stop_) return;
      }
      // Nobody else looks at a slot that is not prepared.
      try {
        const auto indices = batches_.Next();
        slot.indices.assign(indices.begin(), indices.end());
        slot.value.emplace(make_(slot.indices));
      } catch (...) {
        slot.error = std::current_exception();
      }
      {
        std::lock_guard lock(mutex_);
        ++prepared_;
      }
      ready_.notify_one();
    }
  }

  BatchStream batches_;  // the thread's
  const Make make_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable ready_, room_;
  size_t next_ = 0;       // the slot that Get takes
  int64_t prepared_ = 0;  // slots from there on
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_PREFETCH_H_
