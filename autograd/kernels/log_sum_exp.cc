#include "autograd/kernels/log_sum_exp.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/base/attributes.h"
#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/map.h"
#include "autograd/kernels/middle_loop.h"
#include "autograd/kernels/reduce_pairs.h"
#include "autograd/kernels/scratch.h"
#include "autograd/kernels/softmax_row.h"
#include "autograd/kernels/strips.h"
#include "autograd/kernels/vecmath.h"

namespace wengert::kernels {
namespace {

template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T Larger(T best, T v) {
  return Select((v > best) | (v != v), v, best);
}

// What is subtracted where `largest` is the largest: of -inf alone nothing, so
// that exp(x - shift) is no NaN but 0.
template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T ShiftOf(T largest) {
  return Select(largest == -kInfinity<T>, T(0), largest);
}

// e^-a for a >= 0, in units of Unit().
template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T Term(T a) {
  return ExpOfMinus(a).m;
}
template <class T>
T Unit() {
  return ExpOfMinus(T(0)).s;
}

// The largest x, and the sum of exp(x - shift), which follows the largest that
// was seen as it grows. What the sum is matters only where that is finite.
struct LogSumExpOf {
  static constexpr int64_t kRowChunk = kGrain;
  static constexpr int64_t kColumnChunk = kSumRows;

  template <class T>
  static void Row(int64_t n, const T* x, T* max, T* sum) {
    constexpr int64_t kBlock = 1024;
    T largest = -kInfinity<T>, total = 0;
    for (int64_t i = 0; i < n; i += kBlock) {
      const T* const from = x + i;
      const int64_t size = std::min(kBlock, n - i);
      const T before = largest;
      largest = Larger(before, RowMax(size, from));
      const T shift = ShiftOf(largest);
      total = total * Exp(before - shift) + BlockedSum<T>(size, [=](int64_t k) {
                return Term(shift - from[k]);
              });
    }
    *max = largest;
    *sum = total * Unit<T>();
  }

  template <class T>
  static void Columns(int64_t n, int64_t width, const T* x, int64_t stride,
                      T* max, T* sum) {
    alignas(64) T shift[kStripColumns], largest[kStripColumns],
        total[kStripColumns], part[kStripColumns];
    const T* const s = shift;
    std::fill_n(largest, width, -kInfinity<T>);
    std::fill_n(total, width, T(0));
    for (int64_t r = 0; r < n; r += kSumBlock) {
      const int64_t end = std::min(n, r + kSumBlock);
      std::copy_n(largest, width, part);
      FoldRows(
          r, end, width,
          [=](T best, int64_t q, int64_t j) {
            return Larger(best, x[q * stride + j]);
          },
          largest);
      for (int64_t j = 0; j < width; ++j) {
        shift[j] = ShiftOf(largest[j]);
        total[j] *= Exp(part[j] - shift[j]);
        part[j] = 0;
      }
      FoldRows(
          r, end, width,
          [=](T a, int64_t q, int64_t j) {
            return a + Term(s[j] - x[q * stride + j]);
          },
          part);
      for (int64_t j = 0; j < width; ++j) total[j] += part[j];
    }
    for (int64_t j = 0; j < width; ++j) {
      max[j] = largest[j];
      sum[j] = total[j] * Unit<T>();
    }
  }

  template <class T>
  static void Join(int64_t, int64_t, int64_t chunks, int64_t width,
                   const T* maxima, const T* sums, int64_t stride, T* max,
                   T* sum) {
    alignas(64) T largest[kStripColumns], shift[kStripColumns];
    const T* const s = shift;
    std::fill_n(largest, width, -kInfinity<T>);
    FoldRows(
        0, chunks, width,
        [=](T best, int64_t c, int64_t j) {
          return Larger(best, maxima[c * stride + j]);
        },
        largest);
    for (int64_t j = 0; j < width; ++j) shift[j] = ShiftOf(largest[j]);
    const auto term = [=](int64_t c, int64_t j) {
      return sums[c * stride + j] * Exp(maxima[c * stride + j] - s[j]);
    };
    BlockedRowSum(0, chunks, width, term, sum);
    std::copy_n(largest, width, max);
  }
};

}  // namespace

template <class T>
void LogSumExp(int64_t outer, int64_t n, int64_t inner, const T* x, T* y,
               T* shift, T* sum) {
  ReduceToPairs<LogSumExpOf>(outer, n, inner, /*cost=*/4, x, shift, sum);
  ForEach(outer * inner, [=](int64_t i) ABSL_ATTRIBUTE_ALWAYS_INLINE {
    const T largest = shift[i];
    const bool finite = std::fabs(largest) < kInfinity<T>;
    sum[i] = Select(finite, sum[i], T(1));
    y[i] = Select(finite, largest + Log(sum[i]), largest);
    shift[i] = ShiftOf(largest);
  });
}

template <class T>
void LogSumExpGrad(int64_t outer, int64_t n, int64_t inner, const T* x,
                   const T* shift, const T* sum, const T* dy, bool accumulate,
                   T* dx) {
  const Scratch<T> factors(outer * inner);
  T* const factor = factors.data();
  ForEach(outer * inner, [=](int64_t s) ABSL_ATTRIBUTE_ALWAYS_INLINE {
    factor[s] = dy[s] / sum[s];
  });
  WriteMiddle(
      outer, n, inner, accumulate,
      [=](int64_t s) { return std::pair(shift[s], factor[s]); },
      [=](int64_t i, std::pair<T, T> slice) {
        return Term(slice.first - x[i]) * Unit<T>() * slice.second;
      },
      dx);
}

template void LogSumExp(int64_t, int64_t, int64_t, const float*, float*, float*,
                        float*);
template void LogSumExp(int64_t, int64_t, int64_t, const double*, double*,
                        double*, double*);
template void LogSumExpGrad(int64_t, int64_t, int64_t, const float*,
                            const float*, const float*, const float*, bool,
                            float*);
template void LogSumExpGrad(int64_t, int64_t, int64_t, const double*,
                            const double*, const double*, const double*, bool,
                            double*);

}  // namespace wengert::kernels
