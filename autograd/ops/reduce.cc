// Reductions over any set of axes, and broadcasting, which is their mirror.
#include "autograd/kernels/reduce.h"

#include "autograd/kernels/broadcast.h"
#include "autograd/kernels/log_sum_exp.h"
#include "autograd/ops.h"
#include "autograd/ops/op_util.h"
#include "autograd/ops/reduce_plan.h"

namespace wengert {
namespace {

// Throws where an extreme of no elements is asked for.
void CheckSomething(const char* op, const char* what, const Tensor& x,
                    const ReducePlan& plan) {
  if (plan.reduced > 0 || plan.result.size() == 0) return;
  Throw(op, "no ", what, " of nothing: ", Describe(x), " over axes of size 0");
}

// One element of x for each result, which takes the whole gradient.
// kernel(dims, keep, x, y, places) finds it.
template <class Kernel>
Tensor Extreme(const char* op, const char* what, const Tensor& x,
               const Axes& axes, bool keep_dims, Kernel kernel) {
  const DType dtype = CheckFloats(op, {x});
  const ReducePlan plan = PlanOf(op, x.shape(), axes, keep_dims);
  CheckSomething(op, what, x, plan);
  Tensor y = Tensor::Empty(plan.result, dtype);
  Tensor arg = Tensor::Empty(plan.result, DType::kInt64);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernel(x.shape().dims(), plan.keep, x.data<T>(), Out<T>(y),
           Out<int64_t>(arg));
  });
  Record(op, y, {x}, Save(arg),
         [shape = x.shape(), kept = plan.kept](GradientSink& g,
                                               const Tensor& arg) {
           Tensor chosen = Tensor::Zeros(shape, DType::kBool);
           for (int64_t i : arg.span<int64_t>()) Out<bool>(chosen)[i] = true;
           g.Add(0, Where(chosen, Reshape(g.dy(), kept),
                          Tensor::Scalar(0, g.dy().dtype())));
         });
  return y;
}

// Its place, counted along the reduced axes alone.
template <class Kernel>
Tensor Place(const char* op, const char* what, const Tensor& x,
             const Axes& axes, bool keep_dims, Kernel kernel) {
  const DType dtype = CheckFloats(op, {x});
  const ReducePlan plan = PlanOf(op, x.shape(), axes, keep_dims);
  CheckSomething(op, what, x, plan);
  const auto [arranged, m] = Arrange(x.Detach(), plan);
  Tensor y = Tensor::Empty(plan.result, DType::kInt64);
  int64_t* place = Out<int64_t>(y);
  WithFloat(dtype, [&, x = arranged, m = m](auto t) {
    using T = decltype(t);
    const int64_t dims[] = {m.outer, m.n, m.inner};
    const bool keep[] = {true, false, true};
    Tensor value = Tensor::Empty(plan.result, dtype);
    kernel(kernels::Dims(dims), absl::Span<const bool>(keep), x.data<T>(),
           Out<T>(value), place);
  });
  for (int64_t o = 0; o < m.outer; ++o) {  // so far it counts through all of x
    for (int64_t j = 0; j < m.inner; ++j, ++place) {
      *place -= o * m.n * m.inner;
      if (m.inner > 1) *place /= m.inner;
    }
  }
  return y;
}

constexpr auto kMaxKernel = [](const auto&... args) { kernels::Max(args...); };
constexpr auto kMinKernel = [](const auto&... args) { kernels::Min(args...); };

// Whether any or all are true, of anything that is true where it is not 0.
template <class Kernel>
Tensor Decide(const char* op, const Tensor& x, const Axes& axes, bool keep_dims,
              Kernel kernel) {
  CheckDefined(op, x);
  const ReducePlan plan = PlanOf(op, x.shape(), axes, keep_dims);
  const Tensor truth = x.Detach().To(DType::kBool);
  Tensor y = Tensor::Empty(plan.result, DType::kBool);
  kernel(x.shape().dims(), plan.keep, truth.data<bool>(), Out<bool>(y));
  return y;
}

}  // namespace

// y = sum of x over axes: dx = dy, repeated
Tensor Sum(const Tensor& x, const Axes& axes, ReduceOptions options) {
  const DType dtype = CheckFloats("Sum", {x});
  const ReducePlan plan = PlanOf("Sum", x.shape(), axes, options.keep_dims);
  Tensor y = Tensor::Empty(plan.result, dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::Sum<T>(x.shape().dims(), plan.keep, x.data<T>(), false, Out<T>(y));
  });
  Record("Sum", y, {x}, Save(),
         [shape = x.shape(), kept = plan.kept](GradientSink& g) {
           g.Add(0, BroadcastTo(Reshape(g.dy(), kept), shape));
         });
  return y;
}

