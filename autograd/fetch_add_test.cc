#include "autograd/fetch_add.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace wengert {
namespace {

TEST(FetchAdd, GivesWhatWasThere) {
  std::atomic<int> x{5};
  EXPECT_EQ(FetchAdd(x, 2, std::memory_order_relaxed), 5);
  EXPECT_EQ(FetchAdd(x, -3, std::memory_order_acq_rel), 7);
  EXPECT_EQ(x, 4);
}

TEST(FetchAdd, LosesNothingBetweenThreads) {
  constexpr int64_t kThreads = 4, kTimes = 2000000;
  std::atomic<int64_t> x{0};
  FetchAdd(x, 1, std::memory_order_relaxed);  // by the only thread
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      for (int64_t i = 0; i < kTimes; ++i) {
        FetchAdd(x, 1, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(x, kThreads * kTimes + 1);
}

}  // namespace
}  // namespace wengert
