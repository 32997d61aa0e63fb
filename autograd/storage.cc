// Each thread has a heap: one list of free blocks per size class, touched by
// no other thread. A block freed on another thread goes back to the heap that
// made it over a lock-free stack, which the owner empties when a list of its
// own has run out. A heap outlives its thread and is taken over by a later one,
// so a block always has an owner to go back to.
#include "autograd/storage.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace wengert {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSlabBlockBytes = 4096;  // blocks up to here share slabs
constexpr size_t kSlabBytes = 64 * 1024;
constexpr size_t kMaxBytes = size_t{1} << 46;

// Sizes are counted in units of 64 bytes: 1, 2, ..., 16, then eight to an
// octave (18, 20, ..., 32, 36, ...), so that less than an eighth is wasted.
int SizeClass(size_t bytes) {
  const size_t last = bytes == 0 ? 0 : (bytes - 1) / kAlignment;
  if (last < 8) return static_cast<int>(last);
  const int shift = std::bit_width(last) - 4;
  return 8 * shift + static_cast<int>(last >> shift);
}

constexpr size_t ClassBytes(int size_class) {
  if (size_class < 16) return (size_class + 1) * kAlignment;
  const int shift = size_class / 8 - 1;
  return (size_t{9} + size_class % 8) * kAlignment << shift;
}

constexpr int kClasses = 8 * (46 - 6 - 4) + 16;
static_assert(ClassBytes(kClasses - 1) == kMaxBytes);

struct Heap;

// Lies in the 64 bytes before the data. `next` links free blocks.
struct alignas(kAlignment) Header {
  Header* next;
  Heap* owner;
  size_t bytes;  // of the data, as rounded up
  bool in_slab;  // and not given back by itself
  int size_class;

  char* data() { return reinterpret_cast<char*>(this + 1); }
  static Header* Of(void* data) { return static_cast<Header*>(data) - 1; }
};
static_assert(sizeof(Header) == kAlignment);

// A count that one thread writes and others may read: no atomic
// read-modify-write, so it costs what a plain integer does.
class Counter {
 public:
  int64_t value() const { return value_.load(std::memory_order_relaxed); }
  void Set(int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void Add(int64_t n) { Set(value() + n); }

 private:
  std::atomic<int64_t> value_{0};
};

// Under address sanitizer a free block, the slack after the bytes asked for and
// the unused end of the header are out of bounds. (The links in the header stay
// readable, or LeakSanitizer would not follow them.)
#ifdef __SANITIZE_ADDRESS__
void MarkUsed(Header* block, size_t bytes) {
  __asan_unpoison_memory_region(block->data(), bytes);
  __asan_poison_memory_region(block->data() + bytes, block->bytes - bytes);
}
void MarkFree(Header* block) {
  static_cast<void>(
      *static_cast<volatile char*>(block->data()));  // freed twice?
  char* end_of_fields = reinterpret_cast<char*>(&block->size_class + 1);
  __asan_poison_memory_region(end_of_fields,
                              block->data() + block->bytes - end_of_fields);
}
void MarkReturned(Header* block) {
  __asan_unpoison_memory_region(block, sizeof(Header) + block->bytes);
}
#else
void MarkUsed(Header*, size_t) {}
void MarkFree(Header*) {}
void MarkReturned(Header*) {}
#endif

struct Heap {
  Header* free[kClasses] = {};
  char* slab = nullptr;  // what is left of the newest slab
  char* slab_end = nullptr;
  bool slab_is_reserve = false;  // made by PoolReserve: for larger blocks too
  Counter system_bytes;
  Counter system_allocations;
  Counter allocations;
  Counter live;  // blocks not in `free`, so those in `returned` count too
  Counter peak;
  // Pushed by other threads, emptied by the owner.
  alignas(kAlignment) std::atomic<Header*> returned{nullptr};
  std::atomic<int64_t> returned_bytes{0};

  void* Allocate(size_t bytes) {
    const int size_class = SizeClass(bytes);
    Header* block = free[size_class];
    if (block == nullptr) [[unlikely]] {
      Collect();
      block = free[size_class];
      if (block == nullptr) block = MakeBlock(size_class);
    }
    free[size_class] = block->next;
    allocations.Add(1);
    live.Add(block->bytes);
    if (live.value() > peak.value()) peak.Set(live.value());
    bytes = std::max<size_t>(bytes, 1);
    MarkUsed(block, bytes);
#ifdef WENGERT_POISON
    std::memset(block->data(), 0xFF, bytes);
#endif
    return block->data();
  }

  void Free(Header* block) {
    live.Add(-static_cast<int64_t>(block->bytes));
    block->next = free[block->size_class];
    free[block->size_class] = block;
  }

  void FreeFromOtherThread(Header* block) {
    returned_bytes.fetch_add(block->bytes, std::memory_order_relaxed);
    block->next = returned.load(std::memory_order_relaxed);
    while (!returned.compare_exchange_weak(block->next, block,
                                           std::memory_order_release,
                                           std::memory_order_relaxed)) {
    }
  }

  // Moves what other threads have freed into this heap's lists.
  void Collect() {
    if (returned.load(std::memory_order_relaxed) == nullptr) return;
    Header* block = returned.exchange(nullptr, std::memory_order_acquire);
    int64_t collected = 0;
    while (block != nullptr) {
      Header* next = block->next;
      collected += block->bytes;
      Free(block);
      block = next;
    }
    returned_bytes.fetch_sub(collected, std::memory_order_relaxed);
  }

