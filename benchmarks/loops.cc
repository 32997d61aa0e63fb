#include "benchmarks/loops.h"

#include "benchmarks/measure.h"

namespace wengert::benchmarks {

LoopTimes::LoopTimes() { SetLoopObserver(this); }
LoopTimes::~LoopTimes() { SetLoopObserver(nullptr); }

void LoopTimes::Enter(int64_t n_chunks) {
  n_chunks_ = n_chunks;
  start_ = Now();
}

void LoopTimes::Leave() { seconds_[n_chunks_] += Now() - start_; }

}  // namespace wengert::benchmarks
