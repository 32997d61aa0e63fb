// The memory pool behind every tensor: 64-byte-aligned blocks that are kept and
// reused, because memory that returns to the system costs a page fault per
// 4 KB when it comes back, which is more than the arithmetic of a small model.
#ifndef WENGERT_AUTOGRAD_STORAGE_H_
#define WENGERT_AUTOGRAD_STORAGE_H_

#include <cstddef>
#include <cstdint>

namespace wengert {

// Returns a 64-byte-aligned block of at least `bytes` bytes, never null (also
// for 0 bytes). The contents are undefined; where WENGERT_POISON is defined
// they are all ones, which is NaN in float and double. Throws std::bad_alloc.
void* PoolAllocate(size_t bytes);

// Takes back a block of PoolAllocate, on any thread. Null is ignored.
void PoolFree(void* block) noexcept;

// Takes address space for the calling thread's blocks to come, unless half as
// much is left from before: so a thread of the parallel pool asks the system
// for nothing when it first runs a kernel in the middle of training. Where
// there is no such space it does nothing.
void PoolReserve(size_t bytes) noexcept;

// Gives free blocks back to the system and returns their bytes: those of the
// calling thread and of threads that have ended. The free blocks of other live
// threads stay, and so do blocks up to 4 KB, which are cut from larger slabs,
// and those of PoolReserve.
size_t TrimPool();

// Sums over all threads. Exact when no other thread uses the pool meanwhile.
struct PoolStats {
  int64_t system_bytes = 0;        // taken from the system, not given back
  int64_t system_allocations = 0;  // how often the system was asked
  int64_t allocations = 0;         // how often the pool was asked
  int64_t live_bytes = 0;          // handed out, as rounded up by the pool
  // The highest live_bytes since the last ResetPoolPeak: exact if one thread
  // allocates and frees, else the sum of each thread's own peak.
  int64_t peak_live_bytes = 0;
};
PoolStats GetPoolStats();

// Starts peak_live_bytes again from what is live now. To be called while no
// other thread uses the pool.
void ResetPoolPeak();

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_STORAGE_H_
