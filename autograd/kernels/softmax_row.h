// What softmax, cross-entropy and attention share. For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_SOFTMAX_ROW_H_
#define WENGERT_AUTOGRAD_KERNELS_SOFTMAX_ROW_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/base/attributes.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/vecmath.h"

namespace wengert::kernels {

template <class T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();

// The largest element, -inf of none, NaN where one is.
template <class T>
T RowMax(int64_t n, const T* x) {
  constexpr int kLanes = 32;
  const auto larger = [](T best, T v) {
    return Select((v > best) | (v != v), v, best);
  };
  T lane[kLanes];
  std::fill_n(lane, kLanes, -kInfinity<T>);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) lane[l] = larger(lane[l], x[i + l]);
  }
  T best = -kInfinity<T>;
  if (i > 0) {
#pragma GCC unroll 8
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int l = 0; l < width; ++l) {
        lane[l] = larger(lane[l], lane[l + width]);
      }
    }
    best = lane[0];
  }
  for (; i < n; ++i) best = larger(best, x[i]);
  return best;
}

// e^x for x <= 0, or a little above for a rounding: Exp's bits with less work.
template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T ExpOfNonPositive(T x) {
  const auto [m, s] = ExpOfMinus(-x);
  return m * s;
}

// y = exp(x - shift), shift not below any x. y may be x.
template <class T>
void ExpRow(int64_t n, const T* x, T shift, T* y) {
  WENGERT_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = ExpOfNonPositive(x[i] - shift);
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_SOFTMAX_ROW_H_
