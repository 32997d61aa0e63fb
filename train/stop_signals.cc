#include "train/stop_signals.h"

#include <atomic>

#include "autograd/error.h"

namespace wengert::train {
namespace {

// A handler reaches nothing but what is static.
std::atomic<bool> in_use = false;
volatile std::sig_atomic_t received_signal = 0;
static_assert(std::atomic<bool>::is_always_lock_free);

void Note(int signal) {
  received_signal = signal;
  for (const int s : StopSignals::kSignals) {
    struct sigaction now;
    // Where something else has taken the signal over, leave it.
    if (sigaction(s, nullptr, &now) == 0 && now.sa_handler == &Note) {
      now.sa_handler = SIG_DFL;
      sigaction(s, &now, nullptr);
    }
  }
}

}  // namespace

StopSignals::StopSignals() {
  if (in_use.exchange(true)) {
    throw Error("StopSignals: the process has one already; wanted one at most");
  }
  received_signal = 0;
  struct sigaction action = {};
  action.sa_handler = &Note;
  sigemptyset(&action.sa_mask);
  for (const int s : kSignals) sigaddset(&action.sa_mask, s);
  action.sa_flags = SA_RESTART;  // no write that is under way is cut short
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) {
      sigaction(kSignals[i], &action, nullptr);
    }
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &before_[i], nullptr);
  }
  in_use = false;
}

int StopSignals::received() const { return received_signal; }

}  // namespace wengert::train
