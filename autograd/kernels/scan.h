// Running sums and products along the middle of [outer, n, inner]. They run in
// double, so that a float one keeps its accuracy however long it is. T is float
// or double.
#ifndef WENGERT_AUTOGRAD_KERNELS_SCAN_H_
#define WENGERT_AUTOGRAD_KERNELS_SCAN_H_

#include <cstdint>

namespace wengert::kernels {

// y[o, i, j] = the sum of x[o, k, j] over k <= i, or k >= i if `reverse`; y +=
// with `accumulate`.
template <class T>
void CumSum(int64_t outer, int64_t n, int64_t inner, bool reverse, const T* x,
            bool accumulate, T* y);

// y[o, i, j] = the product of x[o, k, j] over k <= i.
template <class T>
void CumProd(int64_t outer, int64_t n, int64_t inner, const T* x, T* y);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_SCAN_H_
