// Elementwise kernels of two or three arguments with NumPy's broadcasting: the
// dimensions of an argument are aligned with the last ones of the result, and a
// dimension of size 1, or one that is missing, repeats. Callers have checked
// that the shapes fit. y may be an argument whose shape is the result's.
#ifndef WENGERT_AUTOGRAD_KERNELS_BROADCAST_H_
#define WENGERT_AUTOGRAD_KERNELS_BROADCAST_H_

#include "autograd/kernels/dims.h"

namespace wengert::kernels {

enum class Binary {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,  // `a` when both are equal, NaN when either is
  kMin,  // likewise
  kPow,
  kAtan2,          // of the point (b, a)
  kReciprocalReal  // a / (a^2 + b^2); 0 at (0, 0) and at infinity
};
enum class Compare { kEq, kNe, kLt, kLe, kGt, kGe };
enum class Logic { kAnd, kOr, kXor };

// y[out] = a op b. T: float, double.
template <class T>
void Apply(Binary op, Dims out, const T* a, Dims a_dims, const T* b,
           Dims b_dims, T* y);

// y[out] = whether a op b. T: float, double, int32_t, int64_t, bool.
template <class T>
void Apply(Compare op, Dims out, const T* a, Dims a_dims, const T* b,
           Dims b_dims, bool* y);

// y[out] = whether a op b.
void Apply(Logic op, Dims out, const bool* a, Dims a_dims, const bool* b,
           Dims b_dims, bool* y);

// y[out] = a + w (b - a), from the nearer end. T: float, double.
template <class T>
void Lerp(Dims out, const T* a, Dims a_dims, const T* b, Dims b_dims,
          const T* w, Dims w_dims, T* y);

// y[out] = c ? a : b. T: float, double, int32_t, int64_t, bool.
template <class T>
void Where(Dims out, const bool* c, Dims c_dims, const T* a, Dims a_dims,
           const T* b, Dims b_dims, T* y);

// da = c ? dy : 0 and db = c ? 0 : dy, each added to where asked; either may be
// null, and they overlap nothing. All of n elements. T: float, double.
template <class T>
void WhereGrad(int64_t n, const bool* c, const T* dy, T* da, bool add_to_da,
               T* db, bool add_to_db);

// y[out] = x repeated. T: float, double, int32_t, int64_t, bool.
template <class T>
void BroadcastTo(Dims out, const T* x, Dims x_dims, T* y);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_BROADCAST_H_
