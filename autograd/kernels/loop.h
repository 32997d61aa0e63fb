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

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The grain of a loop over n things of `cost` each, when `worth` is what makes
// a chunk: a loop worth less stays whole, one worth more has work for 16 cores,
// unless it has fewer things. (A few things worth little stay together.)
inline int64_t ChunkOf(int64_t n, int64_t cost, int64_t worth) {
  cost = std::max<int64_t>(1, cost);
  const int64_t whole = n < 16 ? 4 * worth : worth;
  if (n <= whole / cost) return std::max<int64_t>(1, n);
  const int64_t share = std::max<int64_t>(1, n / 16);
  // Single elements in whole vectors.
  const int64_t rounded = cost == 1 && share > 64 ? share / 64 * 64 : share;
  return std::clamp<int64_t>(worth / cost, 1, rounded);
}
inline int64_t GrainOf(int64_t n, int64_t elements) {
  return ChunkOf(n, elements, kGrain);
}
inline int64_t FlopGrainOf(int64_t n, int64_t flops) {
  return ChunkOf(n, flops, kGrainFlops);
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
