// Gradients of primitives, each in one pass over memory. T: float, double.
#ifndef WENGERT_AUTOGRAD_KERNELS_GRADIENTS_H_
#define WENGERT_AUTOGRAD_KERNELS_GRADIENTS_H_

#include <cstdint>

#include "autograd/kernels/broadcast.h"
#include "autograd/kernels/elementwise.h"

namespace wengert::kernels {

// Whether the slope of y = f(x) is taken from y instead of x.
constexpr bool SlopeIsOfResult(Unary f) {
  return f == Unary::kExp || f == Unary::kTanh || f == Unary::kSqrt ||
         f == Unary::kRsqrt;
}

// dx = dy f'(x), or dx += dy f'(x) when `accumulate`, where `from` is x, or y
// if SlopeIsOfResult. dx may be dy or, unless it accumulates, `from`. Does
// nothing for what is flat everywhere (kSign to kRound).
template <class T>
void ApplyGrad(Unary f, int64_t n, const T* from, const T* dy, bool accumulate,
               T* dx);

// The same for y = x^p; 0 for p = 0, whatever x is.
template <class T>
void PowScalarGrad(int64_t n, const T* x, double p, const T* dy,
                   bool accumulate, T* dx);

// Of y = a op b, all of n elements: da (+)= dy dy/da, db (+)= dy dy/db, which
// may be null when nobody wants them and overlap nothing. Of equal operands of
// kMax and kMin `a` gets all. kMul, kDiv, kMax, kMin, kAtan2 and kPow only, of
// which kPow alone reads y: there the slope is 0 where a factor of 0 meets what
// is infinite or NaN.
template <class T>
void ApplyGrad(Binary op, int64_t n, const T* a, const T* b, const T* y,
               const T* dy, bool add_da, T* da, bool add_db, T* db);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_GRADIENTS_H_
