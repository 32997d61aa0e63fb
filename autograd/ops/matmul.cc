// Matrix products: batched with broadcasting, and the linear layer.
#include <algorithm>

#include "autograd/kernels/broadcast.h"
#include "autograd/kernels/dot.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/reduce.h"
#include "autograd/ops.h"
#include "autograd/ops/axis_util.h"
#include "autograd/ops/row_dot.h"

namespace wengert {
namespace {

struct LinearSizes {
  int64_t rows, out, in;
};

LinearSizes CheckLinear(const char* op, const Tensor& x, const Tensor& weight,
                        const Tensor& bias) {
  CheckFloats(op, {x, weight}, {bias});
  const bool fits = x.rank() >= 1 && weight.rank() == 2 &&
                    x.dim(-1) == weight.dim(1) &&
                    (!bias.defined() || bias.shape() == Shape{weight.dim(0)});
  if (!fits) {
    Throw(op, "x ", Describe(x), ", weight ", Describe(weight), ", bias ",
          Describe(bias), "; wanted x [..., in], weight [out, in], bias [out]");
  }
  int64_t rows = 1;
  for (int axis = 0; axis < x.rank() - 1; ++axis) rows *= x.shape()[axis];
  return {rows, weight.dim(0), weight.dim(1)};
}

Tensor LinearForward(const LinearSizes& s, const Tensor& x,
                     const Tensor& weight, const Tensor& bias) {
  absl::InlinedVector<int64_t, 6> dims(x.shape().dims().begin(),
                                       x.shape().dims().end());
  dims.back() = s.out;
  Tensor y = Tensor::Empty(Shape(dims), x.dtype());
  WithFloat(x.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::ParallelGemm<T>(false, true, s.rows, s.out, s.in, 1, x.data<T>(),
                             s.in, weight.data<T>(), s.in, false, Out<T>(y),
                             s.out, bias.defined() ? bias.data<T>() : nullptr);
  });
  return y;
}

// dx (=|+=) dy W
template <class T>
void InputGrad(const LinearSizes& s, const Tensor& dy, const Tensor& weight,
               bool accumulate, T* dx) {
  kernels::ParallelGemm<T>(false, false, s.rows, s.in, s.out, 1, dy.data<T>(),
                           s.out, weight.data<T>(), s.in, accumulate, dx, s.in);
}

// dW = dyᵀ x into input 1 of the sink.
template <class T>
void WeightGrad(const LinearSizes& s, GradientSink& g, const T* x) {
  auto dw = g.Into<T>(1);
  kernels::ParallelGemm<T>(true, false, s.out, s.in, s.rows, 1,
                           g.dy().data<T>(), s.out, x, s.in, dw.accumulate,
                           dw.data, s.in);
}

// db = sum of dy over rows into input 2 of the sink.
template <class T>
void BiasGrad(const LinearSizes& s, GradientSink& g) {
  auto db = g.Into<T>(2);
  kernels::Sum<T>({s.rows, s.out}, {false, true}, g.dy().data<T>(),
                  db.accumulate, db.data);
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
  const auto a_at = MatrixOffsets(batch, a.shape()),
             b_at = MatrixOffsets(batch, b.shape());
  const auto y_at = MatrixOffsets(batch, y.shape());
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

namespace {

void CheckVectors(const char* op, const Tensor& a, const Tensor& b,
                  bool equal) {
  CheckFloats(op, {a, b});
  if (a.rank() != 1 || b.rank() != 1 || (equal && a.size() != b.size())) {
    Throw(op, Describe(a), " and ", Describe(b), "; wanted ",
          equal ? "[n] and [n]" : "[m] and [n]");
  }
}

}  // namespace

// y_ij = a_i b_j: da = dy b, db = dyᵀ a
Tensor Outer(const Tensor& a, const Tensor& b) {
  CheckVectors("Outer", a, b, false);
  const int64_t m = a.size(), n = b.size();
  Tensor y = Tensor::Empty({m, n}, a.dtype());
  WithFloat(a.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::Apply(kernels::Binary::kMul, {m, n}, a.data<T>(), {m, 1},
                   b.data<T>(), {n}, Out<T>(y));
  });
  Record("Outer", y, {a, b}, Save(a, b),
         [m, n](GradientSink& g, const Tensor& a, const Tensor& b) {
           const Tensor& dy = g.dy();
           if (g.Needs(0))
             g.Add(0, Reshape(MatMul(dy, Reshape(b, {n, 1})), {m}));
           if (g.Needs(1))
             g.Add(1, Reshape(MatMul(Reshape(a, {1, m}), dy), {n}));
         });
  return y;
}

// y = sum a b of each row: da = dy b, db = dy a
Tensor RowDot(const Tensor& a, const Tensor& b) {
  Tensor y = Tensor::Empty({a.dim(0)}, a.dtype());
  WithFloat(a.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::RowDot(a.dim(0), a.dim(1), a.data<T>(), b.data<T>(), Out<T>(y));
  });
  Record("Dot", y, {a, b}, Save(a, b),
         [](GradientSink& g, const Tensor& a, const Tensor& b) {
           const Tensor dy = Reshape(g.dy(), {a.dim(0), 1});
           if (g.Needs(0)) g.Add(0, dy * b);
           if (g.Needs(1)) g.Add(1, dy * a);
         });
  return y;
}

