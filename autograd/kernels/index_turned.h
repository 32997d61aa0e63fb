// Reading and adding along the last axis where all rows share their ids: some
// rows are turned at once, so that an id names neighbours in place of single
// elements. For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_INDEX_TURNED_H_
#define WENGERT_AUTOGRAD_KERNELS_INDEX_TURNED_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/base/attributes.h"
#include "autograd/kernels/index.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/kernels/sort_ids.h"
#include "autograd/kernels/transpose.h"
#include "autograd/parallel.h"

namespace wengert::kernels {

// What sums are kept in: double for floats, and what wraps for the others.
template <class T>
using SumType =
    std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

// Rows that are turned together.
constexpr int64_t kTogether = 16;

template <class I>
bool TakesRows(const AxisSizes& s, AxisIds<I> ids) {
  return ids.shared && s.inner == 1 && s.outer >= kTogether;
}

// Calls f(o, rows) for the outer indices [o, o + rows), kTogether at a time.
template <class F>
void ForRows(const AxisSizes& s, const F& f) {
  const int64_t blocks = CeilDiv(s.outer, kTogether);
  const int64_t work = (s.n + s.m) * kTogether;
  ParallelFor(blocks, GrainOf(blocks, work), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin * kTogether; o < std::min(s.outer, end * kTogether);
         o += kTogether) {
      f(o, std::min(kTogether, s.outer - o));
    }
  });
}

// TakeAlong.
template <class T, class I>
void TakeTurned(const AxisSizes& s, const I* ids, const T* x, T* y) {
  ForRows(s, [&](int64_t o, int64_t rows) {
    const Scratch<T> turned(s.n * kTogether);
    T tile[kTogether * kTogether];
    TransposeTile(rows, s.n, x + o * s.n, s.n, turned.data(), kTogether);
    for (int64_t j = 0; j < s.m; j += kTogether) {
      const int64_t columns = std::min(kTogether, s.m - j);
      for (int64_t i = 0; i < columns; ++i) {
        std::copy_n(turned.data() + ids[j + i] * kTogether, kTogether,
                    tile + i * kTogether);
      }
      TransposeTile(columns, rows, tile, kTogether, y + o * s.m + j, s.m);
    }
  });
}

// Half a row that is turned: more would not stay in registers.
constexpr int64_t kHalf = kTogether / 2;
template <class U>
struct HalfOf {
  typedef U Type __attribute__((vector_size(kHalf * sizeof(U))));
};
template <class U>
using Half = typename HalfOf<U>::Type;

// sum += x
template <class S, class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void AddWidened(const T* x, Half<S>& sum) {
  Half<T> half;
  std::memcpy(&half, x, sizeof(half));
  sum += __builtin_convertvector(half, Half<S>);
}
// y += sum
template <class S, class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void AddNarrowed(Half<S>& sum, T* y) {
  AddWidened<S>(y, sum);
  const Half<T> half = __builtin_convertvector(sum, Half<T>);
  std::memcpy(y, &half, sizeof(half));
}

// AddAlong of many terms, those of each element one behind the other.
template <class T, class I>
void AddTurned(const AxisSizes& s, const I* ids, const T* x, const T* src,
               T* y) {
  using S = SumType<T>;
  const Scratch<int64_t> ends_memory(s.n + 1), positions_memory(s.m);
  int64_t* const ends = ends_memory.data();
  int64_t* const positions = positions_memory.data();
  SortIds(s.m, s.n, ids, -1, ends, positions);
  ForRows(s, [&](int64_t o, int64_t rows) {
    const Scratch<T> terms(s.m * kTogether);
    T tile[kTogether * kTogether] = {};
    TransposeTile(rows, s.m, src + o * s.m, s.m, terms.data(), kTogether);
    for (int64_t r = 0; r < s.n; r += kTogether) {
      const int64_t columns = std::min(kTogether, s.n - r);
      if (x) {
        TransposeTile(rows, columns, x + o * s.n + r, s.n, tile, kTogether);
      } else {
        std::fill_n(tile, kTogether * kTogether, T{0});
      }
      for (int64_t i = 0; i < columns; ++i) {
        const int64_t id = r + i;
        Half<S> low = {}, high = {};
        for (int64_t k = id == 0 ? 0 : ends[id - 1]; k < ends[id]; ++k) {
          const T* const term = terms.data() + positions[k] * kTogether;
          AddWidened<S>(term, low);
          AddWidened<S>(term + kHalf, high);
        }
        T* const to = tile + i * kTogether;
        AddNarrowed<S>(low, to);
        AddNarrowed<S>(high, to + kHalf);
      }
      TransposeTile(columns, rows, tile, kTogether, y + o * s.n + r, s.n);
    }
  });
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_INDEX_TURNED_H_
