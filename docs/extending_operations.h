// The operations that docs/extending.md adds.
#ifndef WENGERT_DOCS_EXTENDING_OPERATIONS_H_
#define WENGERT_DOCS_EXTENDING_OPERATIONS_H_

#include <algorithm>
#include <cmath>

#include "autograd/ops.h"

namespace wengert {

// y = atan x: dx = dy / (1 + x²)
inline Tensor Atan(const Tensor& x) {
  Tensor y = Tensor::Empty(x.shape(), x.dtype());
  const double* in = x.data<double>();
  std::transform(in, in + x.size(), y.mutable_data<double>(),
                 [](double v) { return std::atan(v); });
  Record("Atan", y, {x}, Save(x), [](GradientSink& g, const Tensor& x) {
    g.Add(0, g.dy() / (1 + Square(x)));
  });
  return y;
}

// The kernels of Softsign: raw rows, no tensors.
inline void SoftsignKernel(int64_t n, const double* x, double* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (1 + std::abs(x[i]));
}
inline void SoftsignGradKernel(int64_t n, const double* x, const double* dy,
                               bool accumulate, double* dx) {
  for (int64_t i = 0; i < n; ++i) {
    const double s = 1 / (1 + std::abs(x[i]));
    dx[i] = (accumulate ? dx[i] : 0) + dy[i] * s * s;
  }
}

// The same value from primitives: the oracle, and every higher derivative.
inline Tensor SoftsignComposed(const Tensor& x) {
  return x / (1 + Maximum(x, -x));
}

// y = x / (1 + |x|): dx = dy / (1 + |x|)²
inline Tensor Softsign(const Tensor& x) {
  Tensor y = Tensor::Empty(x.shape(), x.dtype());
  SoftsignKernel(x.size(), x.data<double>(), y.mutable_data<double>());
  Record(
      "Softsign", y, {x}, Save(x),
      [](GradientSink& g, const Tensor& x) {
        auto dx = g.Into<double>(0);
        SoftsignGradKernel(x.size(), x.data<double>(), g.dy().data<double>(),
                           dx.accumulate, dx.data);
      },
      [](const Tensor& x) { return SoftsignComposed(x); });
  return y;
}

}  // namespace wengert

#endif  // WENGERT_DOCS_EXTENDING_OPERATIONS_H_
