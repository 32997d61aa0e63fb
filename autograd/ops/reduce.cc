// Reductions over any set of axes, and broadcasting, which is their mirror.
#include "autograd/kernels/reduce.h"

#include <limits>

#include "autograd/kernels/broadcast.h"
#include "autograd/ops.h"
#include "autograd/ops/op_util.h"

namespace wengert {
namespace {

// What a reduction does to a shape.
struct Plan {
  absl::InlinedVector<bool, 6> keep;
  Shape kept;       // with reduced axes of size 1
  Shape result;     // as the caller wants it
  int64_t reduced;  // elements that go into one
};

Plan PlanOf(const char* op, const Shape& shape, const Axes& axes,
            ReduceOptions options) {
  Plan plan{.keep = {}, .kept = {}, .result = {}, .reduced = 1};
  plan.keep.assign(shape.rank(), !axes.get().empty());
  for (int axis : axes.get()) {
    const int i = shape.CheckAxis(op, axis);
    if (!plan.keep[i]) {
      Throw(op, "axis ", axis, " is named twice for shape ", shape.ToString());
    }
    plan.keep[i] = false;
  }
  absl::InlinedVector<int64_t, 6> kept, result;
  for (int i = 0; i < shape.rank(); ++i) {
    kept.push_back(plan.keep[i] ? shape[i] : 1);
    if (plan.keep[i] || options.keep_dims) result.push_back(kept.back());
    if (!plan.keep[i]) plan.reduced *= shape[i];
  }
  plan.kept = Shape(kept);
  plan.result = Shape(result);
  return plan;
}

}  // namespace

// y = sum of x over axes: dx = dy, repeated
Tensor Sum(const Tensor& x, const Axes& axes, ReduceOptions options) {
  const DType dtype = CheckFloats("Sum", {x});
  const Plan plan = PlanOf("Sum", x.shape(), axes, options);
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
  const Plan plan = PlanOf("Mean", x.shape(), axes, options);
  return Sum(x, axes, options) / static_cast<double>(plan.reduced);
}

// y = max of x over axes: dx = dy at the first element that attains it
Tensor Max(const Tensor& x, const Axes& axes, ReduceOptions options) {
  const DType dtype = CheckFloats("Max", {x});
  const Plan plan = PlanOf("Max", x.shape(), axes, options);
  if (plan.reduced == 0 && plan.result.size() > 0) {
    Throw("Max", "no maximum of nothing: ", Describe(x),
          " over axes of size 0");
  }
  Tensor y = Tensor::Empty(plan.result, dtype);
  Tensor arg = Tensor::Empty(plan.result, DType::kInt64);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::Max(x.shape().dims(), plan.keep, x.data<T>(), Out<T>(y),
                 Out<int64_t>(arg));
  });
  Record("Max", y, {x}, Save(arg),
         [shape = x.shape(), kept = plan.kept](GradientSink& g,
                                               const Tensor& arg) {
           Tensor chosen = Tensor::Zeros(shape, DType::kBool);
           for (int64_t i : arg.span<int64_t>()) Out<bool>(chosen)[i] = true;
           g.Add(0, Where(chosen, Reshape(g.dy(), kept),
                          Tensor::Scalar(0, g.dy().dtype())));
         });
  return y;
}

// y = log sum exp(x): dx = dy exp(x - y), which is made to sum to dy, as it
// does but for the rounding of a large y
Tensor LogSumExp(const Tensor& x, const Axes& axes, ReduceOptions options) {
  const DType dtype = CheckFloats("LogSumExp", {x});
  const Plan plan = PlanOf("LogSumExp", x.shape(), axes, options);
  Tensor y = Tensor::Empty(plan.result, dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::LogSumExp(x.shape().dims(), plan.keep, x.data<T>(), Out<T>(y));
  });
  Record("LogSumExp", y, {x}, Save(x, y),
         [kept = plan.kept](GradientSink& g, const Tensor& x, const Tensor& y) {
           const Tensor lowest = Tensor::Scalar(
               -std::numeric_limits<double>::infinity(), y.dtype());
           const Tensor shift = MaskedFill(y.Detach(), Equal(y, lowest), 0);
           const Tensor p = Exp(x - Reshape(shift, kept));
           const Tensor sum = SumTo(p, kept);
           // 0 only where all is -inf, which is then 0 / 1.
           const Tensor none = Equal(sum, Tensor::Scalar(0, y.dtype()));
           g.Add(0, Reshape(g.dy(), kept) * (p / MaskedFill(sum, none, 1)));
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
  const DType dtype = CheckFloats("ArgMax", {x});
  const Plan plan = PlanOf("ArgMax", x.shape(), axes, options);
  if (plan.reduced == 0 && plan.result.size() > 0) {
    Throw("ArgMax", "no maximum of nothing: ", Describe(x));
  }
  Tensor y = Tensor::Empty(plan.result, DType::kInt64);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    Tensor value = Tensor::Empty(plan.result, dtype);
    kernels::Max(x.shape().dims(), plan.keep, x.data<T>(), Out<T>(value),
                 Out<int64_t>(y));
  });
  for (int64_t i = 0; i < y.size(); ++i) {
    int64_t& index = Out<int64_t>(y)[i];  // flat in x so far
    int64_t rest = index, place = 1;
    index = 0;
    for (int a = x.rank() - 1; a >= 0; --a) {
      if (!plan.keep[a]) {
        index += rest % x.shape()[a] * place;
        place *= x.shape()[a];
      }
      rest /= x.shape()[a];
    }
  }
  return y;
}

}  // namespace wengert
