#include "autograd/kernels/copy.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/kernels/strided_loop.h"
#include "autograd/kernels/transpose.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

// The offsets of a loop over two operands.
enum { kX, kY };

// y = x for n elements.
template <class T>
void CopyRow(int64_t n, const T* x, int64_t x_stride, T* y, int64_t y_stride) {
  const bool contiguous = x_stride == 1 && y_stride == 1;
  if (contiguous && n > 16) {
    std::copy_n(x, n, y);
  } else if (contiguous) {  // a call would take longer
    WENGERT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) y[i] = x[i];
  } else if (x_stride == -1 && y_stride == 1) {
    WENGERT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) y[i] = x[-i];
  } else if (x_stride == 0 && y_stride == 1) {
    std::fill_n(y, n, *x);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * y_stride] = x[i * x_stride];
  }
}

// y = x for contiguous rows of n elements, without a call for each.
template <int n, class T>
void CopyShortRows(int64_t rows, const T* x, int64_t x_stride, T* y,
                   int64_t y_stride) {
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(x + r * x_stride, n, y + r * y_stride);
  }
}

// What is turned at once: whole lines of y, and runs of x that are long enough
// to be fetched ahead.
constexpr int64_t kTile = 32, kRun = 128;

// y[r, i] = x[r + i x_stride] for i < n, a constant: the loop makes vectors.
template <int n, class T>
void Interleave(int64_t rows, const T* x, int64_t x_stride, T* y) {
  WENGERT_INDEPENDENT
  for (int64_t r = 0; r < rows; ++r) {
    for (int i = 0; i < n; ++i) y[r * n + i] = x[r + i * x_stride];
  }
}

// The other way: y[r y_stride + i] = x[r + i n] for r < n.
template <int n, class T>
void Deinterleave(int64_t columns, const T* x, T* y, int64_t y_stride) {
  WENGERT_INDEPENDENT
  for (int64_t i = 0; i < columns; ++i) {
    for (int r = 0; r < n; ++r) y[r * y_stride + i] = x[i * n + r];
  }
}

// y[r, i] = x[r + i x_stride] for i < n, where y's rows lie y_stride apart.
template <class T>
void CopyTransposed(int64_t rows, int64_t n, const T* x, int64_t x_stride, T* y,
                    int64_t y_stride) {
  if (n == y_stride) {
    if (n == 2) return Interleave<2>(rows, x, x_stride, y);
    if (n == 3) return Interleave<3>(rows, x, x_stride, y);
    if (n == 4) return Interleave<4>(rows, x, x_stride, y);
    if (n == 8) return Interleave<8>(rows, x, x_stride, y);
  }
  if (rows == x_stride) {
    if (rows == 2) return Deinterleave<2>(n, x, y, y_stride);
    if (rows == 3) return Deinterleave<3>(n, x, y, y_stride);
    if (rows == 4) return Deinterleave<4>(n, x, y, y_stride);
    if (rows == 8) return Deinterleave<8>(n, x, y, y_stride);
  }
  for (int64_t r = 0; r < rows; r += kTile) {
    for (int64_t i = 0; i < n; i += kTile) {
      TransposeTile(std::min(kTile, n - i), std::min(kTile, rows - r),
                    x + i * x_stride + r, x_stride, y + r * y_stride + i,
                    y_stride);
    }
  }
}

// y = x in the loop's order, which y need not be stored in.
template <class T>
void CopyLoop(const StridedLoop<2>& loop, const T* x, T* y) {
  ParallelFor(
      loop.size(), GrainOf(loop.size(), 1), [&](int64_t begin, int64_t end) {
        loop.ForEachBlock(
            begin, end, [&](int64_t, int64_t rows, int64_t n, auto offsets) {
              // Not of one element that repeats often: that fills rows.
              const int64_t step = loop.stride(kX);
              if (rows > 1 && loop.row_stride(kX) == 1 && step != 1 &&
                  loop.stride(kY) == 1 && (step != 0 || n <= kTile)) {
                return CopyTransposed(rows, n, x + offsets[kX], step,
                                      y + offsets[kY], loop.row_stride(kY));
              }
              const T* const from = x + offsets[kX];
              T* const to = y + offsets[kY];
              const int64_t x_row = loop.row_stride(kX);
              const int64_t y_row = loop.row_stride(kY);
              if (step == 1 && loop.stride(kY) == 1) {
                if (n == 4)
                  return CopyShortRows<4>(rows, from, x_row, to, y_row);
                if (n == 8)
                  return CopyShortRows<8>(rows, from, x_row, to, y_row);
                if (n == 16)
                  return CopyShortRows<16>(rows, from, x_row, to, y_row);
              }
              for (int64_t r = 0; r < rows; ++r) {
                CopyRow(n, from + r * x_row, step, to + r * y_row,
                        loop.stride(kY));
              }
            });
      });
}

}  // namespace

