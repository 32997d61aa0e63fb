// Gradients of products along the middle of [outer, n, inner]. Nothing is
// divided, so zeros do no harm. Products are in double. T is float or double.
#ifndef WENGERT_AUTOGRAD_KERNELS_PRODUCT_GRAD_H_
#define WENGERT_AUTOGRAD_KERNELS_PRODUCT_GRAD_H_

#include <cstdint>

namespace wengert::kernels {

// The gradient of CumProd from dy [outer, n, inner]; dx += with `accumulate`.
template <class T>
void CumProdGrad(int64_t outer, int64_t n, int64_t inner, const T* x,
                 const T* dy, bool accumulate, T* dx);

// That of the product over the middle from dy [outer, inner].
template <class T>
void ProdGrad(int64_t outer, int64_t n, int64_t inner, const T* x, const T* dy,
              bool accumulate, T* dx);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_PRODUCT_GRAD_H_
