// Elementwise kernels of two or three arguments with NumPy's broadcasting: the
// dimensions of an argument are aligned with the last ones of the result, and a
// dimension of size 1, or one that is missing, repeats. Callers have checked
// that the shapes fit. y may be an argument whose shape is the result's.
#ifndef WENGERT_AUTOGRAD_KERNELS_BROADCAST_H_
#define WENGERT_AUTOGRAD_KERNELS_BROADCAST_H_

#include "autograd/kernels/dims.h"

namespace wengert::kernels {

// kMax and kMin take `a` when both are equal, and give NaN when either is NaN.
enum class Binary { kAdd, kSub, kMul, kDiv, kMax, kMin };
enum class Compare { kEq, kLt, kGt };

// y[out] = a op b. T: float, double.
template <class T>
void Apply(Binary op, Dims out, const T* a, Dims a_dims, const T* b,
           Dims b_dims, T* y);

// y[out] = whether a op b. T: float, double, int32_t, int64_t, bool.
template <class T>
void Apply(Compare op, Dims out, const T* a, Dims a_dims, const T* b,
           Dims b_dims, bool* y);

// y[out] = c ? a : b. T: float, double, int32_t, int64_t, bool.
template <class T>
void Where(Dims out, const bool* c, Dims c_dims, const T* a, Dims a_dims,
           const T* b, Dims b_dims, T* y);

// y[out] = x repeated. T: float, double, int32_t, int64_t, bool.
template <class T>
void BroadcastTo(Dims out, const T* x, Dims x_dims, T* y);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_BROADCAST_H_
