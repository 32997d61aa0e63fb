// Reductions along the middle of [outer, n, inner] to two numbers for each
// slice, as a mean and a sum of squares. For .cc files.
//
// An Op is a class that says what becomes of a row of n elements, of n rows of
// up to kStripColumns columns that lie `stride` apart, and of the pairs of
// `chunks` chunks of `chunk` elements each, the last perhaps fewer, which are
// `stride` apart too:
//
//   Row(n, x, a, b)    Columns(n, width, x, stride, a, b)
//   Join(n, chunk, chunks, width, parts_a, parts_b, stride, a, b)
//
// A chunk has Op::kRowChunk elements, or Op::kColumnChunk rows.
#ifndef WENGERT_AUTOGRAD_KERNELS_REDUCE_PAIRS_H_
#define WENGERT_AUTOGRAD_KERNELS_REDUCE_PAIRS_H_

#include <algorithm>
#include <cstdint>

#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/kernels/strips.h"
#include "autograd/parallel.h"

namespace wengert::kernels {

// a, b [outer, inner] from x; `cost` is that of an element.
template <class Op, class T>
void ReduceToPairs(int64_t outer, int64_t n, int64_t inner, int64_t cost,
                   const T* x, T* a, T* b) {
  const int64_t chunk = inner == 1 ? Op::kRowChunk : Op::kColumnChunk;
  const int64_t chunks = std::max<int64_t>(1, CeilDiv(n, chunk));
  const int64_t strip = StripOf(outer * chunks, inner);
  const int64_t strips = CeilDiv(inner, strip);
  const Scratch<T> parts(chunks > 1 ? 2 * outer * chunks * inner : 0);
  T* const parts_a = chunks > 1 ? parts.data() : a;
  T* const parts_b = chunks > 1 ? parts_a + outer * chunks * inner : b;
  const int64_t tasks = outer * chunks * strips;
  const int64_t work = cost * std::min(n, chunk) * std::min(inner, strip);
  ParallelFor(tasks, GrainOf(tasks, work), [=](int64_t task, int64_t end) {
    for (; task < end; ++task) {
      const int64_t row = task / strips, column = task % strips * strip;
      const int64_t skipped = row % chunks * chunk;
      const int64_t size = std::min(chunk, n - skipped);
      const T* from = x + (row / chunks * n + skipped) * inner + column;
      const int64_t to = row * inner + column;
      if (inner == 1) {
        Op::Row(size, from, parts_a + to, parts_b + to);
      } else {
        Op::Columns(size, std::min(strip, inner - column), from, inner,
                    parts_a + to, parts_b + to);
      }
    }
  });
  if (chunks == 1) return;
  const int64_t joins = outer * strips;
  const int64_t parts_of_one = 4 * chunks * std::min(inner, strip);
  ParallelFor(joins, GrainOf(joins, parts_of_one), [=](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      const int64_t o = i / strips, column = i % strips * strip;
      const int64_t at = o * chunks * inner + column, to = o * inner + column;
      Op::Join(n, chunk, chunks, std::min(strip, inner - column), parts_a + at,
               parts_b + at, inner, a + to, b + to);
    }
  });
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_REDUCE_PAIRS_H_
