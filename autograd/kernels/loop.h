// What the loops of the kernels share. For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_LOOP_H_
#define WENGERT_AUTOGRAD_KERNELS_LOOP_H_

#include <algorithm>
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
// Floating-point operations in one chunk of matrix products: about 10 us.
inline constexpr int64_t kGrainFlops = int64_t{1} << 20;

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// How many things of `elements`, or of `flops`, each make a chunk.
inline int64_t GrainOf(int64_t elements) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, elements));
}
inline int64_t FlopGrainOf(int64_t flops) {
  return CeilDiv(kGrainFlops, std::max<int64_t>(1, flops));
}

// y (=|+=) value(i) for i < n.
template <class T, class Value>
void WriteRow(int64_t n, bool accumulate, const Value& value, T* y) {
  if (accumulate) {
    WENGERT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) y[i] += value(i);
  } else {
    WENGERT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) y[i] = value(i);
  }
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_LOOP_H_
