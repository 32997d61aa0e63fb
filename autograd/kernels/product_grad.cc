#include "autograd/kernels/product_grad.h"

#include <algorithm>
#include <type_traits>

#include "autograd/kernels/gemm_tile.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/kernels/strips.h"
#include "autograd/kernels/transpose.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

template <int64_t n>
using Constant = std::integral_constant<int64_t, n>;

// Rows of a tile whose products stay in the first-level cache.
constexpr int64_t kSteps = 32;

int64_t StartsOf(int64_t n, int64_t width) {
  return CeilDiv(n, kSteps) * width;
}

// product[j] *= the x of column j in the rows begin <= i < end.
template <class T, class Width>
void Multiply(int64_t begin, int64_t end, Width width, int64_t step, const T* x,
              double* product) {
  const auto times = [=](double p, int64_t i, int64_t j) {
    return p * x[i * step + j];
  };
  FoldRows(begin, end, width, times, product);
}

// dx[i] = P[i] S[i] for the rows i of a chunk in each of `width` columns: P[i]
// is the product of the x before i, and S[i], what the results from i on hand
// back, is dy[i] + x[i + 1] S[i + 1]. With kProd only the last result exists.
// `start` is P of the first row; `back`, x[i + 1] S[i + 1] of the last one,
// becomes that of the row before the first. dx may be dy.
template <bool kProd, class T, class Dy, class Width>
void ChunkGrad(int64_t rows, Width width, int64_t step, const T* x,
               const Dy* dy, bool accumulate, const double* start, double* back,
               T* dx) {
  alignas(64) double product[kSteps][kTileColumns];
  alignas(64) double state[kTileColumns];
  std::copy_n(start, width, product[0]);
  for (int64_t i = 1; i < rows; ++i) {
    const T* const from = x + (i - 1) * step;
    for (int64_t j = 0; j < width; ++j) {
      product[i][j] = product[i - 1][j] * from[j];
    }
  }
  std::copy_n(back, width, state);
  for (int64_t i = rows - 1; i >= 0; --i) {
    const T* const from = x + i * step;
    T value[kTileColumns];
    for (int64_t j = 0; j < width; ++j) {
      const double sum = kProd ? state[j] : state[j] + dy[i * step + j];
      value[j] = static_cast<T>(sum * product[i][j]);
      state[j] = sum * from[j];
    }
    WriteRow(
        width, accumulate, [&](int64_t j) { return value[j]; }, dx + i * step);
  }
  std::copy_n(state, width, back);
}

// The same of n rows, `step` apart. A first pass keeps P of every kSteps-th
// row; the second goes from the last rows to the first. `starts` has room for
// StartsOf(n, width).
template <bool kProd, class T, class Dy, class Width>
void Columns(int64_t n, Width width, int64_t step, const T* x, const Dy* dy,
             bool accumulate, double* starts, T* dx) {
  alignas(64) double state[kStripColumns];
  std::fill_n(state, width, 1.0);
  const int64_t chunks = CeilDiv(n, kSteps);
  for (int64_t c = 0; c < chunks; ++c) {
    std::copy_n(state, width, starts + c * width);
    if (c + 1 == chunks) break;
    Multiply(c * kSteps, (c + 1) * kSteps, width, step, x, state);
  }
  for (int64_t j = 0; j < width; ++j) state[j] = kProd ? dy[j] : 0;
  for (int64_t c = chunks - 1; c >= 0; --c) {
    const int64_t rows = std::min(kSteps, n - c * kSteps);
    const auto grad = [&](int64_t j, auto columns) {
      const int64_t at = c * kSteps * step + j;
      ChunkGrad<kProd>(rows, columns, step, x + at, dy + (kProd ? 0 : at),
                       accumulate, starts + c * width + j, state + j, dx + at);
    };
    if constexpr (std::is_same_v<Width, int64_t>) {
      ForEachTile(width, grad);
    } else {
      grad(0, width);
    }
  }
}

// Rows of CumProd stand side by side, as many as a vector has lanes.
template <class T>
void CumProdRows(int64_t rows, int64_t n, const T* x, const T* dy,
                 bool accumulate, T* dx) {
  constexpr int64_t kRows = gemm::kWidth<T>;
  const Scratch<T> arrays(2 * n * kRows);
  const Scratch<double> starts(StartsOf(n, kRows));
  T *const x_columns = arrays.data(), *const columns = x_columns + n * kRows;
  TransposeTile(rows, n, x, n, x_columns, kRows);
  TransposeTile(rows, n, dy, n, columns, kRows);
  for (int64_t r = rows; r < kRows; ++r) {
    for (int64_t i = 0; i < n; ++i) {
      x_columns[i * kRows + r] = columns[i * kRows + r] = 0;
    }
  }
  Columns<false>(n, Constant<kRows>(), kRows, x_columns, columns, false,
                 starts.data(), columns);
  constexpr int64_t kPiece = 256;
  T piece[kRows * kPiece];
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t size = std::min(kPiece, n - i);
    TransposeTile(size, kRows, columns + i * kRows, kRows, piece, kPiece);
    for (int64_t r = 0; r < rows; ++r) {
      const T* const from = piece + r * kPiece;
      WriteRow(
          size, accumulate, [=](int64_t k) { return from[k]; }, dx + r * n + i);
    }
  }
}

