// The time that has passed, for progress and for limits.
#ifndef WENGERT_TRAIN_CLOCK_H_
#define WENGERT_TRAIN_CLOCK_H_

#include <chrono>

namespace wengert::train {

// Seconds since some moment, by a clock that nobody sets back.
inline double SteadySeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_CLOCK_H_