Tensor Dot(const Tensor& a, const Tensor& b) {
  CheckVectors("Dot", a, b, true);
  return Reshape(RowDot(Reshape(a, {1, a.size()}), Reshape(b, {1, b.size()})),
                 Shape{});
}

// y = x Wᵀ + b: dx = dy W, dW = dyᵀ x, db = sum of dy over rows
Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const LinearSizes s = CheckLinear("Linear", x, weight, bias);
  Tensor y = LinearForward(s, x, weight, bias);
  Record(
      "Linear", y, {x, weight, bias}, Save(x, weight, bias),
      [s](GradientSink& g, const Tensor& x, const Tensor& weight,
          const Tensor&) {
        WithFloat(x.dtype(), [&](auto t) {
          using T = decltype(t);
          if (g.Needs(0)) {
            auto dx = g.Into<T>(0);
            InputGrad(s, g.dy(), weight, dx.accumulate, dx.data);
          }
          if (g.Needs(1)) WeightGrad(s, g, x.data<T>());
          if (g.Needs(2)) BiasGrad<T>(s, g);
        });
      },
      [](const Tensor& x, const Tensor& weight, const Tensor& bias) {
        return LinearComposed(x, weight, bias);
      });
  return y;
}

// y = f(x) Wᵀ + b: dx = f'(x) (dy W), dW = dyᵀ f(x), db = sum of dy over rows
Tensor ActivatedLinear(Activation f, const Tensor& x, const Tensor& weight,
                       const Tensor& bias) {
  const LinearSizes s = CheckLinear("ActivatedLinear", x, weight, bias);
  const auto activated = [f](const Tensor& x) {
    Tensor a = Tensor::Empty(x.shape(), x.dtype());
    WithFloat(x.dtype(), [&](auto t) {
      using T = decltype(t);
      kernels::Apply(f, x.size(), x.data<T>(), Out<T>(a));
    });
    return a;
  };
  Tensor y = LinearForward(s, activated(x), weight, bias);
  Record(
      "ActivatedLinear", y, {x, weight, bias}, Save(x, weight, bias),
      [s, f, activated](GradientSink& g, const Tensor& x, const Tensor& weight,
                        const Tensor&) {
        WithFloat(x.dtype(), [&](auto t) {
          using T = decltype(t);
          Tensor a;
          if (g.Needs(0)) {
            auto dx = g.Into<T>(0);
            Tensor da;  // dy W, where it may not go into dx
            if (dx.accumulate) da = Tensor::Empty(x.shape(), x.dtype());
            T* const to = dx.accumulate ? Out<T>(da) : dx.data;
            if (g.Needs(1)) {
              a = g.MayOverwrite(x) ? x : Tensor::Empty(x.shape(), x.dtype());
            }
            InputGrad(s, g.dy(), weight, false, to);
            kernels::ApplyGrad(f, x.size(), x.data<T>(), to, dx.accumulate,
                               dx.data, g.Needs(1) ? Out<T>(a) : nullptr);
          } else if (g.Needs(1)) {
            a = activated(x);
          }
          if (g.Needs(1)) WeightGrad(s, g, a.data<T>());
          if (g.Needs(2)) BiasGrad<T>(s, g);
        });
      },
      [f](const Tensor& x, const Tensor& weight, const Tensor& bias) {
        return LinearComposed(ActivateComposed(f, x), weight, bias);
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
