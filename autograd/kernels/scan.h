// Running sums and products along the middle of [outer, n, inner]. They run in
// double, so that a float one keeps its accuracy however long it is. T is float
// or double.
#ifndef WENGERT_AUTOGRAD_KERNELS_SCAN_H_
#define WENGERT_AUTOGRAD_KERNELS_SCAN_H_

#include <cstdint>

namespace wengert::kernels {

// y[o, i, j] = the sum of x[o, k, j] over k <= i, or k >= i if `reverse`.
template <class T>
void CumSum(int64_t outer, int64_t n, int64_t inner, bool reverse, const T* x,
            T* y);

// y[o, i, j] = the product of x[o, k, j] over k <= i.
template <class T>
void CumProd(int64_t outer, int64_t n, int64_t inner, const T* x, T* y);

// The gradient of CumProd from dy [outer, n, inner], and that of the product
// over the middle from dy [outer, inner]: nothing is divided, so zeros do no
// harm. dx += with `accumulate`.
template <class T>
void CumProdGrad(int64_t outer, int64_t n, int64_t inner, const T* x,
                 const T* dy, bool accumulate, T* dx);
template <class T>
void ProdGrad(int64_t outer, int64_t n, int64_t inner, const T* x, const T* dy,
              bool accumulate, T* dx);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_SCAN_H_