Tensor Mean(const Tensor& x, const Axes& axes, ReduceOptions options) {
  CheckFloats("Mean", {x});
  const ReducePlan plan = PlanOf("Mean", x.shape(), axes, options.keep_dims);
  return Sum(x, axes, options) / static_cast<double>(plan.reduced);
}

// y = max of x over axes: dx = dy at the first element that attains it
Tensor Max(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return Extreme("Max", "maximum", x, axes, options.keep_dims, kMaxKernel);
}

// y = min of x over axes: dx = dy at the first element that attains it
Tensor Min(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return Extreme("Min", "minimum", x, axes, options.keep_dims, kMinKernel);
}

// y = log sum exp(x): dx = dy softmax(x), which is taken from the largest x and
// not from y, whose rounding may be large
Tensor LogSumExp(const Tensor& operand, const Axes& axes,
                 ReduceOptions options) {
  const DType dtype = CheckFloats("LogSumExp", {operand});
  const ReducePlan plan =
      PlanOf("LogSumExp", operand.shape(), axes, options.keep_dims);
  const auto [x, m] = Arrange(operand, plan);
  Tensor y = Tensor::Empty(plan.result, dtype);
  Tensor shift = Tensor::Empty(plan.result, dtype);
  Tensor sum = Tensor::Empty(plan.result, dtype);
  WithFloat(dtype, [&, x = x, m = m](auto t) {
    using T = decltype(t);
    kernels::LogSumExp(m.outer, m.n, m.inner, x.data<T>(), Out<T>(y),
                       Out<T>(shift), Out<T>(sum));
  });
  Record("LogSumExp", y, {x}, Save(x, shift, sum),
         [m = m](GradientSink& g, const Tensor& x, const Tensor& shift,
                 const Tensor& sum) {
           if (g.Recorded()) {
             const Shape kept{m.outer, 1, m.inner};
             const Tensor p = Exp(Reshape(x, {m.outer, m.n, m.inner}) -
                                  Reshape(shift, kept));
             const Tensor total = SumTo(p, kept),
                          one = Tensor::Scalar(1, p.dtype());
             // 0 where all is -inf, NaN where there is +inf or NaN.
             const Tensor some = Less(Tensor::Scalar(0, p.dtype()), total);
             const Tensor dx =
                 Reshape(g.dy(), kept) * (p / Where(some, total, one));
             g.Add(0, Reshape(dx, x.shape()));
             return;
           }
           WithFloat(x.dtype(), [&](auto t) {
             using T = decltype(t);
             auto dx = g.Into<T>(0);
             kernels::LogSumExpGrad(m.outer, m.n, m.inner, x.data<T>(),
                                    shift.data<T>(), sum.data<T>(),
                                    g.dy().data<T>(), dx.accumulate, dx.data);
           });
         });
  return y;
}

Tensor SumTo(const Tensor& x, const Shape& shape) {
  const DType dtype = CheckFloats("SumTo", {x});
  if (x.shape() == shape) return x;
  if (!BroadcastsTo(shape, x.shape())) {
    Throw("SumTo", "shape ", shape.ToString(), " does not broadcast to ",
          Describe(x));
  }
  // y = sum over what was repeated: dx = dy, repeated
  absl::InlinedVector<bool, 6> keep(x.rank(), false);
  for (int i = 1; i <= shape.rank(); ++i) {
    keep[x.rank() - i] = shape[shape.rank() - i] == x.shape()[x.rank() - i];
  }
  Tensor y = Tensor::Empty(shape, dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::Sum<T>(x.shape().dims(), keep, x.data<T>(), false, Out<T>(y));
  });
  Record("SumTo", y, {x}, Save(), [shape = x.shape()](GradientSink& g) {
    g.Add(0, BroadcastTo(g.dy(), shape));
  });
  return y;
}

// y = x, repeated: dx = dy summed over the repetitions (by the sink)
Tensor BroadcastTo(const Tensor& x, const Shape& shape) {
  CheckDefined("BroadcastTo", x);
  if (!BroadcastsTo(x.shape(), shape)) {
    Throw("BroadcastTo", Describe(x), " does not broadcast to ",
          shape.ToString());
  }
  Tensor y = Tensor::Empty(shape, x.dtype());
  WithAny(x.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::BroadcastTo(shape.dims(), x.data<T>(), x.shape().dims(),
                         Out<T>(y));
  });
  Record("BroadcastTo", y, {x}, Save(),
         [](GradientSink& g) { g.Add(0, g.dy()); });
  return y;
}

Tensor ArgMax(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return Place("ArgMax", "maximum", x, axes, options.keep_dims, kMaxKernel);
}

Tensor ArgMin(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return Place("ArgMin", "minimum", x, axes, options.keep_dims, kMinKernel);
}

Tensor Any(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return Decide("Any", x, axes, options.keep_dims, kernels::Any);
}

Tensor All(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return Decide("All", x, axes, options.keep_dims, kernels::All);
}

}  // namespace wengert
