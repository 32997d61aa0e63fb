#include "autograd/storage.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#if __has_feature(thread_sanitizer) && !defined(__SANITIZE_THREAD__)
#define __SANITIZE_THREAD__ 1
#endif
#endif

namespace wengert {
namespace {

constexpr size_t kMegabyte = 1 << 20;

// Blocks may be freed after main, and memory asked for.
struct FreedAtExit {
  void* block = nullptr;
  ~FreedAtExit() {
    PoolFree(block);
    PoolFree(PoolAllocate(1000));
  }
} freed_at_exit;

std::vector<size_t> SomeSizes() {
  std::vector<size_t> sizes;
  for (size_t bytes = 0; bytes <= 5000; ++bytes) sizes.push_back(bytes);
  for (size_t bytes = 5001; bytes < 40 * kMegabyte; bytes += bytes / 7) {
    sizes.push_back(bytes);
  }
  for (size_t bytes = 64; bytes <= 16 * kMegabyte; bytes *= 2) {
    sizes.insert(sizes.end(), {bytes - 1, bytes, bytes + 1});
  }
  return sizes;
}

TEST(PoolTest, BlocksAreAlignedAndWasteLessThanAnEighth) {
  for (size_t bytes : SomeSizes()) {
    const int64_t before = GetPoolStats().live_bytes;
    void* block = PoolAllocate(bytes);
    ASSERT_NE(block, nullptr);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u) << bytes;
    const int64_t taken = GetPoolStats().live_bytes - before;
    const int64_t waste = taken - static_cast<int64_t>(bytes);
    ASSERT_GE(waste, 0) << bytes;
    if (bytes <= 1024) {
      ASSERT_LE(waste, bytes == 0 ? 64 : 63) << bytes;
    } else {
      ASSERT_LT(8 * waste, static_cast<int64_t>(bytes)) << bytes;
    }
    PoolFree(block);
    ASSERT_EQ(GetPoolStats().live_bytes, before) << bytes;
  }
}

TEST(PoolTest, LiveBlocksDoNotOverlap) {
  struct Block {
    unsigned char* data;
    size_t bytes;
    unsigned char fill;
  };
  std::vector<Block> blocks;
  for (int round = 0; round < 3; ++round) {
    for (size_t bytes = 1; bytes < 200000; bytes += 1 + bytes / 3) {
      blocks.push_back({static_cast<unsigned char*>(PoolAllocate(bytes)), bytes,
                        static_cast<unsigned char>(blocks.size())});
      std::memset(blocks.back().data, blocks.back().fill, bytes);
    }
  }
  for (const Block& block : blocks) {
    for (size_t i = 0; i < block.bytes; ++i) {
      ASSERT_EQ(block.data[i], block.fill) << block.bytes << " " << i;
    }
    PoolFree(block.data);
  }
}

TEST(PoolTest, SameSizesAgainTakeNothingFromTheSystem) {
  auto step = [] {
    std::set<void*> blocks;
    for (size_t bytes = 1; bytes < kMegabyte; bytes += 1 + bytes / 2) {
      blocks.insert(PoolAllocate(bytes));
      blocks.insert(PoolAllocate(bytes));
    }
    for (void* block : blocks) PoolFree(block);
    return blocks;
  };
  const std::set<void*> first = step();
  const PoolStats before = GetPoolStats();
  EXPECT_EQ(step(), first);
  const PoolStats after = GetPoolStats();
  EXPECT_EQ(after.allocations - before.allocations,
            static_cast<int64_t>(first.size()));
  EXPECT_EQ(after.system_allocations, before.system_allocations);
  EXPECT_EQ(after.system_bytes, before.system_bytes);
  EXPECT_EQ(after.live_bytes, before.live_bytes);
}

TEST(PoolTest, SmallBlocksShareSlabs) {
  std::vector<void*> blocks;
  const PoolStats before = GetPoolStats();
  for (int i = 0; i < 6400; ++i) blocks.push_back(PoolAllocate(64));
  const PoolStats after = GetPoolStats();
  EXPECT_LE(after.system_allocations - before.system_allocations, 13);
  for (void* block : blocks) PoolFree(block);
}

TEST(PoolTest, LastFreedIsFirstReused) {
  void* a = PoolAllocate(5000);
  void* b = PoolAllocate(5000);
  PoolFree(b);
  PoolFree(a);
  EXPECT_EQ(PoolAllocate(5000), a);
  EXPECT_EQ(PoolAllocate(5000), b);
  PoolFree(a);
  PoolFree(b);
}

TEST(PoolTest, PeakIsTheHighestSinceReset) {
  const PoolStats start = GetPoolStats();
  void* a = PoolAllocate(2 * kMegabyte);
  void* b = PoolAllocate(3 * kMegabyte);
  PoolFree(b);
  EXPECT_GE(GetPoolStats().peak_live_bytes,
            start.live_bytes + static_cast<int64_t>(5 * kMegabyte));
  ResetPoolPeak();
  EXPECT_EQ(GetPoolStats().peak_live_bytes,
            start.live_bytes + static_cast<int64_t>(2 * kMegabyte));
  PoolFree(a);
  PoolFree(PoolAllocate(kMegabyte));
  EXPECT_EQ(GetPoolStats().peak_live_bytes,
            start.live_bytes + static_cast<int64_t>(2 * kMegabyte));
  EXPECT_EQ(GetPoolStats().live_bytes, start.live_bytes);
}

TEST(PoolTest, NullIsIgnored) { PoolFree(nullptr); }

TEST(PoolTest, MoreThanThereIsThrows) {
  EXPECT_THROW(PoolAllocate(SIZE_MAX), std::bad_alloc);
  EXPECT_THROW(PoolAllocate(SIZE_MAX / 2), std::bad_alloc);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const PoolStats before = GetPoolStats();
  EXPECT_THROW(PoolAllocate(size_t{1} << 46), std::bad_alloc);
  EXPECT_EQ(GetPoolStats().live_bytes, before.live_bytes);
  EXPECT_EQ(GetPoolStats().system_bytes, before.system_bytes);
#endif
}

TEST(PoolTest, BlocksFreedOnAnotherThreadComeBack) {
  for (size_t bytes : {size_t{100}, 3 * kMegabyte}) {
    std::set<void*> blocks;
    for (int i = 0; i < 10; ++i) blocks.insert(PoolAllocate(bytes));
    const PoolStats before = GetPoolStats();
    std::thread([&] {
      for (void* block : blocks) PoolFree(block);
    }).join();
    const PoolStats freed = GetPoolStats();
    EXPECT_LE(freed.live_bytes,
              before.live_bytes - 10 * static_cast<int64_t>(bytes));
    std::set<void*> again;
    for (int i = 0; i < 10; ++i) again.insert(PoolAllocate(bytes));
    if (bytes > 100) {
      EXPECT_EQ(again, blocks);  // small ones may have older peers
    }
    EXPECT_EQ(GetPoolStats().system_allocations, before.system_allocations);
    EXPECT_EQ(GetPoolStats().live_bytes, before.live_bytes);
    for (void* block : again) PoolFree(block);
  }
}

TEST(PoolTest, ANewThreadTakesOverTheHeapOfAnEndedOne) {
  void* kept = nullptr;
  void* freed = nullptr;
  std::thread([&] {
    kept = PoolAllocate(5 * kMegabyte);
    freed = PoolAllocate(6 * kMegabyte);
    PoolFree(freed);
  }).join();
  PoolFree(kept);  // the owner's thread has ended
  const PoolStats before = GetPoolStats();
  std::thread([&] {
    EXPECT_EQ(PoolAllocate(5 * kMegabyte), kept);
    EXPECT_EQ(PoolAllocate(6 * kMegabyte), freed);
    PoolFree(kept);
    PoolFree(freed);
  }).join();
  EXPECT_EQ(GetPoolStats().system_allocations, before.system_allocations);
  EXPECT_EQ(GetPoolStats().live_bytes, before.live_bytes);
}

TEST(PoolTest, DestructorsAtThreadEndMayUseThePool) {
  struct AtThreadEnd {
    void* block = nullptr;
    ~AtThreadEnd() {
      PoolFree(block);
      for (int i = 0; i < 3; ++i) PoolFree(PoolAllocate(7 * kMegabyte));
    }
  };
  const PoolStats before = GetPoolStats();
  std::thread([] {
    static thread_local AtThreadEnd at_thread_end;  // before the pool's own
    at_thread_end.block = PoolAllocate(1000);
  }).join();
  const PoolStats after = GetPoolStats();
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_LE(after.system_bytes - before.system_bytes,
            static_cast<int64_t>(8 * kMegabyte));
}

TEST(PoolTest, ThreadsExchangeBlocks) {
  const int64_t live = GetPoolStats().live_bytes;
  constexpr int kSlots = 64;
  std::vector<std::atomic<size_t*>> slots(kSlots);
  // The first word of a block is its size; the last byte tells it as well.
  auto release = [](size_t* block) {
    if (block == nullptr) return;
    const size_t bytes = block[0];
    EXPECT_EQ(reinterpret_cast<unsigned char*>(block)[bytes - 1], bytes % 251);
    PoolFree(block);
  };
  for (int round = 0; round < 2; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&, t] {
        uint32_t random = 1 + t + 10 * round;
        for (int i = 0; i < 5000; ++i) {
          random = random * 1664525 + 1013904223;
          const size_t bytes = 9 + (random >> 8) % (1 << (4 + random % 13));
          auto* block = static_cast<size_t*>(PoolAllocate(bytes));
          reinterpret_cast<unsigned char*>(block)[bytes - 1] = bytes % 251;
          block[0] = bytes;
          release(slots[(random >> 16) % kSlots].exchange(block));
          if (i % 1000 == 0) TrimPool();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (auto& slot : slots) release(slot.load());
  EXPECT_EQ(GetPoolStats().live_bytes, live);
}

TEST(TrimPoolTest, GivesFreeBlocksBack) {
  TrimPool();
  const PoolStats start = GetPoolStats();
  std::vector<void*> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(PoolAllocate(kMegabyte));
  void* kept = PoolAllocate(kMegabyte);
  std::memset(kept, 1, kMegabyte);
  const PoolStats full = GetPoolStats();
  EXPECT_EQ(full.system_allocations, start.system_allocations + 11);
  // Half of them come back from another thread.
  for (int i = 0; i < 5; ++i) PoolFree(blocks[i]);
  std::thread([&] {
    for (int i = 5; i < 10; ++i) PoolFree(blocks[i]);
  }).join();

  const size_t trimmed = TrimPool();
  EXPECT_GE(trimmed, 10 * kMegabyte);
  EXPECT_LT(trimmed, 11 * kMegabyte);
  EXPECT_EQ(GetPoolStats().system_bytes,
            full.system_bytes - static_cast<int64_t>(trimmed));
  EXPECT_EQ(TrimPool(), 0u);
  EXPECT_EQ(static_cast<char*>(kept)[kMegabyte - 1], 1);
  PoolFree(kept);
}

TEST(TrimPoolTest, KeepsSmallBlocks) {
  PoolFree(PoolAllocate(4096));
  TrimPool();
  const PoolStats before = GetPoolStats();
  PoolFree(PoolAllocate(4096));
  EXPECT_EQ(TrimPool(), 0u);
  EXPECT_EQ(GetPoolStats().system_allocations, before.system_allocations);
  PoolFree(PoolAllocate(4097));
  EXPECT_GT(TrimPool(), 4097u);
}

TEST(TrimPoolTest, TakesFromEndedThreadsAndNotFromLiveOnes) {
  TrimPool();
  std::atomic<int> step = 0;
  std::thread thread([&] {
    PoolFree(PoolAllocate(2 * kMegabyte));
    step = 1;
    while (step != 2) std::this_thread::yield();
  });
  while (step != 1) std::this_thread::yield();
  EXPECT_EQ(TrimPool(), 0u);
  step = 2;
  thread.join();
  EXPECT_GE(TrimPool(), 2 * kMegabyte);
}

#ifdef WENGERT_POISON
TEST(PoisonTest, NewBlocksAreNaN) {
  for (int round = 0; round < 2; ++round) {
    for (int n : {1, 3, 100, 20000}) {
      auto* x = static_cast<float*>(PoolAllocate(n * sizeof(float)));
      EXPECT_TRUE(std::all_of(x, x + n, [](float v) { return std::isnan(v); }));
      std::fill(x, x + n, 1.f);
      PoolFree(x);
      auto* y = static_cast<double*>(PoolAllocate(n * sizeof(double)));
      EXPECT_TRUE(
          std::all_of(y, y + n, [](double v) { return std::isnan(v); }));
      std::fill(y, y + n, 1.);
      PoolFree(y);
    }
  }
}
#endif

#ifdef __SANITIZE_ADDRESS__
TEST(PoisonDeathTest, FreedBlocksAndSlackAreOutOfBounds) {
  for (size_t bytes : {size_t{40}, 3000 * sizeof(float), kMegabyte - 100}) {
    auto* block = static_cast<volatile char*>(PoolAllocate(bytes));
    block[0] = 1;
    block[bytes - 1] = 1;
    EXPECT_DEATH(block[bytes] = 1, "use-after-poison");
    EXPECT_DEATH(block[-1] = 1, "use-after-poison");
    PoolFree(const_cast<char*>(block));
    EXPECT_DEATH(static_cast<void>(block[0]), "use-after-poison");
    EXPECT_DEATH(static_cast<void>(block[bytes - 1]), "use-after-poison");
    EXPECT_DEATH(PoolFree(const_cast<char*>(block)), "use-after-poison");
    // A shorter one in the same block, and the whole block again.
    auto* shorter = static_cast<volatile char*>(PoolAllocate(bytes - 7));
    EXPECT_EQ(shorter, block);
    EXPECT_DEATH(shorter[bytes - 7] = 1, "use-after-poison");
    PoolFree(const_cast<char*>(shorter));
    auto* again = static_cast<volatile char*>(PoolAllocate(bytes));
    EXPECT_EQ(again, block);
    again[bytes - 1] = 1;
    PoolFree(const_cast<char*>(again));
  }
}
#endif

TEST(PoolTest, ABlockMayOutliveMain) {
  freed_at_exit.block = PoolAllocate(kMegabyte);
  EXPECT_NE(freed_at_exit.block, nullptr);
}

}  // namespace
}  // namespace wengert
