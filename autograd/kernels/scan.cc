#include "autograd/kernels/scan.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/kernels/strips.h"
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
void StoreFour(T* y, bool accumulate, Four v) {
  typedef T Part __attribute__((vector_size(4 * sizeof(T))));
  if (kReverse) v = __builtin_shufflevector(v, v, 3, 2, 1, 0);
  Part part = __builtin_convertvector(v, Part), before;
  T* const to = kReverse ? y - 3 : y;
  if (accumulate) {
    std::memcpy(&before, to, sizeof(before));
    part += before;
  }
  std::memcpy(to, &part, sizeof(part));
}

// y[i], or y[-i] if kReverse, for i < n from what came before, `carry`; eight
// elements at a time, whose own scan does not wait for the carry.
template <class Op, bool kReverse = false, class T>
void ScanRow(int64_t n, double carry, const T* x, bool accumulate, T* y) {
  constexpr int kStep = kReverse ? -1 : 1;
  Four before = Four{} + carry;
  const auto eight = [&before](const T* from, bool accumulate, T* to) {
    Four low = ScanFour<Op>(LoadFour<kReverse>(from));
    Four high = ScanFour<Op>(LoadFour<kReverse>(from + 4 * kStep));
    high = Op::Of(high, LastOf(low));
    StoreFour<kReverse>(to, accumulate, Op::Of(before, low));
    StoreFour<kReverse>(to + 4 * kStep, accumulate, Op::Of(before, high));
    before = Op::Of(before, LastOf(high));
  };
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) eight(x + i * kStep, accumulate, y + i * kStep);
  if (i == n) return;
  T in[8], out[8];
  std::fill_n(in, 8, static_cast<T>(Op::kNeutral));
  constexpr int kFirst = kReverse ? 7 : 0;
  for (int64_t l = 0; l < n - i; ++l) {
    in[kFirst + l * kStep] = x[(i + l) * kStep];
  }
  eight(in + kFirst, false, out + kFirst);
  for (int64_t l = 0; l < n - i; ++l) {
    T& to = y[(i + l) * kStep];
    to = out[kFirst + l * kStep] + (accumulate ? to : T(0));
  }
}

// The same one by one: in double the product of eight could overflow where the
// running one is 0.
void MultiplyRow(int64_t n, const double* x, double* y) {
  double product = 1;
  for (int64_t i = 0; i < n; ++i) y[i] = product *= x[i];
}

// The same of `width` columns, whose rows are `step` apart: a few rows, in
// tiles of columns whose results so far are in registers.
template <class Op, class T>
void ScanColumns(int64_t n, int64_t width, int64_t step, const T* x,
                 bool accumulate, T* y) {
  constexpr int64_t kRows = 16;
  alignas(64) double carry[kStripColumns];
  std::fill_n(carry, width, Op::kNeutral);
  for (int64_t i = 0; i < n; i += kRows) {
    ForEachTile(width, [&](int64_t j, auto columns) {
      alignas(64) double state[kTileColumns];
      std::copy_n(carry + j, columns, state);
      for (int64_t r = i; r < std::min(n, i + kRows); ++r) {
        const T* const from = x + r * step + j;
        for (int64_t k = 0; k < columns; ++k) {
          state[k] = Op::Of(state[k], static_cast<double>(from[k]));
        }
        WriteRow(
            columns, accumulate,
            [&](int64_t k) { return static_cast<T>(state[k]); },
            y + r * step + j);
      }
      std::copy_n(state, columns, carry + j);
    });
  }
}

// A long row, of which there are too few to share among threads: the chunks'
// sums, and then each chunk from what came before it. (Not for products: that
// of a whole chunk may overflow.)
template <class T>
void LongCumSum(int64_t n, bool reverse, const T* x, bool accumulate, T* y) {
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
      reverse ? ScanRow<Plus, true>(size(c), before[c], from, accumulate, to)
              : ScanRow<Plus>(size(c), before[c], from, accumulate, to);
    }
  });
}

}  // namespace

template <class T>
void CumSum(int64_t outer, int64_t n, int64_t inner, bool reverse, const T* x,
            bool accumulate, T* y) {
  if (inner == 1 && outer < 16 && n > 2 * kGrain) {
    for (int64_t o = 0; o < outer; ++o) {
      LongCumSum(n, reverse, x + o * n, accumulate, y + o * n);
    }
    return;
  }
  ForEachStrip(outer, n, inner, [=](int64_t o, int64_t column, int64_t width) {
    const int64_t at = (o * n + (reverse ? n - 1 : 0)) * inner + column;
    if (inner == 1) {
      return reverse ? ScanRow<Plus, true>(n, 0, x + at, accumulate, y + at)
                     : ScanRow<Plus>(n, 0, x + at, accumulate, y + at);
    }
    ScanColumns<Plus>(n, width, reverse ? -inner : inner, x + at, accumulate,
                      y + at);
  });
}

template <class T>
void CumProd(int64_t outer, int64_t n, int64_t inner, const T* x, T* y) {
  ForEachStrip(outer, n, inner, [=](int64_t o, int64_t column, int64_t width) {
    const int64_t at = o * n * inner + column;
    if (inner == 1) {
      if constexpr (std::is_same_v<T, float>) {
        ScanRow<Times>(n, 1, x + at, false, y + at);
      } else {
        MultiplyRow(n, x + at, y + at);
      }
      return;
    }
    ScanColumns<Times>(n, width, inner, x + at, false, y + at);
  });
}

template void CumSum(int64_t, int64_t, int64_t, bool, const float*, bool,
                     float*);
template void CumSum(int64_t, int64_t, int64_t, bool, const double*, bool,
                     double*);
template void CumProd(int64_t, int64_t, int64_t, const float*, float*);
template void CumProd(int64_t, int64_t, int64_t, const double*, double*);

}  // namespace wengert::kernels