template <class T>
void Permute(Dims dims, absl::Span<const int> perm, const T* x, T* y) {
  if (NumElements(dims) == 0) return;
  const int rank = static_cast<int>(dims.size());
  absl::InlinedVector<int64_t, 6> x_strides(rank);
  int64_t x_stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    x_strides[d] = x_stride;
    x_stride *= dims[d];
  }
  // The dimensions of x that change fastest in y (i) and in x (j).
  int i = rank - 1, j = rank - 1;
  while (i > 0 && dims[perm[i]] == 1) --i;
  while (j > 0 && dims[j] == 1) --j;
  if (rank > 0) i = perm[i];

  StridedLoop<2> loop;  // over all dimensions, or all but i and j
  int64_t j_y_stride = 0;
  int64_t y_stride = NumElements(dims);
  for (int d : perm) {
    y_stride /= dims[d];
    if (d == j) j_y_stride = y_stride;
    if (i == j || (d != i && d != j)) {
      loop.Add(dims[d], {x_strides[d], y_stride});
    }
  }
  if (i == j) return CopyLoop(loop, x, y);

  const int64_t i_tiles = CeilDiv(dims[i], kTile);
  const int64_t j_tiles = CeilDiv(dims[j], kRun);
  const int64_t work = std::min(dims[i], kTile) * std::min(dims[j], kRun);
  const int64_t tiles = loop.size() * i_tiles * j_tiles;
  ParallelFor(tiles, GrainOf(tiles, work), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const auto offsets = loop.At(task / (i_tiles * j_tiles));
      const int64_t i0 = task % i_tiles * kTile;
      const int64_t j0 = task / i_tiles % j_tiles * kRun;
      TransposeTile(std::min(kTile, dims[i] - i0), std::min(kRun, dims[j] - j0),
                    x + offsets[kX] + i0 * x_strides[i] + j0, x_strides[i],
                    y + offsets[kY] + j0 * j_y_stride + i0, j_y_stride);
    }
  });
}

template <class T>
void CopyBlocks(int64_t outer, int64_t n, const T* x, int64_t x_stride, T* y,
                int64_t y_stride) {
  StridedLoop<2> loop;
  loop.Add(outer, {x_stride, y_stride});
  loop.Add(n, {1, 1});
  CopyLoop(loop, x, y);
}

template <class T>
void AddBlocks(int64_t outer, int64_t n, const T* x, int64_t x_stride, T* y,
               int64_t y_stride) {
  if (n == 0) return;
  ParallelFor(outer * n, GrainOf(outer * n, 1),
              [=](int64_t begin, int64_t end) {
                for (int64_t at = begin; at < end;) {
                  const int64_t o = at / n, i = at % n;
                  const int64_t count = std::min(n - i, end - at);
                  const T* from = x + o * x_stride + i;
                  WriteRow(
                      count, true, [=](int64_t j) { return from[j]; },
                      y + o * y_stride + i);
                  at += count;
                }
              });
}

