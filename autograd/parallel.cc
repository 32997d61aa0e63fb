// The pool of threads. A loop is offered in `state_`; a worker enters by
// counting itself in while the loop is open, takes the chunks of its share and
// then of the others' until none is left, and counts itself out. The calling
// thread does the same, then closes the loop and waits for the workers inside,
// never for one that has not come: a loop does not wait until a sleeping thread
// has woken up.
#include "autograd/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/storage.h"

namespace wengert {

constinit thread_local void* parallel_context = nullptr;
constinit thread_local bool internal::in_parallel_for = false;

namespace {

using ChunkFunction = absl::FunctionRef<void(int64_t begin, int64_t end)>;

using internal::in_parallel_for;

struct InParallelForScope {
  InParallelForScope() : before(std::exchange(in_parallel_for, true)) {}
  ~InParallelForScope() { in_parallel_for = before; }
  const bool before;
};

std::atomic<LoopObserver*> loop_observer{nullptr};

// Tells the observer, if there is one, of a loop from its start to its end.
class Observed {
 public:
  explicit Observed(int64_t n_chunks)
      : observer_(in_parallel_for
                      ? nullptr
                      : loop_observer.load(std::memory_order_relaxed)) {
    if (observer_ != nullptr) observer_->Enter(n_chunks);
  }
  ~Observed() {
    if (observer_ != nullptr) observer_->Leave();
  }
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;

 private:
  LoopObserver* observer_;
};

// Waits a moment; called with turn = 0, 1, ... Gives the core away after a few
// microseconds, as there may be more threads than cores.
void Pause(int turn) {
  constexpr int kSpins = 200;
  if (turn >= kSpins) {
    sched_yield();
  } else {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
}

// A worker sleeps after so many turns, about a quarter of a millisecond.
constexpr int kTurnsAwake = 1000;

// Address space for the blocks of a worker: its kernels' working memory.
constexpr size_t kReserve = size_t{4} << 20;

int DefaultNumThreads() {
  if (const char* text = std::getenv("WENGERT_NUM_THREADS")) {
    int n;
    if (!absl::SimpleAtoi(text, &n) || n < 1) {
      throw Error(absl::StrCat(
          "WENGERT_NUM_THREADS: want a number of threads >= 1, got '", text,
          "'"));
    }
    return n;
  }
  cpu_set_t cores;  // those that this process may use
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
    return CPU_COUNT(&cores);
  }
  return std::max<int>(1, std::thread::hardware_concurrency());
}

void RunHere(int64_t n, int64_t grain, ChunkFunction fn) {
  InParallelForScope scope;
  for (int64_t begin = 0; begin < n;) {
    const int64_t end = grain < n - begin ? begin + grain : n;
    fn(begin, end);
    begin = end;
  }
}

class Pool {
 public:
  static Pool& Get() {
    // Never destroyed, so that destructors which run later may still loop;
    // its threads end with main.
    static Pool& pool = *new Pool;
    struct StopAtExit {
      ~StopAtExit() {
        // From inside a loop nothing could be waited for.
        if (!in_parallel_for) pool.StopForGood();
      }
    };
    static StopAtExit stop_at_exit;
    return pool;
  }

  int num_threads() const { return num_threads_; }

  void set_num_threads(int n) {
    std::lock_guard lock(loop_mutex_);
    if (static_cast<size_t>(n) <= workers_.size()) StopWorkers();
    num_threads_ = n;
  }

  ParallelStats stats() const { return {shared_loops_, worker_chunks_}; }

  void Run(int64_t n, int64_t grain, ChunkFunction fn) {
    std::unique_lock lock(loop_mutex_, std::try_to_lock);
    if (lock) StartWorkers();
    if (!lock || workers_.empty()) return RunHere(n, grain, fn);
    n_ = n;
    grain_ = grain;
    chunks_ = (n - 1) / grain + 1;
    fn_ = &fn;
    context_ = parallel_context;
    stop_at_.store(chunks_, std::memory_order_relaxed);
    const int64_t shares = static_cast<int64_t>(workers_.size()) + 1;
    for (int64_t i = 0; i < shares; ++i) {
      shares_[i].next.store(chunks_ * i / shares, std::memory_order_relaxed);
      shares_[i].end = chunks_ * (i + 1) / shares;
    }
    ++shared_loops_;
    Open();
    {
      InParallelForScope scope;
      RunChunks(0);
    }
    state_.fetch_and(~kOpen);
    for (int turn = 0; (state_.load() & kInside) != 0; ++turn) Pause(turn);
    if (error_ != nullptr) {
      std::rethrow_exception(std::exchange(error_, nullptr));
    }
  }

 private:
  // state_: the number of the loop, whether it is open, and how many workers
  // are inside. Only the thread that holds loop_mutex_ opens and closes.
  static constexpr uint64_t kLoop = uint64_t{1} << 32;
  static constexpr uint64_t kOpen = uint64_t{1} << 31;
  static constexpr uint64_t kInside = kOpen - 1;

  void Open() {
    state_.store((state_.load() / kLoop + 1) * kLoop | kOpen);
    // A worker counts itself in sleeping_ before it looks at state_ for the
    // last time, so either it sees the loop or it is seen here.
    int64_t sleeping = sleeping_.load();
    if (sleeping == 0) return;
    { std::lock_guard lock(sleep_mutex_); }
    for (sleeping = std::min(sleeping, chunks_ - 1); sleeping > 0; --sleeping) {
      wake_.notify_one();
    }
  }

