// Normalisation by the root mean square, over the last axis or several last
// ones.
#include <limits>

#include "autograd/kernels/layer_norm.h"
#include "autograd/ops.h"
#include "autograd/ops/norm_rows.h"
#include "autograd/ops/op_util.h"

namespace wengert {
namespace {

NormRows CheckedRows(const Tensor& x, const Tensor& gain) {
  CheckFloats("RmsNorm", {x}, {gain});
  const auto rows = NormRowsOf(x, gain);
  if (!rows) {
    Throw("RmsNorm", "x ", Describe(x), ", gain ", Describe(gain),
          "; wanted x [..., C], gain [C], where C may be several axes");
  }
  return *rows;
}

double EpsOr(std::optional<double> eps, DType dtype) {
  if (eps) CheckEps("RmsNorm", *eps);
  return eps ? *eps : WithFloat(dtype, [](auto t) -> double {
    return std::numeric_limits<decltype(t)>::epsilon();
  });
}

}  // namespace

// y = h gain, h = x rstd. With e = dy gain:
// dx = rstd (e - h mean(e h)), dgain = sum dy h
Tensor RmsNorm(const Tensor& x, const Tensor& gain, std::optional<double> eps) {
  const NormRows n = CheckedRows(x, gain);
  const DType dtype = x.dtype();
  const double floor = EpsOr(eps, dtype);
  Tensor y = Tensor::Empty(x.shape(), dtype);
  Tensor rstd = Tensor::Empty({n.rows}, dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::LayerNorm<T>(n.rows, n.width, static_cast<T>(floor), x.data<T>(),
                          gain.defined() ? gain.data<T>() : nullptr, nullptr,
                          Out<T>(y), nullptr, Out<T>(rstd));
  });
  Record(
      "RmsNorm", y, {x, gain}, Save(x, gain, rstd),
      [n](GradientSink& g, const Tensor& x, const Tensor& gain,
          const Tensor& rstd) {
        WithFloat(x.dtype(), [&](auto t) {
          using T = decltype(t);
          GradientSink::Destination<T> d[2] = {};
          for (int i = 0; i < 2; ++i) {
            if (g.Needs(i)) d[i] = g.Into<T>(i);
          }
          kernels::LayerNormGrad<T>(n.rows, n.width, x.data<T>(),
                                    gain.defined() ? gain.data<T>() : nullptr,
                                    nullptr, rstd.data<T>(), g.dy().data<T>(),
                                    d[0].accumulate, d[0].data, d[1].accumulate,
                                    d[1].data, false, nullptr);
        });
      },
      [floor](const Tensor& x, const Tensor& gain, const Tensor&) {
        return RmsNormComposed(x, gain, floor);
      });
  return y;
}

Tensor RmsNormComposed(const Tensor& x, const Tensor& gain,
                       std::optional<double> eps) {
  const NormRows n = CheckedRows(x, gain);
  const Tensor rows = AsRows(x, n);
  const Tensor mean = Mean(Square(rows), -1, {.keep_dims = true});
  Tensor y = rows * Rsqrt(mean + EpsOr(eps, x.dtype()));
  if (gain.defined()) y = y * AsRow(gain, n);
  return Reshape(y, x.shape());
}

}  // namespace wengert