template <class T>
void CopyStrided(Dims dims, const T* x, Dims x_strides, T* y, Dims y_strides) {
  StridedLoop<2> loop;
  for (size_t i = 0; i < dims.size(); ++i) {
    loop.Add(dims[i], {x_strides[i], y_strides[i]});
  }
  CopyLoop(loop, x, y);
}

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
                    int64_t skip, const T* dy, T* dtable) {
  if (n_ids == 0 || width == 0) return;
  constexpr int64_t kFewIds = 64;
  if (n_ids <= kFewIds) {  // sorting them would cost more than adding them
    for (int64_t i = 0; i < n_ids; ++i) {
      if (ids[i] == skip) continue;
      const T* from = dy + i * width;
      T* to = dtable + ids[i] * width;
      WENGERT_INDEPENDENT
      for (int64_t j = 0; j < width; ++j) to[j] += from[j];
    }
    return;
  }
  // Sort the positions by id; each row of the table is then a sum of rows.
  // starts[id] is where the positions of `id` start, and when they are filled
  // in, where they end.
  const Scratch<int64_t> starts_memory(n_rows + 1), positions_memory(n_ids),
      present_memory(n_ids);
  int64_t* starts = starts_memory.data();
  int64_t* positions = positions_memory.data();
  int64_t* present = present_memory.data();  // the ids that occur
  std::fill_n(starts, n_rows + 1, 0);
  for (int64_t i = 0; i < n_ids; ++i) {
    if (ids[i] != skip) ++starts[ids[i] + 1];
  }
  int64_t n_present = 0;
  for (int64_t row = 0; row < n_rows; ++row) {
    if (starts[row + 1] > 0) present[n_present++] = row;
    starts[row + 1] += starts[row];
  }
  for (int64_t i = 0; i < n_ids; ++i) {
    if (ids[i] != skip) positions[starts[ids[i]]++] = i;
  }

  const int64_t tiles = CeilDiv(width, kSumColumns);
  const int64_t tasks = n_present * tiles;
  const int64_t work = n_ids * width / std::max<int64_t>(1, tasks) + 1;
  ParallelFor(tasks, GrainOf(tasks, work), [=](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row = present[task / tiles];
      const int64_t column = task % tiles * kSumColumns;
      const int64_t columns = std::min(kSumColumns, width - column);
      T* out = dtable + row * width + column;
      const auto term = [=](int64_t r, int64_t j) {
        return dy[positions[r] * width + column + j];
      };
      T sum[kSumColumns];
      BlockedRowSum(row == 0 ? 0 : starts[row - 1], starts[row], columns, term,
                    sum);
      for (int64_t j = 0; j < columns; ++j) out[j] += sum[j];
    }
  });
}

template void Permute(Dims, absl::Span<const int>, const float*, float*);
template void CopyBlocks(int64_t, int64_t, const float*, int64_t, float*,
                         int64_t);
template void CopyStrided(Dims, const float*, Dims, float*, Dims);
template void AddBlocks(int64_t, int64_t, const float*, int64_t, float*,
                        int64_t);
template void GatherRows(int64_t, int64_t, const int32_t*, const float*,
                         float*);
template void GatherRows(int64_t, int64_t, const int64_t*, const float*,
                         float*);

template void Permute(Dims, absl::Span<const int>, const double*, double*);
template void CopyBlocks(int64_t, int64_t, const double*, int64_t, double*,
                         int64_t);
template void CopyStrided(Dims, const double*, Dims, double*, Dims);
template void AddBlocks(int64_t, int64_t, const double*, int64_t, double*,
                        int64_t);
template void GatherRows(int64_t, int64_t, const int32_t*, const double*,
                         double*);
template void GatherRows(int64_t, int64_t, const int64_t*, const double*,
                         double*);

template void Permute(Dims, absl::Span<const int>, const int32_t*, int32_t*);
template void CopyBlocks(int64_t, int64_t, const int32_t*, int64_t, int32_t*,
                         int64_t);
template void CopyStrided(Dims, const int32_t*, Dims, int32_t*, Dims);

template void Permute(Dims, absl::Span<const int>, const int64_t*, int64_t*);
template void CopyBlocks(int64_t, int64_t, const int64_t*, int64_t, int64_t*,
                         int64_t);
template void CopyStrided(Dims, const int64_t*, Dims, int64_t*, Dims);

template void Permute(Dims, absl::Span<const int>, const bool*, bool*);
template void CopyBlocks(int64_t, int64_t, const bool*, int64_t, bool*,
                         int64_t);
template void CopyStrided(Dims, const bool*, Dims, bool*, Dims);

template void ScatterAddRows(int64_t, int64_t, int64_t, const int32_t*, int64_t,
                             const float*, float*);
template void ScatterAddRows(int64_t, int64_t, int64_t, const int64_t*, int64_t,
                             const float*, float*);
template void ScatterAddRows(int64_t, int64_t, int64_t, const int32_t*, int64_t,
                             const double*, double*);
template void ScatterAddRows(int64_t, int64_t, int64_t, const int64_t*, int64_t,
                             const double*, double*);

}  // namespace wengert::kernels