// others[i] = dy times the product of all factors but i.
void OthersOf(int64_t n, double dy, const double* factor, double* others) {
  double product = 1;
  for (int64_t i = 0; i < n; ++i) {
    others[i] = product;
    product *= factor[i];
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    others[i] *= dy;
    dy *= factor[i];
  }
}

// A row of Prod is an array of kLanes columns, and the few elements that are
// left.
constexpr int64_t kLanes = 32;
using Lanes = Constant<kLanes>;

template <class T>
double ProductOfRow(int64_t n, const T* x) {
  double lane[kLanes], product = 1;
  std::fill_n(lane, kLanes, 1.0);
  Multiply(0, n / kLanes, Lanes(), kLanes, x, lane);
  for (double v : lane) product *= v;
  for (int64_t i = n / kLanes * kLanes; i < n; ++i) product *= x[i];
  return product;
}

template <class T>
void ProdRow(int64_t n, const T* x, double dy, bool accumulate, double* starts,
             T* dx) {
  const int64_t steps = n / kLanes, whole = steps * kLanes;
  double factor[2 * kLanes], others[2 * kLanes];
  std::fill_n(factor, kLanes, 1.0);
  Multiply(0, steps, Lanes(), kLanes, x, factor);
  std::copy_n(x + whole, n - whole, factor + kLanes);
  OthersOf(kLanes + n - whole, dy, factor, others);
  Columns<true>(steps, Lanes(), kLanes, x, others, accumulate, starts, dx);
  WriteRow(
      n - whole, accumulate,
      [&](int64_t i) { return static_cast<T>(others[kLanes + i]); },
      dx + whole);
}

// Long rows are rows of chunks, whose dy is that of the row times the products
// of the other chunks.
template <class T>
void ProdRows(int64_t outer, int64_t n, const T* x, const T* dy,
              bool accumulate, T* dx) {
  const int64_t chunks = CeilDiv(n, kGrain), tasks = outer * chunks;
  const int64_t grain = GrainOf(tasks, 2 * std::min(n, kGrain));
  const Scratch<double> numbers(2 * tasks);
  double *const factor = numbers.data(), *const chunk_dy = factor + tasks;
  const auto for_each_chunk = [&](auto fn) {  // fn(task, at, size)
    ParallelFor(tasks, grain, [&](int64_t task, int64_t end) {
      for (; task < end; ++task) {
        const int64_t begin = task % chunks * kGrain;
        fn(task, task / chunks * n + begin, std::min(kGrain, n - begin));
      }
    });
  };
  if (chunks > 1) {
    for_each_chunk([=](int64_t task, int64_t at, int64_t size) {
      factor[task] = ProductOfRow(size, x + at);
    });
  }
  for (int64_t o = 0; o < outer; ++o) {
    OthersOf(chunks, dy[o], factor + o * chunks, chunk_dy + o * chunks);
  }
  for_each_chunk([=](int64_t task, int64_t at, int64_t size) {
    const Scratch<double> starts(StartsOf(size / kLanes, kLanes));
    ProdRow(size, x + at, chunk_dy[task], accumulate, starts.data(), dx + at);
  });
}

template <bool kProd, class T>
void InStrips(int64_t outer, int64_t n, int64_t inner, const T* x, const T* dy,
              bool accumulate, T* dx) {
  ForEachStrip(outer, n, inner, [=](int64_t o, int64_t column, int64_t width) {
    const Scratch<double> starts(StartsOf(n, width));
    const int64_t at = o * n * inner + column;
    Columns<kProd>(n, width, inner, x + at,
                   dy + (kProd ? o * inner + column : at), accumulate,
                   starts.data(), dx + at);
  });
}

}  // namespace

template <class T>
void CumProdGrad(int64_t outer, int64_t n, int64_t inner, const T* x,
                 const T* dy, bool accumulate, T* dx) {
  if (inner != 1) {
    return InStrips<false>(outer, n, inner, x, dy, accumulate, dx);
  }
  constexpr int64_t kRows = gemm::kWidth<T>;
  const int64_t groups = CeilDiv(outer, kRows);
  ParallelFor(groups, GrainOf(groups, kRows * n), [=](int64_t g, int64_t end) {
    for (; g < end; ++g) {
      const int64_t at = g * kRows * n;
      CumProdRows(std::min(kRows, outer - g * kRows), n, x + at, dy + at,
                  accumulate, dx + at);
    }
  });
}

template <class T>
void ProdGrad(int64_t outer, int64_t n, int64_t inner, const T* x, const T* dy,
              bool accumulate, T* dx) {
  if (inner == 1) return ProdRows(outer, n, x, dy, accumulate, dx);
  InStrips<true>(outer, n, inner, x, dy, accumulate, dx);
}

template void CumProdGrad(int64_t, int64_t, int64_t, const float*, const float*,
                          bool, float*);
template void CumProdGrad(int64_t, int64_t, int64_t, const double*,
                          const double*, bool, double*);
template void ProdGrad(int64_t, int64_t, int64_t, const float*, const float*,
                       bool, float*);
template void ProdGrad(int64_t, int64_t, int64_t, const double*, const double*,
                       bool, double*);

}  // namespace wengert::kernels
