// Cross-entropy of logits against class indices or probabilities, and the
// negative log-likelihood.
#include "autograd/kernels/cross_entropy.h"

#include <algorithm>
#include <cstdint>

#include "autograd/kernels/reduce.h"
#include "autograd/ops.h"
#include "autograd/ops/class_targets.h"
#include "autograd/ops/op_util.h"
#include "autograd/ops/reduction.h"

namespace wengert {
namespace {

ClassScores LogitsOf(const Tensor& logits, const CrossEntropyOptions& o) {
  return {"CrossEntropy", "logits",       logits,
          o.class_axis,   o.ignore_index, o.weight};
}

// The class axis, when the shapes and options fit.
int CheckCrossEntropy(const Tensor& logits, const Tensor& targets,
                      const CrossEntropyOptions& o) {
  const int axis = LogitsOf(logits, o).CheckedAxis();
  const bool fits =
      IsIds(targets) ? targets.shape() == Without(logits.shape(), axis)
                     : targets.defined() && targets.dtype() == logits.dtype() &&
                           targets.shape() == logits.shape();
  if (!fits) {
    Throw("CrossEntropy", "logits ", Describe(logits), ", targets ",
          Describe(targets),
          "; wanted logits [..., C] and int32 or int64 targets [...], or "
          "probabilities [..., C] of the logits' type");
  }
  if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1)) {
    Throw("CrossEntropy", "label smoothing ", o.label_smoothing,
          "; wanted one in [0, 1]");
  }
  return axis;
}

// The rows' losses as the caller wants them: `loss` itself, or factor times
// their sum.
Tensor Gathered(const Tensor& loss, Reduction reduction, double factor) {
  if (reduction == Reduction::kNone) return loss;
  Tensor y = Tensor::Empty({}, loss.dtype());
  WithFloat(loss.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::Sum<T>({loss.size()}, {false}, loss.data<T>(), false, Out<T>(y));
    *Out<T>(y) *= static_cast<T>(factor);
  });
  return y;
}

// The kernels' `scale` for the cotangent of that.
template <class T>
T ScaleOf(const Tensor& dy, Reduction reduction, double factor) {
  return reduction == Reduction::kNone
             ? T{1}
             : static_cast<T>(factor * dy.data<T>()[0]);
}
template <class T>
const T* EachOf(const Tensor& dy, Reduction reduction) {
  return reduction == Reduction::kNone ? dy.data<T>() : nullptr;
}

template <class T>
kernels::ClassWeights<T> WeightsOf(const Tensor& logits, const Tensor& targets,
                                   const Tensor& weight, double smoothing,
                                   int64_t ignore_index) {
  const int64_t c = logits.dim(-1);
  const bool ids = IsIds(targets);
  return {.n = c == 0 ? 0 : logits.size() / c,
          .c = c,
          .smoothing = static_cast<T>(smoothing),
          .weight = weight.defined() ? weight.data<T>() : nullptr,
          .targets = ids ? targets.data<int64_t>() : nullptr,
          .probabilities = ids ? nullptr : targets.data<T>(),
          .ignore_index = ignore_index};
}

