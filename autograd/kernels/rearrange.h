// Kernels that put elements in other places and fill what is left: padding,
// triangles, the gradient of windows, and numbers in even steps. Outputs
// overlap no input.
#ifndef WENGERT_AUTOGRAD_KERNELS_REARRANGE_H_
#define WENGERT_AUTOGRAD_KERNELS_REARRANGE_H_

#include <cstdint>

#include "autograd/kernels/dims.h"

namespace wengert::kernels {

// y of dimensions before[d] + dims[d] + after[d], all >= 0: y[i] = x[i -
// before] where x has such an element, `value` elsewhere. Negative widths cut
// off; the gradient is the same with -before and -after. T: float, double,
// int32_t, int64_t, bool.
template <class T>
void Pad(Dims dims, Dims before, Dims after, T value, const T* x, T* y);

// y[b, i, j] = x[b, i, j] where j <= i + k (lower) or j >= i + k, 0 elsewhere;
// x [batch, m, n]. T: float, double, int32_t, int64_t, bool.
template <class T>
void Triangle(bool lower, int64_t k, int64_t batch, int64_t m, int64_t n,
              const T* x, T* y);

// What Fold adds up: windows of `size` elements, `step` apart, of an axis of n
// elements, each of which is `inner` numbers.
struct Windows {
  int64_t outer, n, inner, size, step;
  int64_t count() const { return 1 + (n - size) / step; }
};

// x[o, w step + j, i] = the sum of y[o, w, i, j] over the windows w, in their
// order; x [outer, n, inner], y [outer, count, inner, size]. T: float, double.
template <class T>
void Fold(const Windows& s, const T* y, T* x);

// y[i] = origin + (first + i) step, rounded once and then as static_cast has
// it. T: float, double, int32_t, int64_t, bool.
template <class T>
void Steps(int64_t n, int64_t first, double origin, double step, T* y);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_REARRANGE_H_