  char* FromSystem(size_t bytes) {
    void* memory = std::aligned_alloc(kAlignment, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    system_bytes.Add(bytes);
    system_allocations.Add(1);
    return static_cast<char*>(memory);
  }

  // A new block at the head of its list.
  Header* MakeBlock(int size_class) {
    const size_t bytes = ClassBytes(size_class);
    const size_t whole = sizeof(Header) + bytes;
    if (bytes <= kSlabBlockBytes) Reserve(whole, kSlabBytes);
    const bool in_slab = (bytes <= kSlabBlockBytes || slab_is_reserve) &&
                         static_cast<size_t>(slab_end - slab) >= whole;
    char* memory =
        in_slab ? std::exchange(slab, slab + whole) : FromSystem(whole);
    Header* block =
        new (memory) Header{nullptr, this, bytes, in_slab, size_class};
    MarkFree(block);
    return free[size_class] = block;
  }

  // Starts a new slab of `size` unless `bytes` are left in the present one.
  void Reserve(size_t bytes, size_t size) {
    if (static_cast<size_t>(slab_end - slab) >= bytes) return;
    slab = FromSystem(size);
    slab_end = slab + size;
    slab_is_reserve = size > kSlabBytes;
  }

  size_t Trim() {
    Collect();
    size_t trimmed = 0;
    for (int c = SizeClass(kSlabBlockBytes) + 1; c < kClasses; ++c) {
      Header* block = std::exchange(free[c], nullptr);
      while (block != nullptr) {
        Header* next = block->next;
        if (block->in_slab) {
          block->next = std::exchange(free[c], block);
          block = next;
          continue;
        }
        trimmed += sizeof(Header) + block->bytes;
        MarkReturned(block);
        std::free(block);
        block = next;
      }
    }
    system_bytes.Add(-static_cast<int64_t>(trimmed));
    return trimmed;
  }
};

// All heaps ever made, and those without a thread. Never destroyed: objects
// with static storage may still free blocks after it would have been.
struct Heaps {
  std::mutex mutex;
  std::vector<Heap*> all;
  std::vector<Heap*> abandoned;
};

Heaps& AllHeaps() {
  static Heaps& heaps = *new Heaps;
  return heaps;
}

Heap* TakeHeap() {
  Heaps& heaps = AllHeaps();
  std::lock_guard lock(heaps.mutex);
  if (heaps.abandoned.empty()) {
    heaps.all.reserve(heaps.all.size() + 1);
    heaps.abandoned.reserve(heaps.all.size() + 1);  // AbandonHeap cannot throw
    heaps.all.push_back(new Heap);
    return heaps.all.back();
  }
  Heap* heap = heaps.abandoned.back();
  heaps.abandoned.pop_back();
  return heap;
}

void AbandonHeap(Heap* heap) {
  Heaps& heaps = AllHeaps();
  std::lock_guard lock(heaps.mutex);
  heaps.abandoned.push_back(heap);
}

constinit thread_local Heap* this_heap = nullptr;
constinit thread_local bool thread_ends = false;

struct HeapAtThreadEnd {
  ~HeapAtThreadEnd() {
    thread_ends = true;
    AbandonHeap(std::exchange(this_heap, nullptr));
  }
};

[[gnu::noinline]] void* AllocateWithoutHeap(size_t bytes) {
  Heap* heap = TakeHeap();
  if (!thread_ends) {
    this_heap = heap;
    static thread_local HeapAtThreadEnd at_thread_end;
    return heap->Allocate(bytes);
  }
  // A destructor that runs at the end of a thread asks for memory.
  struct Abandon {
    Heap* heap;
    ~Abandon() { AbandonHeap(heap); }
  } abandon{heap};
  return heap->Allocate(bytes);
}

}  // namespace

void* PoolAllocate(size_t bytes) {
  if (bytes > kMaxBytes) throw std::bad_alloc();
  if (this_heap == nullptr) [[unlikely]]
    return AllocateWithoutHeap(bytes);
  return this_heap->Allocate(bytes);
}

void PoolFree(void* data) noexcept {
  if (data == nullptr) return;
  Header* block = Header::Of(data);
  MarkFree(block);
  if (block->owner == this_heap) {
    block->owner->Free(block);
  } else {
    block->owner->FreeFromOtherThread(block);
  }
}

void PoolReserve(size_t bytes) noexcept {
  try {
    PoolFree(PoolAllocate(1));  // sees to it that there is a heap
    if (this_heap != nullptr) this_heap->Reserve(bytes / 2, bytes);
  } catch (
      const std::bad_alloc&) {  // then later blocks are asked for one by one
  }
}

size_t TrimPool() {
  size_t trimmed = this_heap == nullptr ? 0 : this_heap->Trim();
  Heaps& heaps = AllHeaps();
  std::lock_guard lock(heaps.mutex);
  for (Heap* heap : heaps.abandoned) trimmed += heap->Trim();
  return trimmed;
}

PoolStats GetPoolStats() {
  PoolStats stats;
  Heaps& heaps = AllHeaps();
  std::lock_guard lock(heaps.mutex);
  for (const Heap* heap : heaps.all) {
    stats.system_bytes += heap->system_bytes.value();
    stats.system_allocations += heap->system_allocations.value();
    stats.allocations += heap->allocations.value();
    stats.live_bytes += heap->live.value() - heap->returned_bytes.load();
    stats.peak_live_bytes += heap->peak.value();
  }
  return stats;
}

void ResetPoolPeak() {
  Heaps& heaps = AllHeaps();
  std::lock_guard lock(heaps.mutex);
  for (Heap* heap : heaps.all) heap->peak.Set(heap->live.value());
}

}  // namespace wengert
