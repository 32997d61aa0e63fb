#include "train/stop_signals.h"

#include <time.h>

#include <atomic>
#include <cstdint>

#include "autograd/error.h"

namespace wengert::train {
namespace {

// A handler reaches nothing but what is static and free of locks.
std::atomic<bool> in_use = false;
std::atomic<int> received_signal = 0;
std::atomic<int64_t> received_at = 0;  // nanoseconds, or 0
static_assert(std::atomic<int64_t>::is_always_lock_free);

void Note(int signal) {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  const int64_t now = time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
  int64_t first = 0;
  if (received_at.compare_exchange_strong(first, now)) {
    received_signal = signal;
  } else if (now - first > 500'000'000) {
    std::signal(signal, SIG_DFL);
    raise(signal);  // as soon as this returns, for it is blocked here
  }
}

}  // namespace

StopSignals::StopSignals() {
  if (in_use.exchange(true)) {
    throw Error("StopSignals: the process has one already; wanted one at most");
  }
  received_signal = 0;
  received_at = 0;
  struct sigaction action = {};
  action.sa_handler = &Note;
  sigemptyset(&action.sa_mask);
  for (const int s : kSignals) sigaddset(&action.sa_mask, s);
  action.sa_flags = SA_RESTART;  // no write that is under way is cut short
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    // Left by one before this.
    if (before_[i].sa_handler == &Note) before_[i].sa_handler = SIG_DFL;
    if (before_[i].sa_handler != SIG_IGN) {
      sigaction(kSignals[i], &action, nullptr);
    }
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    if (received_signal != 0 && before_[i].sa_handler == SIG_DFL) continue;
    sigaction(kSignals[i], &before_[i], nullptr);
  }
  in_use = false;
}

int StopSignals::received() const { return received_signal; }

}  // namespace wengert::train
