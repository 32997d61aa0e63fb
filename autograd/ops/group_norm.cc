// Group normalisation: over groups of channels and all places of an image or a
// sequence.
#include "autograd/kernels/group_norm.h"

#include "autograd/ops.h"
#include "autograd/ops/norm_rows.h"
#include "autograd/ops/op_util.h"

namespace wengert {
namespace {

kernels::GroupNormSizes CheckedSizes(const Tensor& x, int64_t groups,
                                     const Tensor& gain, const Tensor& bias,
                                     double eps) {
  CheckFloats("GroupNorm", {x}, {gain, bias});
  const int64_t channels = x.rank() < 2 ? 0 : x.dim(1);
  const auto fits = [&](const Tensor& p) {
    return !p.defined() || p.shape() == Shape{channels};
  };
  if (x.rank() < 2 || groups < 1 || channels % groups != 0 || !fits(gain) ||
      !fits(bias)) {
    Throw("GroupNorm", "x ", Describe(x), ", ", groups, " groups, gain ",
          Describe(gain), ", bias ", Describe(bias),
          "; wanted x [B, C, ...] with a C that the groups divide, gain [C], "
          "bias [C]");
  }
  CheckEps("GroupNorm", eps);
  const int64_t planes = x.dim(0) * channels;
  return {.batch = x.dim(0),
          .channels = channels,
          .places = planes == 0 ? 0 : x.size() / planes,
          .groups = groups};
}

}  // namespace

// y = h gain + bias, h = (x - mean) rstd. With e = dy gain, over each group:
// dx = rstd (e - mean(e) - h mean(e h)), dgain = sum dy h, dbias = sum dy
Tensor GroupNorm(const Tensor& x, int64_t groups, const Tensor& gain,
                 const Tensor& bias, double eps) {
  const kernels::GroupNormSizes sizes =
      CheckedSizes(x, groups, gain, bias, eps);
  const DType dtype = x.dtype();
  Tensor y = Tensor::Empty(x.shape(), dtype);
  Tensor mean = Tensor::Empty({sizes.batch, groups}, dtype);
  Tensor rstd = Tensor::Empty({sizes.batch, groups}, dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::GroupNorm<T>(sizes, static_cast<T>(eps), x.data<T>(),
                          gain.defined() ? gain.data<T>() : nullptr,
                          bias.defined() ? bias.data<T>() : nullptr, Out<T>(y),
                          Out<T>(mean), Out<T>(rstd));
  });
  Record(
      "GroupNorm", y, {x, gain, bias}, Save(x, gain, bias, mean, rstd),
      [sizes](GradientSink& g, const Tensor& x, const Tensor& gain,
              const Tensor&, const Tensor& mean, const Tensor& rstd) {
        WithFloat(x.dtype(), [&](auto t) {
          using T = decltype(t);
          GradientSink::Destination<T> d[3] = {};
          for (int i = 0; i < 3; ++i) {
            if (g.Needs(i)) d[i] = g.Into<T>(i);
          }
          kernels::GroupNormGrad<T>(
              sizes, x.data<T>(), gain.defined() ? gain.data<T>() : nullptr,
              mean.data<T>(), rstd.data<T>(), g.dy().data<T>(), d[0].accumulate,
              d[0].data, d[1].accumulate, d[1].data, d[2].accumulate,
              d[2].data);
        });
      },
      [groups, eps](const Tensor& x, const Tensor& gain, const Tensor& bias,
                    const Tensor&, const Tensor&) {
        return GroupNormComposed(x, groups, gain, bias, eps);
      });
  return y;
}

Tensor GroupNormComposed(const Tensor& x, int64_t groups, const Tensor& gain,
                         const Tensor& bias, double eps) {
  const auto [batch, channels, places, n] =
      CheckedSizes(x, groups, gain, bias, eps);
  const Tensor rows = Reshape(x, Shape{batch * n, channels / n * places});
  Tensor y = Reshape(LayerNormComposed(rows, {}, {}, eps),
                     Shape{batch, channels, places});
  if (gain.defined()) y = y * Reshape(gain, Shape{channels, 1});
  if (bias.defined()) y = y + Reshape(bias, Shape{channels, 1});
  return Reshape(y, x.shape());
}

}  // namespace wengert
