// log(sum(exp(x))) along the middle of [outer, n, inner], and its gradient. T
// is float or double. The order of every sum is set by the shape.
#ifndef WENGERT_AUTOGRAD_KERNELS_LOG_SUM_EXP_H_
#define WENGERT_AUTOGRAD_KERNELS_LOG_SUM_EXP_H_

#include <cstdint>

namespace wengert::kernels {

// y[o, j] = log(sum of exp(x[o, :, j])) without overflow: -inf where all are
// -inf or there is none, +inf where one is, NaN where one is. x is read once.
// For the gradient exp(x - shift) / sum is softmax(x), also where y is so large
// that exp(x - y) would have lost digits. All of them are [outer, inner].
template <class T>
void LogSumExp(int64_t outer, int64_t n, int64_t inner, const T* x, T* y,
               T* shift, T* sum);

// dx = dy exp(x - shift) / sum; dx += with `accumulate`. It is 0 where all are
// -inf; where y is +inf, it is NaN where x is, and else 0.
template <class T>
void LogSumExpGrad(int64_t outer, int64_t n, int64_t inner, const T* x,
                   const T* shift, const T* sum, const T* dy, bool accumulate,
                   T* dx);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_LOG_SUM_EXP_H_
