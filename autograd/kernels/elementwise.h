// Kernels that treat every element alike: functions of one argument,
// activations with their derivatives, casts. T is float or double unless said
// otherwise; an output may be the input itself, but must not overlap it in
// part.
#ifndef WENGERT_AUTOGRAD_KERNELS_ELEMENTWISE_H_
#define WENGERT_AUTOGRAD_KERNELS_ELEMENTWISE_H_

#include <cstdint>

#include "autograd/activation.h"

namespace wengert::kernels {

enum class Unary {
  kExp,
  kLog,
  kTanh,
  kErf,
  kErfc,
  kSqrt,
  kRsqrt,  // 1 / sqrt(x)
  kSquare,
  kSigmoid,
  kExpm1,  // e^x - 1
  kLog1p,  // ln(1 + x)
  kSin,
  kCos,
  kSign,  // x itself where that is 0 or NaN
  kFloor,
  kCeil,
  kTrunc,
  kRound,  // ties to even
};
enum class Predicate { kNan, kInf, kFinite };

// y = op(x).
template <class T>
void Apply(Unary op, int64_t n, const T* x, T* y);
template <class T>
void Apply(Predicate op, int64_t n, const T* x, bool* y);

// y = a x + b, rounded once.
template <class T>
void Affine(int64_t n, T a, T b, const T* x, T* y);

// y = x^p as std::pow has it; p = -2, -1.5, -1, -.5, 0, .5, 1, 2 and 3 are
// fast, where roots of -0 and -inf are those of std::sqrt.
template <class T>
void PowScalar(int64_t n, const T* x, double p, T* y);

// y += x.
template <class T>
void Accumulate(int64_t n, const T* x, T* y);

// y = value. T also int32_t, int64_t, bool.
template <class T>
void Fill(int64_t n, T value, T* y);

// y = x as static_cast has it (to bool: x != 0; NaN or too large to an integer:
// the smallest integer). From and To: float, double, int32_t, int64_t, bool.
// y may be x only when the types are equal.
template <class From, class To>
void Convert(int64_t n, const From* x, To* y);

// True when x holds no NaN and no infinity.
template <class T>
bool AllFinite(int64_t n, const T* x);

// y = f(x). Left tails keep their relative accuracy (kGeluTanh: times |2u|);
// at infinite x the values and slopes are the limits; NaN stays NaN.
template <class T>
void Apply(Activation f, int64_t n, const T* x, T* y);

// dx = dy f'(x), or dx += dy f'(x) when `accumulate`; dx may be dy, or (unless
// it accumulates) x. Where ReLU is flat dx gets 0, whatever dy is. On the way
// y = f(x), unless it is null; y may be x.
template <class T>
void ApplyGrad(Activation f, int64_t n, const T* x, const T* dy,
               bool accumulate, T* dx, T* y = nullptr);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_ELEMENTWISE_H_
