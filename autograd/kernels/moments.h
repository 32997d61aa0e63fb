// Means and sums of squared deviations along the middle of [outer, n, inner],
// and what spreads a slice's numbers over its elements. T is float or double.
// The order of every sum is set by the shape.
#ifndef WENGERT_AUTOGRAD_KERNELS_MOMENTS_H_
#define WENGERT_AUTOGRAD_KERNELS_MOMENTS_H_

#include <cstdint>

namespace wengert::kernels {

// mean[o, j] of x[o, :, j], and squares[o, j] = the sum of (x - mean)^2, in two
// passes over what is in the cache: equal elements give exactly themselves and
// 0. Chunks are joined by Chan, Golub and LeVeque's formula (1979), so x is
// read once from memory. Nothing has mean NaN and squares 0.
template <class T>
void Moments(int64_t outer, int64_t n, int64_t inner, const T* x, T* mean,
             T* squares);

// dx = factor (x - mean); dx += with `accumulate`. mean, factor [outer, inner].
template <class T>
void MomentsGrad(int64_t outer, int64_t n, int64_t inner, const T* x,
                 const T* mean, const T* factor, bool accumulate, T* dx);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_MOMENTS_H_
