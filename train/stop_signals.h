// Ctrl-C and kill as a request: a run ends its step, saves, and says how to go
// on.
#ifndef WENGERT_TRAIN_STOP_SIGNALS_H_
#define WENGERT_TRAIN_STOP_SIGNALS_H_

#include <array>
#include <csignal>

namespace wengert::train {

// While it lives, the first SIGINT, SIGTERM or SIGHUP of the process is noted.
// One that comes within half a second of it is the same one again: `timeout`
// signals its child and then the group that the child is in. One after that
// ends the process. Signals that the process ignores stay ignored (nohup).
// Signal handlers belong to the whole process, so there may be one at a time: a
// second one throws Error.
class StopSignals {
 public:
  StopSignals();
  // Sets back what was there. After a signal, what would have ended the process
  // at once still waits for the half second.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal that came, or 0.
  int received() const;

  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

 private:
  std::array<struct sigaction, kSignals.size()> before_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_STOP_SIGNALS_H_
