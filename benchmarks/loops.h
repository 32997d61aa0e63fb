// How a step divides among cores: the chunks of its parallel loops, and the
// time that passes in each.
#ifndef WENGERT_BENCHMARKS_LOOPS_H_
#define WENGERT_BENCHMARKS_LOOPS_H_

#include <cstdint>
#include <map>

#include "autograd/parallel.h"

namespace wengert::benchmarks {

// Watches the parallel loops while it lives. A loop of one chunk is serial.
class LoopTimes : public LoopObserver {
 public:
  LoopTimes();
  ~LoopTimes() override;
  void Enter(int64_t n_chunks) override;
  void Leave() override;

  // Seconds in the loops of so many chunks, by chunks.
  const std::map<int64_t, double>& seconds() const { return seconds_; }

 private:
  std::map<int64_t, double> seconds_;
  int64_t n_chunks_ = 0;
  double start_ = 0;
};

}  // namespace wengert::benchmarks

#endif  // WENGERT_BENCHMARKS_LOOPS_H_
