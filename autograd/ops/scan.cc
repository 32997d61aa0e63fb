// Running sums and products along one axis, and whole products, whose gradients
// are such.
#include "autograd/kernels/scan.h"

#include "autograd/kernels/product_grad.h"
#include "autograd/kernels/reduce.h"
#include "autograd/ops.h"
#include "autograd/ops/op_util.h"
#include "autograd/ops/reduce_plan.h"

namespace wengert {
namespace {

// y_i = sum of x_k over k <= i (k >= i if reverse): dx the same of dy, the
// other way round
Tensor RunningSum(const Tensor& x, int axis, bool reverse) {
  const DType dtype = CheckFloats("CumSum", {x});
  const int a = x.shape().CheckAxis("CumSum", axis);
  const Middle m = MiddleOf(x.shape(), a);
  Tensor y = Tensor::Empty(x.shape(), dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::CumSum(m.outer, m.n, m.inner, reverse, x.data<T>(), false,
                    Out<T>(y));
  });
  Record("CumSum", y, {x}, Save(), [a, m, reverse](GradientSink& g) {
    if (g.Recorded()) return g.Add(0, RunningSum(g.dy(), a, !reverse));
    WithFloat(g.dy().dtype(), [&](auto t) {
      using T = decltype(t);
      auto dx = g.Into<T>(0);
      kernels::CumSum(m.outer, m.n, m.inner, !reverse, g.dy().data<T>(),
                      dx.accumulate, dx.data);
    });
  });
  return y;
}

// The product over the middle, by halves: log n steps.
Tensor ProdOfMiddle(const Tensor& x, const Middle& m, const Shape& result) {
  Tensor y = Reshape(x, {m.outer, m.n, m.inner});
  if (m.n == 0) return Reshape(Sum(y, 1) + 1, result);
  for (int64_t n = m.n; n > 1; n -= n / 2) {
    const int64_t half = n / 2;
    const Tensor product = Slice(y, 1, 0, half) * Slice(y, 1, half, half);
    y = n % 2 == 0
            ? product
            : Concat(std::vector<Tensor>{product, Slice(y, 1, n - 1, 1)}, 1);
  }
  return Reshape(y, result);
}

}  // namespace

Tensor CumSum(const Tensor& x, int axis) {
  return RunningSum(x, axis, /*reverse=*/false);
}

// y_i = x_0 .. x_i: dx_i = sum over j >= i of dy_j times the others of y_j
Tensor CumProd(const Tensor& x, int axis) {
  const DType dtype = CheckFloats("CumProd", {x});
  const int a = x.shape().CheckAxis("CumProd", axis);
  const Middle m = MiddleOf(x.shape(), a);
  Tensor y = Tensor::Empty(x.shape(), dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::CumProd(m.outer, m.n, m.inner, x.data<T>(), Out<T>(y));
  });
  Record(
      "CumProd", y, {x}, Save(x),
      [m](GradientSink& g, const Tensor& x) {
        WithFloat(x.dtype(), [&](auto t) {
          using T = decltype(t);
          auto dx = g.Into<T>(0);
          kernels::CumProdGrad(m.outer, m.n, m.inner, x.data<T>(),
                               g.dy().data<T>(), dx.accumulate, dx.data);
        });
      },
      [a](const Tensor& x) { return CumProdComposed(x, a); });
  return y;
}

// After step k each element is the product of the 2^k that end there.
Tensor CumProdComposed(const Tensor& x, int axis) {
  const int a = x.shape().CheckAxis("CumProd", axis);
  Tensor y = x;
  for (int64_t step = 1; step < x.dim(a); step *= 2) {
    const Tensor rest =
        Slice(y, a, step, x.dim(a) - step) * Slice(y, a, 0, x.dim(a) - step);
    y = Concat(std::vector<Tensor>{Slice(y, a, 0, step), rest}, a);
  }
  return y;
}

// y = product of x over axes: dx = dy times the product of the others
Tensor Prod(const Tensor& operand, const Axes& axes, ReduceOptions options) {
  const DType dtype = CheckFloats("Prod", {operand});
  const ReducePlan plan =
      PlanOf("Prod", operand.shape(), axes, options.keep_dims);
  const auto [x, m] = Arrange(operand, plan);
  Tensor y = Tensor::Empty(plan.result, dtype);
  WithFloat(dtype, [&, x = x, m = m](auto t) {
    using T = decltype(t);
    const int64_t dims[] = {m.outer, m.n, m.inner};
    const bool keep[] = {true, false, true};
    kernels::Prod(dims, keep, x.data<T>(), Out<T>(y));
  });
  Record(
      "Prod", y, {x}, Save(x),
      [m = m](GradientSink& g, const Tensor& x) {
        WithFloat(x.dtype(), [&](auto t) {
          using T = decltype(t);
          auto dx = g.Into<T>(0);
          kernels::ProdGrad(m.outer, m.n, m.inner, x.data<T>(),
                            g.dy().data<T>(), dx.accumulate, dx.data);
        });
      },
      [m = m, result = plan.result](const Tensor& x) {
        return ProdOfMiddle(x, m, result);
      });
  return y;
}

Tensor ProdComposed(const Tensor& x, const Axes& axes, ReduceOptions options) {
  const ReducePlan plan = PlanOf("Prod", x.shape(), axes, options.keep_dims);
  const auto [arranged, m] = Arrange(x, plan);
  return ProdOfMiddle(arranged, m, plan.result);
}

}  // namespace wengert
