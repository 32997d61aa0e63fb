// p-norms along the middle of [outer, n, inner], p not 0 and finite, without
// overflow or underflow on the way. T is float or double. The order of every
// sum is set by the shape.
#ifndef WENGERT_AUTOGRAD_KERNELS_VECTOR_NORM_H_
#define WENGERT_AUTOGRAD_KERNELS_VECTOR_NORM_H_

#include <cstdint>

namespace wengert::kernels {

// y[o, j] = (sum of |x[o, :, j]|^p)^(1/p); of nothing 0, or infinity for p < 0.
template <class T>
void VectorNorm(int64_t outer, int64_t n, int64_t inner, double p, const T* x,
                T* y);

// dx = dy sign(x) (|x| / y)^(p - 1), 0 where x or y is; dx += with
// `accumulate`. y, dy [outer, inner].
template <class T>
void VectorNormGrad(int64_t outer, int64_t n, int64_t inner, double p,
                    const T* x, const T* y, const T* dy, bool accumulate,
                    T* dx);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_VECTOR_NORM_H_
