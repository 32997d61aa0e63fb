// A loop over [outer, n, inner] whose elements need numbers of their slice
// [outer, inner]. For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_MIDDLE_LOOP_H_
#define WENGERT_AUTOGRAD_KERNELS_MIDDLE_LOOP_H_

#include <algorithm>
#include <cstdint>

#include "autograd/kernels/loop.h"
#include "autograd/parallel.h"

namespace wengert::kernels {

// y[i] (=|+=) value(i, of(s)) for each element i, which lies in slice s.
template <class T, class Of, class Value>
void WriteMiddle(int64_t outer, int64_t n, int64_t inner, bool accumulate,
                 const Of& of, const Value& value, T* y) {
  if (inner != 1) {
    const int64_t rows = outer * n;
    return ParallelFor(rows, GrainOf(rows, inner), [&](int64_t r, int64_t end) {
      for (; r < end; ++r) {
        const int64_t at = r * inner, slice = r / n * inner;
        WriteRow(
            inner, accumulate,
            [=](int64_t j) { return value(at + j, of(slice + j)); }, y + at);
      }
    });
  }
  const int64_t chunks = CeilDiv(n, kGrain), tasks = outer * chunks;
  const int64_t grain = GrainOf(tasks, std::min(n, kGrain));
  ParallelFor(tasks, grain, [&](int64_t task, int64_t end) {
    for (; task < end; ++task) {
      const int64_t row = task / chunks, begin = task % chunks * kGrain;
      const int64_t at = row * n + begin;
      const auto numbers = of(row);
      WriteRow(
          std::min(kGrain, n - begin), accumulate,
          [=](int64_t i) { return value(at + i, numbers); }, y + at);
    }
  });
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_MIDDLE_LOOP_H_
