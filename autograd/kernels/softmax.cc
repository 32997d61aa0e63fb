#include "autograd/kernels/softmax.h"

#include <algorithm>

#include "absl/base/attributes.h"
#include "autograd/kernels/gemm_tile.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/row_sums.h"
#include "autograd/kernels/softmax_rows.h"
#include "autograd/kernels/vecmath.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

template <class T>
using Lanes = T[gemm::kWidth<T>];

constexpr int64_t kGroupBytes = 1 << 13;

// fn(n, offset of the first) for every group of n rows.
template <class T, class Fn>
void ForEachRows(int64_t rows, int64_t width, const Fn& fn) {
  ParallelFor(rows, GrainOf(rows, width), [&](int64_t begin, int64_t end) {
    ForEachGroup<T>(begin, end, width, kGroupBytes,
                    [&](int64_t r, int n) { fn(n, r * width); });
  });
}

// What softmax subtracts: the rows' maxima, or 0 where that is -inf, so that
// exp(x - shift) is no NaN but 0. The sum of such a row is 0; any other is at
// least 1, or NaN.
template <class T>
void Shifts(int rows, int64_t width, const T* x, T* shift) {
  RowMaxima(rows, width, x, shift);
  for (int r = 0; r < gemm::kWidth<T>; ++r) {
    shift[r] = Select<T>(shift[r] == -kInfinity<T>, 0, shift[r]);
  }
}

}  // namespace

template <class T>
void Softmax(int64_t rows, int64_t width, const T* x, T* y) {
  ForEachRows<T>(rows, width, [=](int n, int64_t at) {
    using Vector = gemm::Vector<T>;
    const T* const from = x + at;
    T* const to = y + at;
    Lanes<T> shifts, scale;
    Shifts(n, width, from, shifts);
    const auto add = [=, shift = &shifts[0]](int r, auto place, Vector* part)
                         ABSL_ATTRIBUTE_ALWAYS_INLINE {
                           Prefetch(place, from + (r + n) * width);
                           const Vector e = ExpLanes<T>(
                               place.Load(from + r * width) - shift[r]);
                           place.Store(to + r * width, e);
                           part[0] += place.OrZero(e);
                         };
    gemm::Store(scale, RowSums<T, 1>(n, width, add)[0]);
    for (int r = 0; r < gemm::kWidth<T>; ++r) {
      scale[r] = Select<T>(scale[r] == 0, 0, 1 / scale[r]);
    }
    const auto value = [&](int r, auto place) ABSL_ATTRIBUTE_ALWAYS_INLINE {
      return place.Load(to + r * width) * scale[r];
    };
    WriteRows(n, width, false, value, to);
  });
}

template <class T>
void SoftmaxGrad(int64_t rows, int64_t width, const T* y, const T* dy,
                 bool accumulate, T* dx) {
  ForEachRows<T>(rows, width, [=](int n, int64_t at) {
    const T *const p = y + at, *const dp = dy + at;
    const auto add = [=](int r, auto place,
                         gemm::Vector<T>* part) ABSL_ATTRIBUTE_ALWAYS_INLINE {
      part[0] = gemm::MultiplyAdd<T>(place.Load(p + r * width),
                                     place.Load(dp + r * width), part[0]);
    };
    Lanes<T> mean;
    gemm::Store(mean, RowSums<T, 1>(n, width, add)[0]);
    const auto value = [&](int r, auto place) ABSL_ATTRIBUTE_ALWAYS_INLINE {
      return place.Load(p + r * width) * (place.Load(dp + r * width) - mean[r]);
    };
    WriteRows(n, width, accumulate, value, dx + at);
  });
}

template <class T>
void LogSoftmax(int64_t rows, int64_t width, const T* x, T* y) {
  ForEachRows<T>(rows, width, [=](int n, int64_t at) {
    const T* const from = x + at;
    Lanes<T> shifts, log_sum;
    Shifts(n, width, from, shifts);
    const auto add = [=, shift = &shifts[0]](
                         int r, auto place,
                         gemm::Vector<T>* part) ABSL_ATTRIBUTE_ALWAYS_INLINE {
      Prefetch(place, from + (r + n) * width);
      part[0] +=
          place.OrZero(ExpLanes<T>(place.Load(from + r * width) - shift[r]));
    };
    gemm::Store(log_sum, RowSums<T, 1>(n, width, add)[0]);
    for (int r = 0; r < gemm::kWidth<T>; ++r) {
      log_sum[r] = Select<T>(log_sum[r] == 0, 0, Log(log_sum[r]));
    }
    const auto value = [&](int r, auto place) ABSL_ATTRIBUTE_ALWAYS_INLINE {
      return (place.Load(from + r * width) - shifts[r]) - log_sum[r];
    };
    WriteRows(n, width, false, value, y + at);
  });
}

template <class T>
void LogSoftmaxGrad(int64_t rows, int64_t width, const T* y, const T* dy,
                    bool accumulate, T* dx) {
  ForEachRows<T>(rows, width, [=](int n, int64_t at) {
    const T *const logp = y + at, *const d = dy + at;
    const auto add = [=](int r, auto place, gemm::Vector<T>* part)
                         ABSL_ATTRIBUTE_ALWAYS_INLINE {
                           part[0] += place.Load(d + r * width);
                         };
    Lanes<T> sum;
    gemm::Store(sum, RowSums<T, 1>(n, width, add)[0]);
    for (int r = 0; r < n; ++r) {
      T* const to = dx + at + r * width;
      const T* const row = logp + r * width;
      // Where no class is possible, all are -inf.
      if (std::all_of(row, row + width,
                      [](T v) { return v == -kInfinity<T>; })) {
        if (!accumulate) std::fill_n(to, width, T(0));
        continue;
      }
      const auto value = [&](int, auto place) ABSL_ATTRIBUTE_ALWAYS_INLINE {
        const auto p = ExpLanes<T>(place.Load(row));
        return place.Load(d + r * width) - p * sum[r];
      };
      WriteRows(1, width, accumulate, value, to);
    }
  });
}

template void Softmax(int64_t, int64_t, const float*, float*);
template void SoftmaxGrad(int64_t, int64_t, const float*, const float*, bool,
                          float*);
template void LogSoftmax(int64_t, int64_t, const float*, float*);
template void LogSoftmaxGrad(int64_t, int64_t, const float*, const float*, bool,
                             float*);
template void Softmax(int64_t, int64_t, const double*, double*);
template void SoftmaxGrad(int64_t, int64_t, const double*, const double*, bool,
                          double*);
template void LogSoftmax(int64_t, int64_t, const double*, double*);
template void LogSoftmaxGrad(int64_t, int64_t, const double*, const double*,
                             bool, double*);

}  // namespace wengert::kernels
