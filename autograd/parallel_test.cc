#include "autograd/parallel.h"

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "autograd/error.h"
#include "gtest/gtest.h"

namespace wengert {
namespace {

using Chunks = std::multiset<std::pair<int64_t, int64_t>>;

// Loops after main has ended run on the thread that calls.
struct LoopAtExit {
  ~LoopAtExit() {
    const ParallelStats before = GetParallelStats();
    ParallelFor(10, 1, [&](int64_t, int64_t) { ++chunks; });
    if (chunks != 10) std::abort();
    if (GetParallelStats().shared_loops != before.shared_loops) std::abort();
  }
  std::atomic<int> chunks = 0;
} loop_at_exit;

Chunks ChunksOf(int64_t n, int64_t grain) {
  std::mutex mutex;
  Chunks chunks;
  ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
    std::lock_guard lock(mutex);
    chunks.insert({begin, end});
  });
  return chunks;
}

// Waits until the condition holds; false after a minute, so that a test fails
// instead of hanging.
template <typename Condition>
bool WaitUntil(Condition condition) {
  const auto start = std::chrono::steady_clock::now();
  while (!condition()) {
    if (std::chrono::steady_clock::now() - start > std::chrono::minutes(1)) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

class ParallelForTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { SetNumThreads(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Threads, ParallelForTest, testing::Values(1, 2, 3, 5));

TEST_P(ParallelForTest, SplitsByLengthAndGrainAlone) {
  EXPECT_EQ(NumThreads(), GetParam());
  EXPECT_EQ(ChunksOf(10, 4), (Chunks{{0, 4}, {4, 8}, {8, 10}}));
  EXPECT_EQ(ChunksOf(8, 4), (Chunks{{0, 4}, {4, 8}}));
  EXPECT_EQ(ChunksOf(3, 4), (Chunks{{0, 3}}));
  EXPECT_EQ(ChunksOf(0, 4), Chunks());
  EXPECT_EQ(ChunksOf(-1, 4), Chunks());
  EXPECT_EQ(ChunksOf(3, 1), (Chunks{{0, 1}, {1, 2}, {2, 3}}));
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(ChunksOf(5, kMax), (Chunks{{0, 5}}));
  EXPECT_EQ(ChunksOf(kMax, kMax - 1),
            (Chunks{{0, kMax - 1}, {kMax - 1, kMax}}));
}

TEST_P(ParallelForTest, EveryElementOnceAndVisibleAfterwards) {
  for (int64_t n : {1, 2, 63, 1000}) {
    for (int64_t grain : {1, 2, 7, 100}) {
      std::vector<int> count(n, 0);
      ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++count[i];
      });
      EXPECT_EQ(count, std::vector<int>(n, 1)) << n << " " << grain;
    }
  }
}

TEST_P(ParallelForTest, ManyShortLoops) {
  std::vector<int64_t> sum(40, 0);
  for (int loop = 0; loop < 3000; ++loop) {
    const int64_t n = 1 + loop % 40;
    ParallelFor(n, 1, [&](int64_t begin, int64_t) { sum[begin] += loop; });
    // Now and then long enough for the workers to fall asleep.
    if (loop % 1000 == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  for (int64_t i = 0; i < 40; ++i) {
    int64_t want = 0;
    for (int loop = 0; loop < 3000; ++loop) {
      if (i <= loop % 40) want += loop;
    }
    EXPECT_EQ(sum[i], want) << i;
  }
}

TEST_P(ParallelForTest, SumsHaveTheSameBits) {
  auto sum = [] {
    std::vector<float> partial(100);
    ParallelFor(100000, 1000, [&](int64_t begin, int64_t end) {
      float total = 0;
      for (int64_t i = begin; i < end; ++i) total += std::sin(float(i));
      partial[begin / 1000] = total;
    });
    float total = 0;
    for (float p : partial) total += p;
    return total;
  };
  SetNumThreads(1);
  const float serial = sum();
  SetNumThreads(GetParam());
  EXPECT_EQ(sum(), serial);
}

TEST_P(ParallelForTest, ThrowsWhatTheLowestChunkThrew) {
  for (int loop = 0; loop < 200; ++loop) {
    std::atomic<int> started = 0;
    try {
      ParallelFor(1000, 1, [&](int64_t begin, int64_t) {
        ++started;
        if (begin >= 5) throw std::runtime_error(std::to_string(begin));
      });
      FAIL() << "should have thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "5");
    }
    // Chunks 0 to 5, and at most two more that each other thread had begun: the
    // first of its own share, and one of the caller's.
    EXPECT_GE(started, 6);
    EXPECT_LE(started, 6 + 2 * (GetParam() - 1));
    EXPECT_FALSE(InParallelFor());
  }
  EXPECT_EQ(ChunksOf(10, 1).size(), 10u);  // and all goes on as before
}

TEST_P(ParallelForTest, ThrowsOnlyWhenRunningChunksHaveEnded) {
  if (GetParam() == 1) return;
  std::atomic<bool> second_started = false;
  std::atomic<bool> second_ended = false;
  EXPECT_THROW(
      ParallelFor(2, 1,
                  [&](int64_t begin, int64_t) {
                    if (begin == 0) {
                      WaitUntil([&] { return second_started.load(); });
                      throw std::runtime_error("first");
                    }
                    second_started = true;
                    std::this_thread::sleep_for(std::chrono::milliseconds(50));
                    second_ended = true;
                  }),
      std::runtime_error);
  EXPECT_TRUE(second_started);
  EXPECT_TRUE(second_ended);
}

TEST_P(ParallelForTest, TheLowestChunkWinsWhicheverThrewFirst) {
  if (GetParam() == 1) return;
  for (int first : {0, 1}) {
    std::atomic<int> started = 0;
    try {
      ParallelFor(2, 1, [&](int64_t begin, int64_t) {
        ++started;
        WaitUntil([&] { return started == 2; });
        if (begin != first) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        throw std::runtime_error(std::to_string(begin));
      });
      FAIL() << "should have thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "0");
    }
  }
}

TEST_P(ParallelForTest, AnInnerLoopRunsOnItsThread) {
  EXPECT_FALSE(InParallelFor());
  std::vector<int> count(1000, 0);
  std::atomic<int> wrong = 0;
  ParallelFor(10, 1, [&](int64_t outer, int64_t) {
    const std::thread::id thread = std::this_thread::get_id();
    int64_t next = 0;
    if (!InParallelFor()) ++wrong;
    ParallelFor(100, 30, [&](int64_t begin, int64_t end) {
      if (std::this_thread::get_id() != thread || begin != next) ++wrong;
      if (!InParallelFor()) ++wrong;
      for (int64_t i = begin; i < end; ++i) ++count[outer * 100 + i];
      next = end;
    });
    if (next != 100 || !InParallelFor()) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(count, std::vector<int>(1000, 1));
  EXPECT_FALSE(InParallelFor());
}

TEST_P(ParallelForTest, SeveralThreadsMayLoopAtOnce) {
  std::vector<std::thread> callers;
  std::vector<int64_t> sums(4, 0);
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&, c] {
      for (int loop = 0; loop < 300; ++loop) {
        std::vector<int64_t> part(10);
        ParallelFor(100, 10, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) part[begin / 10] += i + c;
        });
        for (int64_t p : part) sums[c] += p;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (int c = 0; c < 4; ++c) EXPECT_EQ(sums[c], 300 * (4950 + 100 * c));
}

TEST_P(ParallelForTest, OneCallerHasThePoolAndTheOtherDoesNotWait) {
  // The first loop ends only after the second has.
  std::atomic<bool> first_runs = false;
  std::atomic<bool> second_done = false;
  std::atomic<bool> in_time = true;
  std::thread first([&] {
    ParallelFor(2, 1, [&](int64_t, int64_t) {
      first_runs = true;
      if (!WaitUntil([&] { return second_done.load(); })) in_time = false;
    });
  });
  ASSERT_TRUE(WaitUntil([&] { return first_runs.load(); }));
  const int64_t worker_chunks = GetParallelStats().worker_chunks;
  EXPECT_EQ(ChunksOf(10, 3).size(), 4u);
  EXPECT_EQ(GetParallelStats().worker_chunks, worker_chunks);
  second_done = true;
  first.join();
  EXPECT_TRUE(in_time);
}

TEST_P(ParallelForTest, LendsItsContext) {
  std::atomic<int> wrong = 0;
  auto see_context_everywhere = [&](void* context) {
    parallel_context = context;
    const int64_t before = GetParallelStats().worker_chunks;
    EXPECT_TRUE(WaitUntil([&] {
      ParallelFor(20, 1, [&](int64_t, int64_t) {
        if (parallel_context != context) ++wrong;
        ParallelFor(3, 1, [&](int64_t, int64_t) {
          if (parallel_context != context) ++wrong;
        });
      });
      return GetParam() == 1 || GetParallelStats().worker_chunks > before;
    }));
    EXPECT_EQ(parallel_context, context);
  };
  int mine = 0;
  int other = 0;
  for (void* context : {static_cast<void*>(&mine), static_cast<void*>(&other),
                        static_cast<void*>(nullptr)}) {
    see_context_everywhere(context);
  }
  EXPECT_EQ(wrong, 0);
}

TEST(ParallelTest, ChunksRunOnAsManyThreadsAsThereAre) {
  for (int threads : {5, 2, 3}) {
    SetNumThreads(threads);
    const ParallelStats before = GetParallelStats();
    std::mutex mutex;
    std::set<std::thread::id> ids;
    std::atomic<int> running = 0;
    std::atomic<bool> in_time = true;
    std::thread::id first;
    // No chunk ends before all have begun, so each has a thread to itself.
    ParallelFor(threads, 1, [&](int64_t begin, int64_t) {
      {
        std::lock_guard lock(mutex);
        ids.insert(std::this_thread::get_id());
        if (begin == 0) first = std::this_thread::get_id();
      }
      ++running;
      if (!WaitUntil([&] { return running == threads; })) in_time = false;
    });
    EXPECT_TRUE(in_time);
    EXPECT_EQ(ids.size(), static_cast<size_t>(threads));
    EXPECT_EQ(first, std::this_thread::get_id());
    const ParallelStats after = GetParallelStats();
    EXPECT_EQ(after.shared_loops, before.shared_loops + 1);
    EXPECT_EQ(after.worker_chunks, before.worker_chunks + threads - 1);
  }
}

TEST(ParallelTest, ChunksRunOnNoMoreThreadsThanThereAre) {
  for (int threads : {5, 2}) {
    SetNumThreads(threads);
    std::mutex mutex;
    std::set<std::thread::id> ids;
    ParallelFor(40, 1, [&](int64_t, int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    });
    EXPECT_LE(ids.size(), static_cast<size_t>(threads));
  }
}

TEST(ParallelTest, WhatOneThreadDoesAloneIsNotShared) {
  SetNumThreads(3);
  const ParallelStats before = GetParallelStats();
  ChunksOf(4, 4);
  SetNumThreads(1);
  ChunksOf(40, 4);
  const ParallelStats after = GetParallelStats();
  EXPECT_EQ(after.shared_loops, before.shared_loops);
  EXPECT_EQ(after.worker_chunks, before.worker_chunks);
}

TEST(ParallelTest, AloneChunksRunInOrder) {
  SetNumThreads(1);
  std::vector<int64_t> order;
  ParallelFor(5, 2, [&](int64_t begin, int64_t) { order.push_back(begin); });
  EXPECT_EQ(order, (std::vector<int64_t>{0, 2, 4}));
}

TEST(ParallelTest, TheNumberOfThreadsMayChangeWhileOthersLoop) {
  std::atomic<bool> stop = false;
  std::atomic<int> loops = 0;
  std::atomic<int> wrong = 0;
  std::thread looping([&] {
    for (; !stop; ++loops) {
      std::atomic<int> count = 0;
      ParallelFor(20, 1, [&](int64_t, int64_t) { ++count; });
      if (count != 20) ++wrong;
    }
  });
  for (int i = 0; i < 100; ++i) {
    SetNumThreads(1 + i % 5);
    const int before = loops;
    EXPECT_TRUE(WaitUntil([&] { return loops > before; }));
  }
  stop = true;
  looping.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ParallelTest, Misuse) {
  auto nothing = [](int64_t, int64_t) {};
  EXPECT_THROW(ParallelFor(3, 0, nothing), Error);
  EXPECT_THROW(ParallelFor(0, -1, nothing), Error);
  EXPECT_THROW(SetNumThreads(0), Error);
  for (int threads : {1, 3}) {
    SetNumThreads(threads);
    EXPECT_THROW(ParallelFor(3, 1, [](int64_t, int64_t) { SetNumThreads(2); }),
                 Error);
    EXPECT_EQ(NumThreads(), threads);
  }
}

// Each runs in a fresh process.
class ParallelProcessDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
  }
  void TearDown() override { unsetenv("WENGERT_NUM_THREADS"); }
};

TEST_F(ParallelProcessDeathTest, TheEnvironmentSaysHowManyThreads) {
  setenv("WENGERT_NUM_THREADS", "7", 1);
  EXPECT_EXIT(std::exit(NumThreads()), testing::ExitedWithCode(7), "");
  for (const char* bad : {"0", "-2", "two", ""}) {
    setenv("WENGERT_NUM_THREADS", bad, 1);
    EXPECT_EXIT(
        {
          try {
            NumThreads();
          } catch (const Error& e) {
            // The loop at exit would throw again.
            std::string text = e.what();
            std::_Exit(text.find("WENGERT_NUM_THREADS") == 0 ? 3 : 4);
          }
        },
        testing::ExitedWithCode(3), "");
  }
}

TEST_F(ParallelProcessDeathTest, ExitInsideALoopDoesNotHang) {
  EXPECT_EXIT(
      {
        SetNumThreads(3);
        std::atomic<int> running = 0;
        ParallelFor(3, 1, [&](int64_t begin, int64_t) {
          ++running;
          WaitUntil([&] { return running == 3; });
          if (begin == 2) std::exit(5);
          for (;;) std::this_thread::yield();
        });
      },
      testing::ExitedWithCode(5), "");
}

TEST(ParallelTest, AnObserverSeesTheOuterLoops) {
  struct Seen : LoopObserver {
    void Enter(int64_t n_chunks) override { events.push_back(n_chunks); }
    void Leave() override { events.push_back(-1); }
    std::vector<int64_t> events;
  } seen;
  SetLoopObserver(&seen);
  ParallelFor(10, 3, [](int64_t, int64_t) {
    ParallelFor(5, 1, [](int64_t, int64_t) {});
  });
  EXPECT_THROW(ParallelFor(1, 1, [](int64_t, int64_t) { throw Error("x"); }),
               Error);
  ParallelFor(0, 1, [](int64_t, int64_t) {});
  SetLoopObserver(nullptr);
  ParallelFor(10, 3, [](int64_t, int64_t) {});
  EXPECT_EQ(seen.events, (std::vector<int64_t>{4, -1, 1, -1}));
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WENGERT_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WENGERT_SANITIZER
#endif
#ifndef WENGERT_SANITIZER  // sanitizers need terabytes of addresses
TEST_F(ParallelProcessDeathTest, WorksWithFewerThreadsThanAskedFor) {
  EXPECT_EXIT(
      {
        rlimit limit;
        limit.rlim_cur = limit.rlim_max = 200 << 20;
        if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(1);
        SetNumThreads(1000);
        std::atomic<int> chunks = 0;  // there may be no memory for a vector
        ParallelFor(100, 1, [&](int64_t, int64_t) { ++chunks; });
        std::_Exit(chunks == 100 && NumThreads() < 1000 ? 6 : 1);
      },
      testing::ExitedWithCode(6), "");
}
#endif

}  // namespace
}  // namespace wengert
