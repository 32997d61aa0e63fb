// Softmax and log-softmax along one axis.
#include "autograd/kernels/softmax.h"

#include <limits>
#include <utility>

#include "autograd/ops.h"
#include "autograd/ops/op_util.h"

namespace wengert {
namespace {

// x with `axis` and the last one swapped, which the fused kernels want last.
Tensor AxisLast(const Tensor& x, int axis) {
  absl::InlinedVector<int, 6> axes;
  for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  std::swap(axes[axis], axes.back());
  return Permute(x, axes);
}

// A fused row operation: value f(x), gradient df(y, dy), composition.
template <class F, class DF>
Tensor OverRows(const char* op, const Tensor& x, int axis, F f, DF df,
                Tensor (*composed)(const Tensor&, int)) {
  const DType dtype = CheckFloats(op, {x});
  const int a = x.shape().CheckAxis(op, axis);
  if (a != x.rank() - 1) {
    return AxisLast(OverRows(op, AxisLast(x, a), -1, f, df, composed), a);
  }
  const int64_t width = x.dim(-1);
  const int64_t rows = width == 0 ? 0 : x.size() / width;
  Tensor y = Tensor::Empty(x.shape(), dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    f(rows, width, x.data<T>(), Out<T>(y));
  });
  Record(
      op, y, {x}, Save(x, y),
      [rows, width, df](GradientSink& g, const Tensor&, const Tensor& y) {
        WithFloat(y.dtype(), [&](auto t) {
          using T = decltype(t);
          auto dx = g.Into<T>(0);
          df(rows, width, y.data<T>(), g.dy().data<T>(), dx.accumulate,
             dx.data);
        });
      },
      [composed](const Tensor& x, const Tensor&) { return composed(x, -1); });
  return y;
}

Tensor Lowest(DType dtype) {
  return Tensor::Scalar(-std::numeric_limits<double>::infinity(), dtype);
}

// The maximum along an axis as a constant, and 0 where all is -inf, so that
// x - Peak(x) is never inf - inf.
Tensor Peak(const Tensor& x, int axis) {
  const Tensor m = Max(x.Detach(), axis, {.keep_dims = true});
  return MaskedFill(m, Equal(m, Lowest(x.dtype())), 0);
}

}  // namespace

// y = exp(x) / sum exp(x): dx = y (dy - sum y dy)
Tensor Softmax(const Tensor& x, int axis) {
  return OverRows(
      "Softmax", x, axis, [](auto... a) { kernels::Softmax(a...); },
      [](auto... a) { kernels::SoftmaxGrad(a...); }, &SoftmaxComposed);
}

Tensor SoftmaxComposed(const Tensor& x, int axis) {
  if (x.size() == 0) return Affine(x, 1, 0);
  const Tensor e = Exp(x - Peak(x, axis));
  const Tensor sum = Sum(e, axis, {.keep_dims = true});
  // Only a slice that is all -inf has sum 0: it becomes 0 / 1.
  return e / MaskedFill(sum, Equal(sum, Tensor::Scalar(0, x.dtype())), 1);
}

// y = x - log sum exp(x): dx = dy - exp(y) sum dy
Tensor LogSoftmax(const Tensor& x, int axis) {
  return OverRows(
      "LogSoftmax", x, axis, [](auto... a) { kernels::LogSoftmax(a...); },
      [](auto... a) { kernels::LogSoftmaxGrad(a...); }, &LogSoftmaxComposed);
}

Tensor LogSoftmaxComposed(const Tensor& x, int axis) {
  if (x.size() == 0) return Affine(x, 1, 0);
  const Tensor from_peak = x - Peak(x, axis);
  const Tensor sum = LogSumExp(from_peak, axis, {.keep_dims = true});
  const Tensor none = Equal(sum, Lowest(x.dtype()));
  return MaskedFill(from_peak - MaskedFill(sum, none, 0), none,
                    -std::numeric_limits<double>::infinity());
}

}  // namespace wengert
