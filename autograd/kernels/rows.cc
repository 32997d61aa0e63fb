#include "autograd/kernels/rows.h"

#include <algorithm>

#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/kernels/sort_ids.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
template <class T, class I>
void GatherRows(int64_t n_ids, int64_t width, const I* ids, const T* table,
                T* y) {
  ParallelFor(n_ids, GrainOf(n_ids, width), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(table + ids[i] * width, width, y + i * width);
    }
  });
}

template <class T, class I>
void ScatterAddRows(int64_t n_ids, int64_t width, int64_t n_rows, const I* ids,
                    int64_t skip, const T* dy, const T* x, T* y) {
  if (n_rows == 0 || width == 0) return;
  const bool in_place = x == y;
  constexpr int64_t kFewIds = 64;
  if (n_ids <= kFewIds) {  // sorting them would cost more than adding them
    if (!x) Fill<T>(n_rows * width, 0, y);
    if (x && !in_place) Affine<T>(n_rows * width, 1, 0, x, y);
    for (int64_t i = 0; i < n_ids; ++i) {
      if (ids[i] == skip) continue;
      const T* from = dy + i * width;
      T* to = y + ids[i] * width;
      WENGERT_INDEPENDENT
      for (int64_t j = 0; j < width; ++j) to[j] += from[j];
    }
    return;
  }
  const Scratch<int64_t> ends_memory(n_rows + 1), positions_memory(n_ids),
      present_memory(n_ids);
  int64_t* const ends = ends_memory.data();
  int64_t* const positions = positions_memory.data();
  int64_t* const present = present_memory.data();
  SortIds(n_ids, n_rows, ids, skip, ends, positions);
  int64_t n_present = 0;  // rows that have ids
  for (int64_t row = 0; row < n_rows; ++row) {
    if (ends[row] > (row == 0 ? 0 : ends[row - 1])) present[n_present++] = row;
  }

  // A task is a part of a row of the table, which is a sum of rows of dy.
  constexpr int64_t kColumns = 64 * kSumColumns;
  const int64_t parts = CeilDiv(width, kColumns);
  const int64_t tasks = (in_place ? n_present : n_rows) * parts;
  const int64_t work = (n_ids + n_rows) * width / std::max<int64_t>(1, tasks);
  ParallelFor(tasks, GrainOf(tasks, work), [=](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row = in_place ? present[task / parts] : task / parts;
      const int64_t first = row == 0 ? 0 : ends[row - 1], last = ends[row];
      const int64_t start = task % parts * kColumns;
      const int64_t columns = std::min(kColumns, width - start);
      const T* const old = x ? x + row * width + start : nullptr;
      T* const out = y + row * width + start;
      const auto write = [&](int64_t from, int64_t n, const auto& sum) {
        if (old) {
          WENGERT_INDEPENDENT
          for (int64_t j = 0; j < n; ++j)
            out[from + j] = old[from + j] + sum(j);
        } else {
          WriteRow(n, false, sum, out + from);
        }
      };
      const auto term = [=](int64_t k) {
        return dy + positions[first + k] * width + start;
      };
      if (first == last) {
        old ? std::copy_n(old, columns, out) : std::fill_n(out, columns, T{0});
      } else if (last - first == 1) {
        write(0, columns, [from = term(0)](int64_t j) { return from[j]; });
      } else if (last - first == 2) {
        write(0, columns, [a = term(0), b = term(1)](int64_t j) {
          return T{0} + a[j] + b[j];
        });
      } else {
        for (int64_t c = 0; c < columns; c += kSumColumns) {
          const int64_t n = std::min(kSumColumns, columns - c);
          const T* const from = dy + start + c;
          T sum[kSumColumns];
          BlockedRowSum(
              first, last, n,
              [=](int64_t r, int64_t j) {
                return from[positions[r] * width + j];
              },
              sum);
          write(c, n, [&](int64_t j) { return sum[j]; });
        }
      }
    }
  });
}

template void GatherRows(int64_t, int64_t, const int32_t*, const float*,
                         float*);
template void GatherRows(int64_t, int64_t, const int64_t*, const float*,
                         float*);
template void GatherRows(int64_t, int64_t, const int32_t*, const double*,
                         double*);
template void GatherRows(int64_t, int64_t, const int64_t*, const double*,
                         double*);
template void ScatterAddRows(int64_t, int64_t, int64_t, const int32_t*, int64_t,
                             const float*, const float*, float*);
template void ScatterAddRows(int64_t, int64_t, int64_t, const int64_t*, int64_t,
                             const float*, const float*, float*);
template void ScatterAddRows(int64_t, int64_t, int64_t, const int32_t*, int64_t,
                             const double*, const double*, double*);
template void ScatterAddRows(int64_t, int64_t, int64_t, const int64_t*, int64_t,
                             const double*, const double*, double*);

}  // namespace wengert::kernels
