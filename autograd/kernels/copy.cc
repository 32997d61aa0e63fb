#include "autograd/kernels/copy.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/stream.h"
#include "autograd/kernels/strided_loop.h"
#include "autograd/kernels/transpose.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

// The offsets of a loop over two operands.
enum { kX, kY };

// y = x for n elements.
template <class T>
void CopyRow(int64_t n, const T* x, int64_t x_stride, T* y, int64_t y_stride,
             bool streamed) {
  const bool contiguous = x_stride == 1 && y_stride == 1;
  if (contiguous && streamed && n > 16) {
    StreamRow(n, x, y);
  } else if (contiguous && n > 16) {
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

// What is turned at once: whole lines of x and y.
constexpr int64_t kTile = 32;

// Whether rows of n elements, of n_all in y, can be streamed in vectors.
template <class T>
bool RowsAreStreamed(int64_t n_all, int64_t n, const T* y) {
  constexpr int64_t kSize = sizeof(T);
  return gemm::kVectorBytes == kLineBytes && kSize >= 4 &&
         IsStreamed<T>(n_all) && n * kSize % kLineBytes == 0 &&
         reinterpret_cast<uintptr_t>(y) % kLineBytes == 0;
}

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
  const bool streamed = IsStreamed<T>(loop.size());
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
                        loop.stride(kY), streamed);
              }
            });
        if (streamed) EndStream();
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

  absl::InlinedVector<int64_t, 6> y_strides(rank);
  int64_t y_stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    y_strides[perm[d]] = y_stride;
    y_stride *= dims[perm[d]];
  }
  if (i == j) {
    // In the order of y, or of x if then fewer rows follow each other: so few
    // that each is one of as many streams.
    int next_in_y = rank - 1, next_in_x = j - 1;
    while (next_in_y > 0 &&
           (perm[next_in_y] == i || dims[perm[next_in_y]] == 1))
      --next_in_y;
    while (next_in_x > 0 && dims[next_in_x] == 1) --next_in_x;
    const bool as_x = next_in_x >= 0 && dims[next_in_x] < dims[perm[next_in_y]];
    StridedLoop<2> loop;
    for (int k = 0; k < rank; ++k) {
      const int d = as_x ? k : perm[k];
      loop.Add(dims[d], {x_strides[d], y_strides[d]});
    }
    return CopyLoop(loop, x, y);
  }
  const int64_t j_y_stride = y_strides[j];
  StridedLoop<2> loop;  // over all dimensions but i and j
  for (int d : perm) {
    if (d != i && d != j) loop.Add(dims[d], {x_strides[d], y_strides[d]});
  }

  // What is turned at once: runs of x and y that are long enough to be fetched
  // ahead, and to find their pages again.
  constexpr int64_t kRows = 64, kColumns = 256;
  const bool streamed = RowsAreStreamed(NumElements(dims), dims[i], y);
  const int64_t i_tiles = CeilDiv(dims[i], kRows);
  const int64_t j_tiles = CeilDiv(dims[j], kColumns);
  const int64_t work = std::min(dims[i], kRows) * std::min(dims[j], kColumns);
  const int64_t tiles = loop.size() * i_tiles * j_tiles;
  ParallelFor(tiles, GrainOf(tiles, work), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const auto offsets = loop.At(task / (i_tiles * j_tiles));
      const int64_t i0 = task % i_tiles * kRows;
      const int64_t j0 = task / i_tiles % j_tiles * kColumns;
      const auto turn =
          streamed ? TransposeTile<true, T> : TransposeTile<false, T>;
      turn(std::min(kRows, dims[i] - i0), std::min(kColumns, dims[j] - j0),
           x + offsets[kX] + i0 * x_strides[i] + j0, x_strides[i],
           y + offsets[kY] + j0 * j_y_stride + i0, j_y_stride);
    }
    if (streamed) EndStream();
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

template void Permute(Dims, absl::Span<const int>, const float*, float*);
template void CopyBlocks(int64_t, int64_t, const float*, int64_t, float*,
                         int64_t);
template void CopyStrided(Dims, const float*, Dims, float*, Dims);
template void AddBlocks(int64_t, int64_t, const float*, int64_t, float*,
                        int64_t);

template void Permute(Dims, absl::Span<const int>, const double*, double*);
template void CopyBlocks(int64_t, int64_t, const double*, int64_t, double*,
                         int64_t);
template void CopyStrided(Dims, const double*, Dims, double*, Dims);
template void AddBlocks(int64_t, int64_t, const double*, int64_t, double*,
                        int64_t);

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

}  // namespace wengert::kernels
