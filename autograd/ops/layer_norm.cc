// Layer normalisation over the last axis or several last ones.
#include "autograd/kernels/layer_norm.h"

#include "autograd/ops.h"
#include "autograd/ops/norm_rows.h"
#include "autograd/ops/op_util.h"

namespace wengert {

namespace {

NormRows CheckedRows(const Tensor& x, const Tensor& gain, const Tensor& bias,
                     double eps) {
  CheckFloats("LayerNorm", {x}, {gain, bias});
  const auto rows = NormRowsOf(x, gain, bias);
  if (!rows) {
    Throw("LayerNorm", "x ", Describe(x), ", gain ", Describe(gain), ", bias ",
          Describe(bias), "; wanted x [..., C], gain [C], bias [C], where C ",
          "may be several axes");
  }
  CheckEps("LayerNorm", eps);
  return *rows;
}

}  // namespace

// y = h gain + bias, h = (x - mean) rstd. With e = dy gain:
// dx = rstd (e - mean(e) - h mean(e h)), dgain = sum dy h, dbias = sum dy
Tensor LayerNorm(const Tensor& x, const Tensor& gain, const Tensor& bias,
                 double eps) {
  const NormRows n = CheckedRows(x, gain, bias, eps);
  const DType dtype = x.dtype();
  Tensor y = Tensor::Empty(x.shape(), dtype);
  Tensor mean = Tensor::Empty({n.rows}, dtype);
  Tensor rstd = Tensor::Empty({n.rows}, dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::LayerNorm<T>(n.rows, n.width, static_cast<T>(eps), x.data<T>(),
                          gain.defined() ? gain.data<T>() : nullptr,
                          bias.defined() ? bias.data<T>() : nullptr, Out<T>(y),
                          Out<T>(mean), Out<T>(rstd));
  });
  Record(
      "LayerNorm", y, {x, gain, bias}, Save(x, gain, bias, mean, rstd),
      [n](GradientSink& g, const Tensor& x, const Tensor& gain, const Tensor&,
          const Tensor& mean, const Tensor& rstd) {
        WithFloat(x.dtype(), [&](auto t) {
          using T = decltype(t);
          GradientSink::Destination<T> d[3] = {};
          for (int i = 0; i < 3; ++i) {
            if (g.Needs(i)) d[i] = g.Into<T>(i);
          }
          kernels::LayerNormGrad<T>(
              n.rows, n.width, x.data<T>(),
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
  const NormRows n = CheckedRows(x, gain, bias, eps);
  const ReduceOptions keep{.keep_dims = true};
  const Tensor rows = AsRows(x, n);
  Tensor mean = Mean(rows, -1, keep);
  mean = mean + Mean(rows - mean, -1, keep);  // what its rounding left
  const Tensor c = rows - mean;
  Tensor y = c * Rsqrt(Mean(Square(c), -1, keep) + eps);
  if (gain.defined()) y = y * AsRow(gain, n);
  if (bias.defined()) y = y + AsRow(bias, n);
  return Reshape(y, x.shape());
}

}  // namespace wengert
