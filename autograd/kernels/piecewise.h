// Functions of one argument and their derivatives, one pass over memory each.
// T: float, double. An output may be an input.
#ifndef WENGERT_AUTOGRAD_KERNELS_PIECEWISE_H_
#define WENGERT_AUTOGRAD_KERNELS_PIECEWISE_H_

#include <cstdint>

namespace wengert::kernels {

struct Piecewise {
  enum Kind {
    kAbs,        // |x|; slope 0 at 0
    kClamp,      // min(b, max(a, x)); slope 0 at the bounds
    kLeakyRelu,  // x where x > 0, a x elsewhere
    kElu,        // x where x > 0, a (e^x - 1) elsewhere
    kSoftplus,   // ln(1 + e^(a x)) / a, without overflow
  };
  Kind kind;
  double a = 0, b = 0;
};

// y = f(x). NaN stays NaN.
template <class T>
void Apply(const Piecewise& f, int64_t n, const T* x, T* y);

// dx = dy f'(x), or dx += dy f'(x) when `accumulate`. Where kAbs and kClamp are
// flat dx gets 0, whatever dy is.
template <class T>
void ApplyGrad(const Piecewise& f, int64_t n, const T* x, const T* dy,
               bool accumulate, T* dx);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_PIECEWISE_H_
