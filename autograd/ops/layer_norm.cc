// Layer normalisation over the last axis.
#include "autograd/kernels/layer_norm.h"

#include "autograd/ops.h"
#include "autograd/ops/op_util.h"

namespace wengert {

// y = h gain + bias, h = (x - mean) rstd. With e = dy gain:
// dx = rstd (e - mean(e) - h mean(e h)), dgain = sum dy h, dbias = sum dy
Tensor LayerNorm(const Tensor& x, const Tensor& gain, const Tensor& bias,
                 double eps) {
  const DType dtype = CheckFloats("LayerNorm", {x}, {gain, bias});
  const int64_t width = x.rank() > 0 ? x.dim(-1) : 0;
  const auto fits = [&](const Tensor& p) {
    return !p.defined() || p.shape() == Shape{width};
  };
  if (x.rank() < 1 || !fits(gain) || !fits(bias)) {
    Throw("LayerNorm", "x ", Describe(x), ", gain ", Describe(gain), ", bias ",
          Describe(bias), "; wanted x [..., C], gain [C], bias [C]");
  }
  const int64_t rows = width == 0 ? 0 : x.size() / width;
  Tensor y = Tensor::Empty(x.shape(), dtype);
  Tensor mean = Tensor::Empty({rows}, dtype);
  Tensor rstd = Tensor::Empty({rows}, dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::LayerNorm<T>(rows, width, static_cast<T>(eps), x.data<T>(),
                          gain.defined() ? gain.data<T>() : nullptr,
                          bias.defined() ? bias.data<T>() : nullptr, Out<T>(y),
                          Out<T>(mean), Out<T>(rstd));
  });
  Record(
      "LayerNorm", y, {x, gain, bias}, Save(x, gain, bias, mean, rstd),
      [rows, width](GradientSink& g, const Tensor& x, const Tensor& gain,
                    const Tensor&, const Tensor& mean, const Tensor& rstd) {
        WithFloat(x.dtype(), [&](auto t) {
          using T = decltype(t);
          GradientSink::Destination<T> d[3] = {};
          for (int i = 0; i < 3; ++i) {
            if (g.Needs(i)) d[i] = g.Into<T>(i);
          }
          kernels::LayerNormGrad<T>(
              rows, width, x.data<T>(),
              gain.defined() ? gain.data<T>() : nullptr, mean.data<T>(),
              rstd.data<T>(), g.dy().data<T>(), d[0].accumulate, d[0].data,
              d[1].accumulate, d[1].data, d[2].accumulate, d[2].data);
        });
      },
      [eps](const Tensor& x, const Tensor& gain, const Tensor& bias,
            const Tensor&,
            const Tensor&) { return LayerNormComposed(x, gain, bias, eps); });
  return y;
}

Tensor LayerNormComposed(const Tensor& x, const Tensor& gain,
                         const Tensor& bias, double eps) {
  const ReduceOptions keep{.keep_dims = true};
  Tensor mean = Mean(x, -1, keep);
  mean = mean + Mean(x - mean, -1, keep);  // what its rounding left
  const Tensor c = x - mean;
  Tensor y = c * Rsqrt(Mean(Square(c), -1, keep) + eps);
  if (gain.defined()) y = y * gain;
  return bias.defined() ? y + bias : y;
}

}  // namespace wengert
