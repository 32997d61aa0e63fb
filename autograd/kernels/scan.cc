#include "autograd/kernels/scan.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

struct Plus {
  static constexpr double kNeutral = 0;
  template <class V>
  static V Of(V a, V b) {
    return a + b;
  }
};
struct Times {
  static constexpr double kNeutral = 1;
  template <class V>
  static V Of(V a, V b) {
    return a * b;
  }
};

typedef double Four __attribute__((vector_size(32)));

template <class Op>
Four ScanFour(Four v) {
  const Four neutral = Four{} + Op::kNeutral;
  v = Op::Of(v, __builtin_shufflevector(neutral, v, 0, 4, 2, 6));
  return Op::Of(v, __builtin_shufflevector(neutral, v, 0, 1, 5, 5));
}
inline Four LastOf(Four v) { return __builtin_shufflevector(v, v, 3, 3, 3, 3); }

// The four elements from x on, or those that end with x, the last first.
template <bool kReverse, class T>
Four LoadFour(const T* x) {
  double in[4];
  for (int l = 0; l < 4; ++l) in[l] = (kReverse ? x - 3 : x)[l];
  Four v;
  std::memcpy(&v, in, sizeof(v));
  return kReverse ? __builtin_shufflevector(v, v, 3, 2, 1, 0) : v;
}
template <bool kReverse, class T>
void StoreFour(T* y, Four v) {
  typedef T Part __attribute__((vector_size(4 * sizeof(T))));
  if (kReverse) v = __builtin_shufflevector(v, v, 3, 2, 1, 0);
  const Part part = __builtin_convertvector(v, Part);
  std::memcpy(kReverse ? y - 3 : y, &part, sizeof(part));
}

// y[i], or y[-i] if kReverse, for i < n from what came before, `carry`; eight
// elements at a time, whose own scan does not wait for the carry.
template <class Op, bool kReverse = false, class T>
void ScanRow(int64_t n, double carry, const T* x, T* y) {
  constexpr int kStep = kReverse ? -1 : 1;
  Four before = Four{} + carry;
  const auto eight = [&before](const T* from, T* to) {
    Four low = ScanFour<Op>(LoadFour<kReverse>(from));
    Four high = ScanFour<Op>(LoadFour<kReverse>(from + 4 * kStep));
    high = Op::Of(high, LastOf(low));
    StoreFour<kReverse>(to, Op::Of(before, low));
    StoreFour<kReverse>(to + 4 * kStep, Op::Of(before, high));
    before = Op::Of(before, LastOf(high));
  };
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) eight(x + i * kStep, y + i * kStep);
  if (i == n) return;
  T in[8], out[8];
  std::fill_n(in, 8, static_cast<T>(Op::kNeutral));
  constexpr int kFirst = kReverse ? 7 : 0;
  for (int64_t l = 0; l < n - i; ++l) {
    in[kFirst + l * kStep] = x[(i + l) * kStep];
  }
  eight(in + kFirst, out + kFirst);
  for (int64_t l = 0; l < n - i; ++l) {
    y[(i + l) * kStep] = out[kFirst + l * kStep];
  }
}

// The same one by one: in double the product of eight could overflow where the
// running one is 0.
void MultiplyRow(int64_t n, const double* x, double* y) {
  double product = 1;
  for (int64_t i = 0; i < n; ++i) y[i] = product *= x[i];
}

template <int64_t n>
using Constant = std::integral_constant<int64_t, n>;

// fn(width), with a constant where it is kFull.
template <int64_t kFull, class Fn>
void WithWidth(int64_t width, const Fn& fn) {
  width == kFull ? fn(Constant<kFull>()) : fn(width);
}

