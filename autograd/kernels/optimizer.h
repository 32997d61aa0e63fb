// Kernels of an optimizer's step and of gradient clipping: passes over flat
// memory, in parallel by chunks of a fixed size. T is float or double.
#ifndef WENGERT_AUTOGRAD_KERNELS_OPTIMIZER_H_
#define WENGERT_AUTOGRAD_KERNELS_OPTIMIZER_H_

#include <cstdint>

namespace wengert::kernels {

struct AdamFactors {
  double step_size;  // lr / (1 - beta1^t)
  double beta1;
  double beta2;
  double root_scale;  // 1 / sqrt(1 - beta2^t)
  double eps;
  double l2 = 0;    // of w, is added to g
  double keep = 1;  // what decoupled decay leaves of w
};

// g' = g + l2 w;  m += (1 - beta1) (g' - m);  v = beta2 v + (1 - beta2) g'^2;
// w = keep w - step_size m / (root_scale sqrt(v) + eps).
template <class T>
void AdamStep(int64_t n, const AdamFactors& factors, const T* g, T* w, T* m,
              T* v);

struct SgdFactors {
  double lr;
  double momentum;
  bool nesterov;
  double l2;  // of w, is added to g
};

// g' = g + l2 w;  b = momentum b + g';
// w -= lr b, or with nesterov w -= lr (g' + momentum b).
template <class T>
void SgdStep(int64_t n, const SgdFactors& factors, const T* g, T* w, T* b);

struct RmsPropFactors {
  double lr;
  double alpha;
  double eps;
  double momentum;
  bool centered;
  double l2;  // of w, is added to g
};

// g' = g + l2 w;  v = alpha v + (1 - alpha) g'^2;  a += (1 - alpha) (g' - a);
// b = momentum b + g' / (sqrt(v - a^2) + eps), without a if not centered;
// w -= lr b.
template <class T>
void RmsPropStep(int64_t n, const RmsPropFactors& factors, const T* g, T* w,
                 T* v, T* a, T* b);

struct AdagradFactors {
  double lr;
  double start;  // of the sum
  double eps;
  double l2;  // of w, is added to g
};

// g' = g + l2 w;  s += g'^2;  w -= lr g' / (sqrt(start + s) + eps).
template <class T>
void AdagradStep(int64_t n, const AdagradFactors& factors, const T* g, T* w,
                 T* s);

struct LionFactors {
  double lr;
  double beta1;
  double beta2;
  double keep;  // what decay leaves of w
};

// w = keep w - lr sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g.
template <class T>
void LionStep(int64_t n, const LionFactors& factors, const T* g, T* w, T* m);

// x = factor x, rounded once.
template <class T>
void Scale(int64_t n, double factor, T* x);

// The sum of (scale x)^2, added in double.
template <class T>
double SumSquares(int64_t n, double scale, const T* x);

// y += rate (x - y): a moving average of x.
template <class T>
void MovingAverage(int64_t n, T rate, const T* x, T* y);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_OPTIMIZER_H_
