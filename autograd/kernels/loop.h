// What the loops of the kernels share. For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_LOOP_H_
#define WENGERT_AUTOGRAD_KERNELS_LOOP_H_

#include <cstdint>

// Before a for loop: no iteration reads what another one writes, although
// outputs may be inputs. Without it g++ leaves loops in place to scalar code.
#ifdef __clang__
#define WENGERT_INDEPENDENT
#else
#define WENGERT_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace wengert::kernels {

// Elements in one chunk of a parallel loop: several microseconds of work, and
// inputs and outputs fit in the second-level cache.
inline constexpr int64_t kGrain = 1 << 14;

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_LOOP_H_