// The same of `width` columns, whose rows are `step` apart.
template <class Op, class T>
void ScanColumns(int64_t n, int64_t width, int64_t step, const T* x, T* y) {
  WithWidth<kSumColumns>(width, [&](auto columns) {
    double carry[kSumColumns];
    std::fill_n(carry, kSumColumns, Op::kNeutral);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        carry[j] = Op::Of(carry[j], static_cast<double>(x[i * step + j]));
      }
      for (int64_t j = 0; j < columns; ++j) {
        y[i * step + j] = static_cast<T>(carry[j]);
      }
    }
  });
}

// fn(o, column, width) for the slices of [outer, n, inner], in tiles of
// columns.
template <class Fn>
void ForEachTile(int64_t outer, int64_t n, int64_t inner, const Fn& fn) {
  const int64_t tiles = CeilDiv(inner, kSumColumns), tasks = outer * tiles;
  const int64_t work = n * std::min(inner, kSumColumns);
  ParallelFor(tasks, GrainOf(tasks, work), [&](int64_t task, int64_t end) {
    for (; task < end; ++task) {
      const int64_t column = task % tiles * kSumColumns;
      fn(task / tiles, column, std::min(kSumColumns, inner - column));
    }
  });
}

// A long row, of which there are too few to share among threads: the chunks'
// sums, and then each chunk from what came before it. (Not for products: that
// of a whole chunk may overflow.)
template <class T>
void LongCumSum(int64_t n, bool reverse, const T* x, T* y) {
  const int64_t chunks = CeilDiv(n, kGrain);
  const Scratch<double> scratch(chunks);
  double* before = scratch.data();
  const auto size = [=](int64_t c) { return std::min(kGrain, n - c * kGrain); };
  ParallelFor(chunks, 1, [&](int64_t c, int64_t end) {
    for (; c < end; ++c) {
      const T* from = x + c * kGrain;
      before[c] = BlockedSum<double>(
          size(c), [=](int64_t i) { return static_cast<double>(from[i]); });
    }
  });
  double sum = 0;
  for (int64_t i = 0; i < chunks; ++i) {
    double& here = before[reverse ? chunks - 1 - i : i];
    const double next = sum + here;
    here = sum;
    sum = next;
  }
  ParallelFor(chunks, 1, [&](int64_t c, int64_t end) {
    for (; c < end; ++c) {
      const int64_t last = reverse ? size(c) - 1 : 0;
      const T* from = x + c * kGrain + last;
      T* to = y + c * kGrain + last;
      reverse ? ScanRow<Plus, true>(size(c), before[c], from, to)
              : ScanRow<Plus>(size(c), before[c], from, to);
    }
  });
}

// dx[i] = P[i] S[i] for `width` slices side by side, whose elements i are
// `step` apart: P[i] is the product of the x before i, and S[i], what the
// results from i on hand back, is dy[i] + x[i + 1] S[i + 1]. With kProd only
// the last result exists. `between` is the distance of slices; it and the width
// may be constants.
template <bool kProd, class T, class Width, class Between>
void ProductGrad(int64_t n, Width width, int64_t step, Between between,
                 const T* x, const T* dy, int64_t dy_between, bool accumulate,
                 double* products, T* dx) {
  double state[kSumColumns];
  std::fill_n(state, kSumColumns, 1.0);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      products[i * width + j] = state[j];
      state[j] *= x[i * step + j * between];
    }
  }
  for (int64_t j = 0; j < width; ++j) {
    state[j] = kProd ? static_cast<double>(dy[j * dy_between]) : 0;
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    const T* from = x + i * step;
    T value[kSumColumns];
    for (int64_t j = 0; j < width; ++j) {
      const int64_t at = j * between;
      const double sum = kProd ? state[j] : state[j] + dy[i * step + at];
      value[j] = static_cast<T>(sum * products[i * width + j]);
      state[j] = sum * from[at];
    }
    T* to = dx + i * step;
    for (int64_t j = 0; j < width; ++j) {
      const int64_t at = j * between;
      to[at] = accumulate ? to[at] + value[j] : value[j];
    }
  }
}

// Slices that are rows go eight at a time, since each waits for itself.
constexpr int64_t kRows = 8;

