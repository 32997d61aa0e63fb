// Matrix products: batched with broadcasting, and the linear layer.
#include <algorithm>

#include "autograd/kernels/broadcast.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/reduce.h"
#include "autograd/ops.h"
#include "autograd/ops/op_util.h"

namespace wengert {
namespace {

// Where the matrix of each entry of `batch` starts in an operand, in elements.
internal::PoolVector<int64_t> Offsets(const Shape& batch, const Shape& shape) {
  const int64_t matrix = shape[shape.rank() - 2] * shape[shape.rank() - 1];
  internal::PoolVector<int64_t> offsets(batch.size(), 0);
  for (int64_t i = 0; i < batch.size(); ++i) {
    int64_t rest = i, stride = matrix;
    for (int axis = 1; axis <= shape.rank() - 2; ++axis) {
      const int64_t n = batch[batch.rank() - axis];
      const int64_t mine = shape[shape.rank() - 2 - axis];
      if (mine != 1) offsets[i] += rest % n * stride;
      rest /= n;
      stride *= mine;
    }
  }
  return offsets;
}

}  // namespace

// y = op(a) op(b): d op(a) = dy op(b)ᵀ, d op(b) = op(a)ᵀ dy
Tensor MatMul(const Tensor& a, const Tensor& b, MatMulOptions options) {
  const DType dtype = CheckFloats("MatMul", {a, b});
  const bool ta = options.transpose_a, tb = options.transpose_b;
  const bool matrices = a.rank() >= 2 && b.rank() >= 2;
  if (!matrices || a.dim(ta ? -2 : -1) != b.dim(tb ? -1 : -2)) {
    Throw("MatMul", Describe(a), ta ? " transposed" : "", " times ",
          Describe(b), tb ? " transposed" : "",
          matrices ? ": the inner dimensions differ; wanted [..., m, k] x "
                     "[..., k, n]"
                   : ": wanted two operands of rank 2 or more");
  }
  const int64_t m = a.dim(ta ? -1 : -2), k = a.dim(ta ? -2 : -1);
  const int64_t n = b.dim(tb ? -2 : -1);
  const Shape batch =
      Broadcast("MatMul", Shape(a.shape().dims().first(a.rank() - 2)),
                Shape(b.shape().dims().first(b.rank() - 2)));
  absl::InlinedVector<int64_t, 6> dims(batch.dims().begin(),
                                       batch.dims().end());
  dims.insert(dims.end(), {m, n});
  if (b.rank() == 2 && a.rank() > 2 && !ta) {  // one tall product
    const Tensor rows = Reshape(a, {batch.size() * m, k});
    return Reshape(MatMul(rows, b, options), Shape(dims));
  }
  Tensor y = Tensor::Empty(Shape(dims), dtype);
  const auto a_at = Offsets(batch, a.shape()), b_at = Offsets(batch, b.shape());
  const auto y_at = Offsets(batch, y.shape());
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::BatchedGemm<T>(batch.size(), ta, tb, m, n, k, 1, a.data<T>(),
                            a_at.data(), std::max<int64_t>(1, a.dim(-1)),
                            b.data<T>(), b_at.data(),
                            std::max<int64_t>(1, b.dim(-1)), false, Out<T>(y),
                            y_at.data(), std::max<int64_t>(1, n));
  });
  Record("MatMul", y, {a, b}, Save(a, b),
         [ta, tb](GradientSink& g, const Tensor& a, const Tensor& b) {
           const Tensor& dy = g.dy();
           if (g.Needs(0)) {
             g.Add(0, ta ? MatMul(b, dy, {tb, true})
                         : MatMul(dy, b, {false, !tb}));
           }
           if (g.Needs(1)) {
             g.Add(1, tb ? MatMul(dy, a, {true, ta})
                         : MatMul(a, dy, {!ta, false}));
           }
         });
  return y;
}

// y = x Wᵀ + b: dx = dy W, dW = dyᵀ x, db = sum of dy over rows
Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const DType dtype = CheckFloats("Linear", {x, weight}, {bias});
  const bool fits = x.rank() >= 1 && weight.rank() == 2 &&
                    x.dim(-1) == weight.dim(1) &&
                    (!bias.defined() || bias.shape() == Shape{weight.dim(0)});
  if (!fits) {
    Throw("Linear", "x ", Describe(x), ", weight ", Describe(weight), ", bias ",
          Describe(bias), "; wanted x [..., in], weight [out, in], bias [out]");
  }
  const int64_t out = weight.dim(0), in = weight.dim(1);
  const Shape rows_shape(x.shape().dims().first(x.rank() - 1));
  const int64_t rows = rows_shape.size();
  absl::InlinedVector<int64_t, 6> dims(x.shape().dims().begin(),
                                       x.shape().dims().end());
  dims.back() = out;
  Tensor y = Tensor::Empty(Shape(dims), dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    if (bias.defined()) {
      kernels::BroadcastTo<T>({rows, out}, bias.data<T>(), {out}, Out<T>(y));
    }
    kernels::ParallelGemm<T>(false, true, rows, out, in, 1, x.data<T>(), in,
                             weight.data<T>(), in, bias.defined(), Out<T>(y),
                             out);
  });
  Record(
      "Linear", y, {x, weight, bias}, Save(x, weight, bias),
      [rows, out, in](GradientSink& g, const Tensor& x, const Tensor& weight,
                      const Tensor&) {
        WithFloat(x.dtype(), [&](auto t) {
          using T = decltype(t);
          const T* dy = g.dy().data<T>();
          if (g.Needs(0)) {
            auto dx = g.Into<T>(0);
            kernels::ParallelGemm<T>(false, false, rows, in, out, 1, dy, out,
                                     weight.data<T>(), in, dx.accumulate,
                                     dx.data, in);
          }
          if (g.Needs(1)) {
            auto dw = g.Into<T>(1);
            kernels::ParallelGemm<T>(true, false, out, in, rows, 1, dy, out,
                                     x.data<T>(), in, dw.accumulate, dw.data,
                                     in);
          }
          if (g.Needs(2)) {
            auto db = g.Into<T>(2);
            kernels::Sum<T>({rows, out}, {false, true}, dy, db.accumulate,
                            db.data);
          }
        });
      },
      [](const Tensor& x, const Tensor& weight, const Tensor& bias) {
        return LinearComposed(x, weight, bias);
      });
  return y;
}

Tensor LinearComposed(const Tensor& x, const Tensor& weight,
                      const Tensor& bias) {
  // A single row is a matrix of one row.
  const Tensor rows = x.rank() == 1 ? Reshape(x, {1, -1}) : x;
  Tensor y = MatMul(rows, weight, {.transpose_b = true});
  if (x.rank() == 1) y = Reshape(y, {weight.dim(0)});
  return bias.defined() ? y + bias : y;
}

}  // namespace wengert
