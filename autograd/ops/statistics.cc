// Variances, standard deviations and norms: fused, each with its composition.
#include <algorithm>
#include <cmath>

#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/moments.h"
#include "autograd/kernels/vector_norm.h"
#include "autograd/ops.h"
#include "autograd/ops/op_util.h"
#include "autograd/ops/reduce_plan.h"

namespace wengert {
namespace {

Tensor ScalarLike(const Tensor& x, double value) {
  return Tensor::Scalar(value, x.dtype());
}

// How an array is reduced, for a composition.
struct Reduced {
  Middle middle;
  Shape result;
};
Tensor AsMiddle(const Tensor& x, const Middle& m) {
  return Reshape(x, {m.outer, m.n, m.inner});
}

// y = f(x) where `inside` holds, and 0, with gradient 0, elsewhere: f sees 1
// there.
template <class F>
Tensor WhereOrZero(const Tensor& inside, const Tensor& x, F f) {
  const Tensor safe = Where(inside, x, ScalarLike(x, 1));
  return Where(inside, f(safe), ScalarLike(x, 0));
}

Tensor VarOfMiddle(const Tensor& x, const Reduced& r, double divisor) {
  const ReduceOptions keep{.keep_dims = true};
  const Tensor rough = AsMiddle(x, r.middle);
  const Tensor residual = rough - Mean(rough, 1, keep);
  const Tensor centered = residual - Mean(residual, 1, keep);
  return Reshape(Sum(Square(centered), 1), r.result) / divisor;
}

Tensor RootOrZero(const Tensor& x) {
  // NaN is not 0, and stays.
  const Tensor zero = Equal(x, ScalarLike(x, 0));
  return WhereOrZero(Equal(zero, Tensor::Scalar(0, DType::kBool)), x, Sqrt);
}

double DivisorOf(const char* op, int64_t n, double correction) {
  if (!std::isfinite(correction)) {
    Throw(op, "correction ", correction, "; wanted a finite one");
  }
  return std::max(0.0, static_cast<double>(n) - correction);
}

// v = sum (x - m)² / d, y = v or sqrt v: dx = 2 dy (x - m) / d or
// dy (x - m) / (d y)
Tensor Deviation(const char* op, const Tensor& operand, const Axes& axes,
                 const VarOptions& options, bool root) {
  const DType dtype = CheckFloats(op, {operand});
  const ReducePlan plan = PlanOf(op, operand.shape(), axes, options.keep_dims);
  const double divisor = DivisorOf(op, plan.reduced, options.correction);
  const auto [x, m] = Arrange(operand, plan);
  Tensor y = Tensor::Empty(plan.result, dtype);
  Tensor mean = Tensor::Empty(plan.result, dtype);
  WithFloat(dtype, [&, x = x, m = m](auto t) {
    using T = decltype(t);
    kernels::Moments(m.outer, m.n, m.inner, x.data<T>(), Out<T>(mean),
                     Out<T>(y));
    T* out = Out<T>(y);
    for (int64_t i = 0; i < y.size(); ++i) out[i] /= static_cast<T>(divisor);
    if (root) kernels::Apply(kernels::Unary::kSqrt, y.size(), out, out);
  });
  Record(
      op, y, {x}, Save(x, mean, y),
      [m = m, root, divisor](GradientSink& g, const Tensor& x,
                             const Tensor& mean, const Tensor& y) {
        WithFloat(x.dtype(), [&](auto t) {
          using T = decltype(t);
          Tensor factor = Tensor::Empty(y.shape(), y.dtype());
          const T *dy = g.dy().data<T>(), *out = y.data<T>();
          const T d = static_cast<T>(divisor);
          for (int64_t i = 0; i < y.size(); ++i) {
            const T scale =
                root ? (out[i] == 0 ? 0 : dy[i] / out[i]) : 2 * dy[i];
            Out<T>(factor)[i] = scale / d;
          }
          auto dx = g.Into<T>(0);
          kernels::MomentsGrad(m.outer, m.n, m.inner, x.data<T>(),
                               mean.data<T>(), factor.data<T>(), dx.accumulate,
                               dx.data);
        });
      },
      [r = Reduced{m, plan.result}, root, divisor](
          const Tensor& x, const Tensor&, const Tensor&) {
        const Tensor v = VarOfMiddle(x, r, divisor);
        return root ? RootOrZero(v) : v;
      });
  return y;
}

// |x| as x times its sign, a constant: slope 0 at 0.
Tensor AbsOf(const Tensor& x) {
  const Tensor fixed = x.Detach(), zero = ScalarLike(x, 0);
  const Tensor sign = Where(Less(fixed, zero), ScalarLike(x, -1),
                            Where(Equal(fixed, zero), zero, ScalarLike(x, 1)));
  return x * sign;
}

// From slices of m that are divided by their largest |x| (smallest for p < 0),
// a constant. Slices whose norm is 0 are left out; so is an x of 0, where |x|^p
// is not smooth.
Tensor NormOfMiddle(const Tensor& x, const Reduced& r, double p) {
  const ReduceOptions keep{.keep_dims = true};
  const Tensor a = AbsOf(AsMiddle(x, r.middle)), fixed = a.Detach();
  const Tensor zero = ScalarLike(x, 0), one = ScalarLike(x, 1);
  if (r.middle.n == 0) {
    return Reshape(Sum(a, 1) + (p > 0 ? 0 : HUGE_VAL), r.result);
  }
  const Tensor widest = p > 0 ? Max(fixed, 1, keep) : Min(fixed, 1, keep);
  const Tensor usable = Less(widest * 0.5, widest);  // not 0, infinite or NaN
  const Tensor scale = Where(usable, widest, one);
  const Tensor term =
      p == 2 ? Square(AsMiddle(x, r.middle) / scale)
             : WhereOrZero(Less(zero, fixed), a / scale,
                           [p](const Tensor& u) { return Pow(u, p); });
  const Tensor sum = Sum(term, 1, keep);
  const Tensor inside = Where(usable, Less(zero, sum), usable);
  const Tensor y = scale * WhereOrZero(inside, sum, [p](const Tensor& s) {
                     return Pow(s, 1 / p);
                   });
  return Reshape(Where(usable, y, widest), r.result);
}

// y = the number of x that are not 0: dx = 0
Tensor CountNonzero(const Tensor& x, const ReducePlan& plan, const Axes& axes) {
  const Tensor fixed = x.Detach();
  const Tensor one =
      Where(Equal(fixed, ScalarLike(x, 0)), ScalarLike(x, 0), ScalarLike(x, 1));
  Tensor y = Reshape(Sum(one, axes), plan.result);
  Record("Norm", y, {x}, Save(), [](GradientSink&) {});
  return y;
}

}  // namespace

Tensor Var(const Tensor& x, const Axes& axes, VarOptions options) {
  return Deviation("Var", x, axes, options, /*root=*/false);
}

Tensor VarComposed(const Tensor& x, const Axes& axes, VarOptions options) {
  const ReducePlan plan = PlanOf("Var", x.shape(), axes, options.keep_dims);
  const auto [arranged, m] = Arrange(x, plan);
  return VarOfMiddle(arranged, {m, plan.result},
                     DivisorOf("Var", plan.reduced, options.correction));
}

Tensor Std(const Tensor& x, const Axes& axes, VarOptions options) {
  return Deviation("Std", x, axes, options, /*root=*/true);
}

Tensor StdComposed(const Tensor& x, const Axes& axes, VarOptions options) {
  return RootOrZero(VarComposed(x, axes, options));
}

// y = (sum |x|^p)^(1/p): dx = dy sign(x) (|x| / y)^(p - 1)
Tensor Norm(const Tensor& operand, double p, const Axes& axes,
            ReduceOptions options) {
  const DType dtype = CheckFloats("Norm", {operand});
  const ReducePlan plan =
      PlanOf("Norm", operand.shape(), axes, options.keep_dims);
  if (std::isnan(p)) Throw("Norm", "p is NaN; wanted a number");
  if (p == 0 || std::isinf(p) || plan.reduced == 0) {
    return NormComposed(operand, p, axes, options);
  }
  const auto [x, m] = Arrange(operand, plan);
  Tensor y = Tensor::Empty(plan.result, dtype);
  WithFloat(dtype, [&, x = x, m = m](auto t) {
    using T = decltype(t);
    kernels::VectorNorm(m.outer, m.n, m.inner, p, x.data<T>(), Out<T>(y));
  });
  Record(
      "Norm", y, {x}, Save(x, y),
      [m = m, p](GradientSink& g, const Tensor& x, const Tensor& y) {
        WithFloat(x.dtype(), [&](auto t) {
          using T = decltype(t);
          auto dx = g.Into<T>(0);
          kernels::VectorNormGrad(m.outer, m.n, m.inner, p, x.data<T>(),
                                  y.data<T>(), g.dy().data<T>(), dx.accumulate,
                                  dx.data);
        });
      },
      [r = Reduced{m, plan.result}, p](const Tensor& x, const Tensor&) {
        return NormOfMiddle(x, r, p);
      });
  return y;
}

Tensor NormComposed(const Tensor& x, double p, const Axes& axes,
                    ReduceOptions options) {
  const ReducePlan plan = PlanOf("Norm", x.shape(), axes, options.keep_dims);
  if (p == 0) return CountNonzero(x, plan, axes);
  if (std::isinf(p) && plan.reduced > 0) {
    return p > 0 ? Max(AbsOf(x), axes, options) : Min(AbsOf(x), axes, options);
  }
  const auto [arranged, m] = Arrange(x, plan);
  return NormOfMiddle(arranged, {m, plan.result}, p);
}

}  // namespace wengert
