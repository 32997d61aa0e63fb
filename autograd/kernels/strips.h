// Columns of row-major arrays, a strip of them at a time: far more than fit in
// registers, since memory is read fastest in long pieces of a few rows. For .cc
// files.
#ifndef WENGERT_AUTOGRAD_KERNELS_STRIPS_H_
#define WENGERT_AUTOGRAD_KERNELS_STRIPS_H_

#include <algorithm>
#include <cstdint>

#include "absl/base/attributes.h"
#include "autograd/kernels/loop.h"

namespace wengert::kernels {

// The most columns of a strip.
inline constexpr int64_t kStripColumns = 1024;

// The columns of a strip of [slices, rows, inner]: many, but so that there is
// work for 16 cores.
inline int64_t StripOf(int64_t slices, int64_t inner) {
  const int64_t strips = CeilDiv(16, std::max<int64_t>(1, slices));
  return std::clamp<int64_t>(CeilDiv(CeilDiv(inner, strips), 64) * 64, 64,
                             kStripColumns);
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