// loss = -sum_c q[c] log p[c], q = w ((1 - s) t + s/C), with classes last:
// dlogits = dloss (p sum_c q - q), dt = -dloss (1 - s) w log p
Tensor WeightedCrossEntropy(const Tensor& logits, const Tensor& targets,
                            const CrossEntropyOptions& options, double factor) {
  const DType dtype = logits.dtype();
  const Shape rows = Without(logits.shape(), logits.rank() - 1);
  const double s = options.label_smoothing;
  const int64_t ignore = options.ignore_index;
  const Reduction reduction = options.reduction;
  Tensor loss = Tensor::Zeros(rows, dtype);
  Tensor log_sum = Tensor::Empty(rows, dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::WeightedCrossEntropy<T>(
        WeightsOf<T>(logits, targets, options.weight, s, ignore),
        logits.data<T>(), Out<T>(loss), Out<T>(log_sum));
  });
  Tensor y = Gathered(loss, reduction, factor);
  Record(
      "CrossEntropy", y, {logits, targets},
      Save(logits, targets, options.weight, log_sum),
      [=](GradientSink& g, const Tensor& logits, const Tensor& targets,
          const Tensor& weight, const Tensor& log_sum) {
        WithFloat(logits.dtype(), [&](auto t) {
          using T = decltype(t);
          GradientSink::Destination<T> d[2] = {};
          for (int i = 0; i < 2; ++i) {
            if (g.Needs(i)) d[i] = g.Into<T>(i);
          }
          kernels::WeightedCrossEntropyGrad<T>(
              WeightsOf<T>(logits, targets, weight, s, ignore),
              logits.data<T>(), log_sum.data<T>(),
              ScaleOf<T>(g.dy(), reduction, factor),
              EachOf<T>(g.dy(), reduction), d[0].accumulate, d[0].data,
              d[1].accumulate, d[1].data);
        });
      },
      [=](const Tensor& logits, const Tensor& targets, const Tensor& weight,
          const Tensor&) {
        return CrossEntropyComposed(
            logits, targets, {reduction, ignore, s, weight, /*class_axis=*/-1});
      });
  return y;
}

// -w[id] log_probs[id] with classes last, 0 where the id is ignored.
Tensor PickedLosses(const Tensor& log_probs, const Tensor& ids,
                    const Tensor& weight, int64_t ignore_index) {
  const int64_t c = log_probs.dim(-1);
  if (c == 0) return Sum(log_probs, -1);  // all are ignored
  const Tensor ignored = Equal(ids, Tensor::From<int64_t>({}, {ignore_index}));
  Tensor classes = Tensor::Empty(ids.shape(), DType::kInt64);
  Tensor places = Tensor::Empty(ids.shape(), DType::kInt64);
  for (int64_t i = 0; i < ids.size(); ++i) {
    const int64_t id = ids.data<int64_t>()[i];
    Out<int64_t>(classes)[i] = id == ignore_index ? 0 : id;
    Out<int64_t>(places)[i] = i * c + Out<int64_t>(classes)[i];
  }
  const Tensor picked =
      Embedding(Reshape(log_probs, {log_probs.size()}), places);
  const Tensor loss = weight.defined()
                          ? picked * -Embedding(weight.Detach(), classes)
                          : -picked;
  return MaskedFill(loss, ignored, 0);
}

}  // namespace

// loss = -(1 - s) log p[t] - s/C sum_c log p[c], p = softmax(logits):
// dlogits = dloss (p - (1 - s) onehot(t) - s/C)
Tensor CrossEntropy(const Tensor& logits, const Tensor& targets,
                    const CrossEntropyOptions& options) {
  const int axis = CheckCrossEntropy(logits, targets, options);
  if (axis != logits.rank() - 1 || options.weight.defined() ||
      !IsIds(targets)) {
    const Tensor rows = AxisLast(logits, axis);
    if (!IsIds(targets)) {
      const double n =
          static_cast<double>(Without(logits.shape(), axis).size());
      return WeightedCrossEntropy(rows, AxisLast(targets, axis), options,
                                  ReductionFactor(options.reduction, n));
    }
    const auto [ids, count] =
        LogitsOf(logits, options).CheckedIds(targets, axis);
    return WeightedCrossEntropy(rows, ids, options,
                                ReductionFactor(options.reduction, count));
  }
  const ClassTargets checked =
      LogitsOf(logits, options).CheckedIds(targets, axis);
  const Tensor& ids = checked.ids;
  const DType dtype = logits.dtype();
  const int64_t n = ids.size(), c = logits.dim(-1);
  const double factor = ReductionFactor(options.reduction, checked.count);
  Tensor loss = Tensor::Empty(ids.shape(), dtype);
  Tensor log_sum = Tensor::Empty(ids.shape(), dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::CrossEntropy<T>(
        n, c, logits.data<T>(), ids.data<int64_t>(), options.ignore_index,
        static_cast<T>(options.label_smoothing), Out<T>(loss), Out<T>(log_sum));
  });
  Tensor y = Gathered(loss, options.reduction, factor);
  Record(
      "CrossEntropy", y, {logits}, Save(logits, ids, log_sum),
      [n, c, factor, reduction = options.reduction,
       ignore = options.ignore_index,
       s = options.label_smoothing](GradientSink& g, const Tensor& logits,
                                    const Tensor& ids, const Tensor& log_sum) {
        WithFloat(logits.dtype(), [&](auto t) {
          using T = decltype(t);
          auto d = g.Into<T>(0);
          kernels::CrossEntropyGrad<T>(
              n, c, logits.data<T>(), ids.data<int64_t>(), ignore,
              static_cast<T>(s), log_sum.data<T>(),
              ScaleOf<T>(g.dy(), reduction, factor),
              EachOf<T>(g.dy(), reduction), d.accumulate, d.data);
        });
      },
      [options](const Tensor& logits, const Tensor& ids, const Tensor&) {
        return CrossEntropyComposed(logits, ids, options);
      });
  return y;
}