  // Runs the chunks of the thread's own share, then what is left of the
  // others'; returns how many.
  int64_t RunChunks(size_t own) {
    const size_t shares = workers_.size() + 1;
    int64_t count = 0;
    for (size_t i = 0; i < shares; ++i) {
      Share& share = shares_[(own + i) % shares];
      if (share.next.load(std::memory_order_relaxed) >= share.end) continue;
      for (int64_t chunk; (chunk = share.next.fetch_add(1)) < share.end;
           ++count) {
        if (chunk < stop_at_.load(std::memory_order_relaxed)) RunChunk(chunk);
      }
    }
    return count;
  }

  void RunChunk(int64_t chunk) {
    const int64_t begin = chunk * grain_;
    try {
      (*fn_)(begin, grain_ < n_ - begin ? begin + grain_ : n_);
    } catch (...) {
      // Lower chunks still run, so that it is always the same one that throws.
      std::lock_guard lock(error_mutex_);
      if (chunk < stop_at_) {
        stop_at_ = chunk;
        error_ = std::current_exception();
      }
    }
  }

  // True if there is a loop to work on other than the last one.
  bool HasWork(uint64_t last) const {
    const uint64_t state = state_.load();
    return (state & kOpen) != 0 && state / kLoop != last;
  }

  void Work(size_t own) {
    in_parallel_for = true;
    uint64_t last = 0;  // the loop that this worker was in
    for (;;) {
      for (int turn = 0; !HasWork(last) && !stop_; ++turn) {
        if (turn < kTurnsAwake) {
          Pause(turn);
        } else {
          std::unique_lock lock(sleep_mutex_);
          ++sleeping_;
          wake_.wait(lock, [&] { return HasWork(last) || stop_; });
          --sleeping_;
        }
      }
      if (stop_) return;
      uint64_t state = state_.load();
      if ((state & kOpen) == 0 ||
          !state_.compare_exchange_strong(state, state + 1)) {
        continue;
      }
      last = state / kLoop;
      parallel_context = context_;
      worker_chunks_ += RunChunks(own);
      parallel_context = nullptr;
      --state_;
    }
  }

  void StartWorkers() {
    while (!stopped_for_good_ &&
           static_cast<int>(workers_.size()) + 1 < num_threads_) {
      try {
        const size_t own = workers_.size() + 1;
        shares_.reset(new Share[own + 1]);
        workers_.emplace_back([this, own] {
          PoolReserve(kReserve);
          ++ready_;
          ready_.notify_one();
          Work(own);
        });
      } catch (const std::exception&) {
        // No more threads to be had, or no memory for one: fewer give the same
        // results.
        num_threads_ = static_cast<int>(workers_.size()) + 1;
      }
    }
    // What a thread takes from the system it takes here, not in some later
    // loop.
    const int started = static_cast<int>(workers_.size());
    for (int n = ready_; n < started; n = ready_) ready_.wait(n);
  }

  void StopWorkers() {
    stop_ = true;
    { std::lock_guard lock(sleep_mutex_); }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
    ready_ = 0;
    stop_ = false;
  }

  void StopForGood() {
    std::lock_guard lock(loop_mutex_);
    StopWorkers();
    stopped_for_good_ = true;
  }

  // Held by the thread whose loop the workers run.
  std::mutex loop_mutex_;
  std::vector<std::thread> workers_;
  std::atomic<int> ready_{0};  // workers that have their memory
  std::atomic<int> num_threads_ = DefaultNumThreads();
  bool stopped_for_good_ = false;

  // The loop: written while it is closed.
  int64_t n_ = 0;
  int64_t grain_ = 0;
  int64_t chunks_ = 0;
  const ChunkFunction* fn_ = nullptr;
  void* context_ = nullptr;

  std::mutex error_mutex_;
  std::exception_ptr error_;

  std::mutex sleep_mutex_;
  std::condition_variable wake_;
  std::atomic<int64_t> sleeping_{0};
  std::atomic<bool> stop_{false};

  std::atomic<int64_t> shared_loops_{0};
  std::atomic<int64_t> worker_chunks_{0};

  // A thread's part of the chunks: neighbours, and the same ones in each loop
  // of equal length, so that a thread finds in its cache what it wrote there in
  // the loop before. What a thread has not taken when others are done, they
  // take.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  std::unique_ptr<Share[]> shares_;  // the caller's, then the workers'
  alignas(64) std::atomic<int64_t> stop_at_{0};  // the lowest that threw

  // On its own cache line: all threads write it.
  alignas(64) std::atomic<uint64_t> state_{0};
};

}  // namespace

void SetLoopObserver(LoopObserver* observer) { loop_observer = observer; }

void ParallelFor(int64_t n, int64_t grain, ChunkFunction fn) {
  if (grain < 1) {
    throw Error(absl::StrCat("ParallelFor: want grain >= 1, got ", grain));
  }
  if (n <= 0) return;
  const Observed observed((n - 1) / grain + 1);
  if (n <= grain || in_parallel_for || Pool::Get().num_threads() == 1) {
    RunHere(n, grain, fn);
  } else {
    Pool::Get().Run(n, grain, fn);
  }
}

int NumThreads() { return Pool::Get().num_threads(); }

void SetNumThreads(int n) {
  if (n < 1) throw Error(absl::StrCat("SetNumThreads: want n >= 1, got ", n));
  if (in_parallel_for) {
    throw Error("SetNumThreads: not to be called inside a ParallelFor");
  }
  Pool::Get().set_num_threads(n);
}

ParallelStats GetParallelStats() { return Pool::Get().stats(); }

}  // namespace wengert
