#include "autograd/kernels/moments.h"

#include <algorithm>
#include <utility>

#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/middle_loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

template <class T>
void RowMoments(int64_t n, const T* x, T* mean, T* squares) {
  // Counted from the first, equal elements have sum 0; and if the first lies
  // far from the others, then so does the variance that it would spoil.
  const T first = n > 0 ? x[0] : 0;
  const T sum = BlockedSum<T>(n, [=](int64_t i) { return x[i] - first; });
  const T center = first + sum / static_cast<T>(n);
  *mean = center;
  *squares = BlockedSum<T>(n, [=](int64_t i) {
    const T residual = x[i] - center;
    return residual * residual;
  });
}

// The same of `width` columns, `stride` apart from row to row.
template <class T>
void ColumnMoments(int64_t n, int64_t width, const T* x, int64_t stride,
                   T* mean, T* squares) {
  T first[kSumColumns], center[kSumColumns], sum[kSumColumns];
  for (int64_t j = 0; j < width; ++j) first[j] = n > 0 ? x[j] : 0;
  const T *f = first, *c = center;
  const auto shifted = [=](int64_t r, int64_t j) {
    return x[r * stride + j] - f[j];
  };
  BlockedRowSum(0, n, width, shifted, sum);
  for (int64_t j = 0; j < width; ++j) {
    center[j] = first[j] + sum[j] / static_cast<T>(n);
  }
  const auto square = [=](int64_t r, int64_t j) {
    const T v = x[r * stride + j] - c[j];
    return v * v;
  };
  BlockedRowSum(0, n, width, square, sum);
  std::copy_n(center, width, mean);
  std::copy_n(sum, width, squares);
}

// Those of `chunk` elements each, the last perhaps fewer, of which there are
// `chunks`, `stride` apart, joined.
template <class T>
void Join(int64_t n, int64_t chunk, int64_t chunks, int64_t stride,
          const T* means, const T* squares, T* mean, T* all) {
  double center = means[0], sum = squares[0];
  for (int64_t c = 1; c < chunks; ++c) {
    const double before = static_cast<double>(c * chunk);
    const double more = static_cast<double>(std::min(chunk, n - c * chunk));
    const double delta = means[c * stride] - center;
    center += delta * (more / (before + more));
    sum +=
        squares[c * stride] + delta * delta * (before * more) / (before + more);
  }
  *mean = static_cast<T>(center);
  *all = static_cast<T>(sum);
}

}  // namespace

template <class T>
void Moments(int64_t outer, int64_t n, int64_t inner, const T* x, T* mean,
             T* squares) {
  const int64_t chunk = inner == 1 ? kGrain : kSumRows;
  const int64_t chunks = std::max<int64_t>(1, CeilDiv(n, chunk));
  const int64_t tiles = CeilDiv(inner, kSumColumns);
  const Scratch<T> parts(chunks > 1 ? 2 * outer * chunks * inner : 0);
  T* means = chunks > 1 ? parts.data() : mean;
  T* sums = chunks > 1 ? means + outer * chunks * inner : squares;
  const int64_t tasks = outer * chunks * tiles;
  const int64_t work = std::min(n, chunk) * std::min(inner, kSumColumns);
  ParallelFor(tasks, GrainOf(tasks, 2 * work), [=](int64_t task, int64_t end) {
    for (; task < end; ++task) {
      const int64_t row = task / tiles, column = task % tiles * kSumColumns;
      const int64_t skipped = row % chunks * chunk;
      const int64_t size = std::min(chunk, n - skipped);
      const T* from = x + (row / chunks * n + skipped) * inner + column;
      const int64_t to = row * inner + column;
      if (inner == 1) {
        RowMoments(size, from, means + to, sums + to);
      } else {
        ColumnMoments(size, std::min(kSumColumns, inner - column), from, inner,
                      means + to, sums + to);
      }
    }
  });
  if (chunks == 1) return;
  const int64_t slices = outer * inner;
  ParallelFor(slices, GrainOf(slices, 8 * chunks), [=](int64_t s, int64_t end) {
    for (; s < end; ++s) {
      const int64_t at = s / inner * chunks * inner + s % inner;
      Join(n, chunk, chunks, inner, means + at, sums + at, mean + s,
           squares + s);
    }
  });
}

template <class T>
void MomentsGrad(int64_t outer, int64_t n, int64_t inner, const T* x,
                 const T* mean, const T* factor, bool accumulate, T* dx) {
  WriteMiddle(
      outer, n, inner, accumulate,
      [=](int64_t s) { return std::pair(mean[s], factor[s]); },
      [=](int64_t i, std::pair<T, T> slice) {
        return slice.second * (x[i] - slice.first);
      },
      dx);
}

template void Moments(int64_t, int64_t, int64_t, const float*, float*, float*);
template void Moments(int64_t, int64_t, int64_t, const double*, double*,
                      double*);
template void MomentsGrad(int64_t, int64_t, int64_t, const float*, const float*,
                          const float*, bool, float*);
template void MomentsGrad(int64_t, int64_t, int64_t, const double*,
                          const double*, const double*, bool, double*);

}  // namespace wengert::kernels