Tensor CrossEntropyComposed(const Tensor& logits, const Tensor& targets,
                            const CrossEntropyOptions& options) {
  const int axis = CheckCrossEntropy(logits, targets, options);
  const double s = options.label_smoothing;
  const Tensor rows = AxisLast(logits, axis);
  const int64_t c = rows.dim(-1);
  const Shape shape = Without(logits.shape(), axis);
  const Tensor weight = options.weight.defined()
                            ? options.weight.Detach()
                            : Tensor::Ones({c}, logits.dtype());
  if (IsIds(targets)) {
    const auto [ids, count] =
        LogitsOf(logits, options).CheckedIds(targets, axis);
    const Tensor ignored =
        Equal(ids, Tensor::From<int64_t>({}, {options.ignore_index}));
    // An ignored row may hold anything, NaN too.
    const Tensor log_p = LogSoftmaxComposed(
        MaskedFill(rows, Reshape(ignored, WithColumn(shape)), 0));
    Tensor loss =
        PickedLosses(log_p, ids, options.weight, options.ignore_index) *
        (1 - s);
    if (s > 0) {
      loss = loss - MaskedFill(Mean(log_p * weight, -1), ignored, 0) * s;
    }
    return Reduced(loss, options.reduction, count);
  }
  const Tensor q =
      weight * Affine(AxisLast(targets, axis), 1 - s,
                      s / static_cast<double>(std::max<int64_t>(1, c)));
  const Tensor log_p = LogSoftmaxComposed(rows);
  // A class that is impossible and weighs nothing counts for nothing.
  const auto scalar = [&](double v) {
    return Tensor::Scalar(v, logits.dtype());
  };
  const Tensor dead = Equal(
      Where(Equal(log_p, scalar(-HUGE_VAL)), q.Detach(), scalar(1)), scalar(0));
  return Reduced(-Sum(q * MaskedFill(log_p, dead, 0), -1), options.reduction,
                 static_cast<double>(shape.size()));
}

Tensor NllLoss(const Tensor& log_probs, const Tensor& targets,
               const NllOptions& o) {
  const ClassScores scores{"NllLoss",    "log_probs",    log_probs,
                           o.class_axis, o.ignore_index, o.weight};
  const int axis = scores.CheckedAxis();
  if (!IsIds(targets) || targets.shape() != Without(log_probs.shape(), axis)) {
    Throw("NllLoss", "log_probs ", Describe(log_probs), ", targets ",
          Describe(targets),
          "; wanted log_probs [..., C] and int32 or int64 targets [...]");
  }
  const auto [ids, count] = scores.CheckedIds(targets, axis);
  return Reduced(
      PickedLosses(AxisLast(log_probs, axis), ids, o.weight, o.ignore_index),
      o.reduction, count);
}

}  // namespace wengert