template <bool kProd, class T>
void ProductGrads(int64_t outer, int64_t n, int64_t inner, const T* x,
                  const T* dy, bool accumulate, T* dx) {
  if (inner != 1) {
    return ForEachTile(
        outer, n, inner, [=](int64_t o, int64_t column, int64_t width) {
          const Scratch<double> products(n * width);
          const int64_t at = o * n * inner + column;
          WithWidth<kSumColumns>(width, [&](auto width) {
            ProductGrad<kProd>(n, width, inner, Constant<1>(), x + at,
                               dy + (kProd ? o * inner + column : at), 1,
                               accumulate, products.data(), dx + at);
          });
        });
  }
  const int64_t groups = CeilDiv(outer, kRows);
  ParallelFor(groups, GrainOf(groups, kRows * n), [=](int64_t g, int64_t end) {
    for (; g < end; ++g) {
      const int64_t width = std::min(kRows, outer - g * kRows);
      const int64_t at = g * kRows * n;
      const Scratch<double> products(n * width);
      WithWidth<kRows>(width, [&](auto width) {
        ProductGrad<kProd>(n, width, 1, n, x + at,
                           dy + (kProd ? g * kRows : at), kProd ? 1 : n,
                           accumulate, products.data(), dx + at);
      });
    }
  });
}

}  // namespace

template <class T>
void CumSum(int64_t outer, int64_t n, int64_t inner, bool reverse, const T* x,
            T* y) {
  if (inner == 1 && outer < 16 && n > 2 * kGrain) {
    for (int64_t o = 0; o < outer; ++o) {
      LongCumSum(n, reverse, x + o * n, y + o * n);
    }
    return;
  }
  ForEachTile(outer, n, inner, [=](int64_t o, int64_t column, int64_t width) {
    const int64_t at = (o * n + (reverse ? n - 1 : 0)) * inner + column;
    if (inner == 1) {
      return reverse ? ScanRow<Plus, true>(n, 0, x + at, y + at)
                     : ScanRow<Plus>(n, 0, x + at, y + at);
    }
    ScanColumns<Plus>(n, width, reverse ? -inner : inner, x + at, y + at);
  });
}

template <class T>
void CumProd(int64_t outer, int64_t n, int64_t inner, const T* x, T* y) {
  ForEachTile(outer, n, inner, [=](int64_t o, int64_t column, int64_t width) {
    const int64_t at = o * n * inner + column;
    if (inner == 1) {
      if constexpr (std::is_same_v<T, float>) {
        ScanRow<Times>(n, 1, x + at, y + at);
      } else {
        MultiplyRow(n, x + at, y + at);
      }
      return;
    }
    ScanColumns<Times>(n, width, inner, x + at, y + at);
  });
}

template <class T>
void CumProdGrad(int64_t outer, int64_t n, int64_t inner, const T* x,
                 const T* dy, bool accumulate, T* dx) {
  ProductGrads<false>(outer, n, inner, x, dy, accumulate, dx);
}

template <class T>
void ProdGrad(int64_t outer, int64_t n, int64_t inner, const T* x, const T* dy,
              bool accumulate, T* dx) {
  ProductGrads<true>(outer, n, inner, x, dy, accumulate, dx);
}

template void CumSum(int64_t, int64_t, int64_t, bool, const float*, float*);
template void CumSum(int64_t, int64_t, int64_t, bool, const double*, double*);
template void CumProd(int64_t, int64_t, int64_t, const float*, float*);
template void CumProd(int64_t, int64_t, int64_t, const double*, double*);
template void CumProdGrad(int64_t, int64_t, int64_t, const float*, const float*,
                          bool, float*);
template void CumProdGrad(int64_t, int64_t, int64_t, const double*,
                          const double*, bool, double*);
template void ProdGrad(int64_t, int64_t, int64_t, const float*, const float*,
                       bool, float*);
template void ProdGrad(int64_t, int64_t, int64_t, const double*, const double*,
                       bool, double*);

}  // namespace wengert::kernels
