// Columns of row-major arrays, a strip of them at a time: far more than fit in
// registers, since memory is read fastest in long pieces of a few rows. For .cc
// files.
#ifndef WENGERT_AUTOGRAD_KERNELS_STRIPS_H_
#define WENGERT_AUTOGRAD_KERNELS_STRIPS_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "absl/base/attributes.h"
#include "autograd/kernels/loop.h"
#include "autograd/parallel.h"

namespace wengert::kernels {

// The most columns of a strip.
inline constexpr int64_t kStripColumns = 1024;

// Columns whose accumulators fit in registers.
inline constexpr int64_t kTileColumns = 64;

// fn(column, width) for the tiles of a strip, the width a constant where it is
// kTileColumns.
template <class Fn>
void ForEachTile(int64_t columns, const Fn& fn) {
  int64_t j = 0;
  for (; j + kTileColumns <= columns; j += kTileColumns) {
    fn(j, std::integral_constant<int64_t, kTileColumns>());
  }
  if (j < columns) fn(j, columns - j);
}

// The columns of a strip of [slices, rows, inner]: many, but so that there is
// work for 16 cores.
inline int64_t StripOf(int64_t slices, int64_t inner) {
  const int64_t strips = CeilDiv(16, std::max<int64_t>(1, slices));
  return std::clamp<int64_t>(inner / strips / 64 * 64, 64, kStripColumns);
}

// fn(o, column, width) for the strips of [outer, n, inner].
template <class Fn>
void ForEachStrip(int64_t outer, int64_t n, int64_t inner, const Fn& fn) {
  const int64_t strip = StripOf(outer, inner);
  const int64_t strips = CeilDiv(inner, strip), tasks = outer * strips;
  const int64_t work = n * std::min(inner, strip);
  ParallelFor(tasks, GrainOf(tasks, work), [&](int64_t task, int64_t end) {
    for (; task < end; ++task) {
      const int64_t column = task % strips * strip;
      fn(task / strips, column, std::min(strip, inner - column));
    }
  });
}

// value[j] = step(value[j], r, j) for the rows begin <= r < end in turn, for
// j < width; a few rows at once, as each of them is a stream from memory.
template <class T, class Step>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void FoldRows(int64_t begin, int64_t end,
                                                  int64_t width,
                                                  const Step& step, T* value) {
  int64_t r = begin;
  for (; r + 4 <= end; r += 4) {
    WENGERT_INDEPENDENT
    for (int64_t j = 0; j < width; ++j) {
      const T two = step(step(value[j], r, j), r + 1, j);
      value[j] = step(step(two, r + 2, j), r + 3, j);
    }
  }
  for (; r < end; ++r) {
    WENGERT_INDEPENDENT
    for (int64_t j = 0; j < width; ++j) value[j] = step(value[j], r, j);
  }
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_STRIPS_H_
