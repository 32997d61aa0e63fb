#include "autograd/kernels/moments.h"

#include <algorithm>
#include <utility>

#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/middle_loop.h"
#include "autograd/kernels/reduce_pairs.h"
#include "autograd/kernels/strips.h"

namespace wengert::kernels {
namespace {

struct MomentsOf {
  // Whose second pass is over what is in the cache.
  static constexpr int64_t kRowChunk = 4096;
  static constexpr int64_t kColumnChunk = 64;

  template <class T>
  static void Row(int64_t n, const T* x, T* mean, T* squares) {
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

  template <class T>
  static void Columns(int64_t n, int64_t width, const T* x, int64_t stride,
                      T* mean, T* squares) {
    alignas(64) T center[kStripColumns] = {};
    const T* const c = center;
    if (n > 0) std::copy_n(x, width, center);
    const auto shifted = [=](int64_t r, int64_t j) {
      return x[r * stride + j] - c[j];
    };
    BlockedRowSum(0, n, width, shifted, mean);
    for (int64_t j = 0; j < width; ++j) {
      center[j] += mean[j] / static_cast<T>(n);
      mean[j] = center[j];
    }
    const auto square = [=](int64_t r, int64_t j) {
      const T v = x[r * stride + j] - c[j];
      return v * v;
    };
    BlockedRowSum(0, n, width, square, squares);
  }

  template <class T>
  static void Join(int64_t n, int64_t chunk, int64_t chunks, int64_t width,
                   const T* means, const T* squares, int64_t stride, T* mean,
                   T* all) {
    alignas(64) double center[kStripColumns], sum[kStripColumns];
    std::copy_n(means, width, center);
    std::copy_n(squares, width, sum);
    for (int64_t c = 1; c < chunks; ++c) {
      const double before = static_cast<double>(c * chunk);
      const double more = static_cast<double>(std::min(chunk, n - c * chunk));
      const double share = more / (before + more);
      for (int64_t j = 0; j < width; ++j) {
        const double delta = means[c * stride + j] - center[j];
        center[j] += delta * share;
        sum[j] += squares[c * stride + j] + delta * delta * (before * share);
      }
    }
    for (int64_t j = 0; j < width; ++j) {
      mean[j] = static_cast<T>(center[j]);
      all[j] = static_cast<T>(sum[j]);
    }
  }
};

}  // namespace

template <class T>
void Moments(int64_t outer, int64_t n, int64_t inner, const T* x, T* mean,
             T* squares) {
  ReduceToPairs<MomentsOf>(outer, n, inner, /*cost=*/2, x, mean, squares);
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
