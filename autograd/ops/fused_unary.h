// Fused operations of one argument.
#ifndef WENGERT_AUTOGRAD_OPS_FUSED_UNARY_H_
#define WENGERT_AUTOGRAD_OPS_FUSED_UNARY_H_

#include "autograd/ops/op_util.h"
#include "autograd/tape.h"

namespace wengert {

// y = f(x) by kernels::Apply: dx = dy f'(x) by kernels::ApplyGrad.
// composition(x) computes y from primitives.
template <class F, class Composition>
Tensor FusedUnary(const char* op, const F& f, const Tensor& x,
                  Composition composition) {
  const DType dtype = CheckFloats(op, {x});
  Tensor y = Tensor::Empty(x.shape(), dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::Apply(f, x.size(), x.data<T>(), Out<T>(y));
  });
  Record(
      op, y, {x}, Save(x),
      [f](GradientSink& g, const Tensor& x) {
        WithFloat(x.dtype(), [&](auto t) {
          using T = decltype(t);
          auto dx = g.Into<T>(0);
          kernels::ApplyGrad(f, x.size(), x.data<T>(), g.dy().data<T>(),
                             dx.accumulate, dx.data);
        });
      },
      composition);
  return y;
}

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_OPS_FUSED_UNARY_H_
