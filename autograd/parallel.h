// Parallel loops over one pool of threads. How a loop is split depends on its
// length alone, so results have the same bits for any number of threads.
#ifndef WENGERT_AUTOGRAD_PARALLEL_H_
#define WENGERT_AUTOGRAD_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace wengert {

// Calls fn(begin, end) for each chunk [i * grain, min(n, (i + 1) * grain)), on
// the calling thread and the pool's, and returns when all are done. A loop of
// one chunk, one inside another, and one that runs while another thread has the
// pool, run on the calling thread in the same chunks. n <= 0 does nothing.
// If fn throws, no later chunks start, and what the lowest chunk threw is
// thrown on. Throws Error unless grain >= 1.
void ParallelFor(int64_t n, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> fn);

// True inside the fn of a ParallelFor, on every thread and for every length.
inline bool InParallelFor();

// The number of threads that a loop may use, the calling one included. At
// first the environment's WENGERT_NUM_THREADS, else the number of cores.
int NumThreads();

// Waits for a loop that has the pool. Throws Error unless n >= 1, and inside a
// ParallelFor.
void SetNumThreads(int n);

// What code inside a loop may know of the thread that called the loop: a value
// per thread, which ParallelFor lends to the pool's threads while they run its
// chunks. (The tape keeps here that it records, so that recording can be
// refused inside a loop, wherever the chunk runs.)
extern constinit thread_local void* parallel_context;

namespace internal {
extern constinit thread_local bool in_parallel_for;
}
inline bool InParallelFor() { return internal::in_parallel_for; }

// Counts since the process began, for tests: in a loop that adds to
// worker_chunks at least two threads ran chunks.
struct ParallelStats {
  int64_t shared_loops = 0;   // loops that were offered to the pool's threads
  int64_t worker_chunks = 0;  // chunks that ran on the pool's threads
};
ParallelStats GetParallelStats();

// For measuring: told of every loop that is not inside another, on the thread
// that calls it.
class LoopObserver {
 public:
  virtual ~LoopObserver() = default;
  virtual void Enter(int64_t n_chunks) = 0;
  virtual void Leave() = 0;
};
// Null ends it. Not to be called while a loop runs; outlives every loop.
void SetLoopObserver(LoopObserver* observer);

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_PARALLEL_H_
