// Losses of two arrays of one shape. Those that are written again and again are
// fused: one pass over the operands forward, and one for each gradient.
#include <algorithm>
#include <limits>

#include "autograd/kernels/pair_loss.h"
#include "autograd/ops.h"
#include "autograd/ops/op_util.h"
#include "autograd/ops/reduction.h"

namespace wengert {
namespace {

using kernels::PairLossKind;

DType CheckPair(const char* op, const char* a_name, const Tensor& a,
                const char* b_name, const Tensor& b) {
  const DType dtype = CheckFloats(op, {a, b});
  if (a.shape() != b.shape()) {
    Throw(op, a_name, " ", Describe(a), ", ", b_name, " ", Describe(b),
          "; wanted equal shapes");
  }
  return dtype;
}

Tensor Constant(double value, const Tensor& like) {
  return Tensor::Scalar(value, like.dtype());
}

// The result of a fused loss of n elements: each of them by each(to), or
// factor * sum().
template <class T, class Each, class Total>
Tensor FusedLoss(const Shape& shape, Reduction reduction, double factor,
                 const Each& each, const Total& sum) {
  const bool rows = reduction == Reduction::kNone;
  Tensor y = Tensor::Empty(rows ? shape : Shape{}, kDTypeOf<T>);
  if (rows) {
    each(Out<T>(y));
  } else {
    *Out<T>(y) = sum() * static_cast<T>(factor);
  }
  return y;
}

// The kernels' `scale` and `dloss` for the cotangent of such a result.
template <class T>
struct LossCotangent {
  LossCotangent(const Tensor& dy, Reduction reduction, double factor)
      : scale(reduction == Reduction::kNone
                  ? T{1}
                  : static_cast<T>(factor) * dy.data<T>()[0]),
        each(reduction == Reduction::kNone ? dy.data<T>() : nullptr) {}

  T scale;
  const T* each;
};

Tensor PairLossComposed(PairLossKind kind, double delta, const Tensor& a,
                        const Tensor& b, Reduction reduction) {
  const Tensor d = a - b, zero = Constant(0, a);
  const auto sign = [&] {  // 0 at 0
    return Where(Less(d, zero), Constant(-1, a),
                 Where(Greater(d, zero), Constant(1, a), zero));
  };
  Tensor loss;
  switch (kind) {
    case PairLossKind::kSquared:
      loss = Square(d);
      break;
    case PairLossKind::kAbsolute:
      loss = d * sign();
      break;
    case PairLossKind::kHuber: {
      const Tensor large =
          Greater(Square(d.Detach()), Constant(delta * delta, a));
      const Tensor slope = Where(large, sign() * delta, d);
      loss = slope * (d - slope / 2);
      break;
    }
  }
  return Reduced(loss, reduction, static_cast<double>(a.size()));
}

// y = factor sum f(a - b), or each f: da = dy factor f'(a - b) = -db
Tensor PairLoss(const char* op, PairLossKind kind, double delta,
                const Tensor& a, const Tensor& b, Reduction reduction) {
  const DType dtype = CheckPair(op, "a", a, "b", b);
  const int64_t n = a.size();
  const double factor = ReductionFactor(reduction, static_cast<double>(n));
  Tensor y = WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    const T d = static_cast<T>(delta);
    return FusedLoss<T>(
        a.shape(), reduction, factor,
        [&](T* to) {
          kernels::PairLoss(kind, d, n, a.data<T>(), b.data<T>(), to);
        },
        [&] {
          return kernels::PairLossSum(kind, d, n, a.data<T>(), b.data<T>());
        });
  });
  Record(
      op, y, {a, b}, Save(a, b),
      [=](GradientSink& g, const Tensor& a, const Tensor& b) {
        WithFloat(a.dtype(), [&](auto t) {
          using T = decltype(t);
          const LossCotangent<T> dy(g.dy(), reduction, factor);
          for (int i = 0; i < 2; ++i) {
            if (!g.Needs(i)) continue;
            auto to = g.Into<T>(i);
            kernels::PairLossGrad(kind, static_cast<T>(delta), n,
                                  (i == 0 ? a : b).template data<T>(),
                                  (i == 0 ? b : a).template data<T>(), dy.scale,
                                  dy.each, to.accumulate, to.data);
          }
        });
      },
      [=](const Tensor& a, const Tensor& b) {
        return PairLossComposed(kind, delta, a, b, reduction);
      });
  return y;
}

void CheckBinary(const Tensor& logits, const Tensor& targets,
                 const BinaryCrossEntropyOptions& o) {
  constexpr char kOp[] = "BinaryCrossEntropyWithLogits";
  CheckPair(kOp, "logits", logits, "targets", targets);
  CheckFloats(kOp, {logits}, {o.weight, o.pos_weight});
  for (const Tensor* w : {&o.weight, &o.pos_weight}) {
    if (!w->defined() || BroadcastsTo(w->shape(), logits.shape())) continue;
    Throw(kOp, w == &o.weight ? "weight " : "pos_weight ", Describe(*w),
          " does not broadcast to logits ", Describe(logits));
  }
}

}  // namespace

Tensor MseLoss(const Tensor& a, const Tensor& b, Reduction reduction) {
  return PairLoss("MseLoss", PairLossKind::kSquared, 0, a, b, reduction);
}

Tensor L1Loss(const Tensor& a, const Tensor& b, Reduction reduction) {
  return PairLoss("L1Loss", PairLossKind::kAbsolute, 0, a, b, reduction);
}

Tensor HuberLoss(const Tensor& a, const Tensor& b, double delta,
                 Reduction reduction) {
  if (!(delta > 0)) Throw("HuberLoss", "delta ", delta, "; wanted one > 0");
  return PairLoss("HuberLoss", PairLossKind::kHuber, delta, a, b, reduction);
}

// loss = w (q t softplus(-x) + (1 - t) softplus(x)), since -log sigmoid(x) is
// softplus(-x): dx = dy w ((1 - t) p - q t (1 - p)),
// dt = dy w (q softplus(-x) - softplus(x))
Tensor BinaryCrossEntropyWithLogits(const Tensor& logits, const Tensor& targets,
                                    const BinaryCrossEntropyOptions& options) {
  CheckBinary(logits, targets, options);
  const int64_t n = logits.size();
  const Reduction reduction = options.reduction;
  const double factor = ReductionFactor(reduction, static_cast<double>(n));
  const auto whole = [&](const Tensor& w) {  // of every element
    return w.defined() ? BroadcastTo(w.Detach(), logits.shape()) : w;
  };
  const auto inputs = []<class T>(T, const Tensor& x, const Tensor& t,
                                  const Tensor& w, const Tensor& q) {
    return kernels::BinaryCrossEntropyInputs<T>{
        x.data<T>(), t.data<T>(), w.defined() ? w.data<T>() : nullptr,
        q.defined() ? q.data<T>() : nullptr};
  };
  const Tensor weight = whole(options.weight);
  const Tensor pos_weight = whole(options.pos_weight);
  Tensor y = WithFloat(logits.dtype(), [&](auto t) {
    using T = decltype(t);
    const auto in = inputs(t, logits, targets, weight, pos_weight);
    return FusedLoss<T>(
        logits.shape(), reduction, factor,
        [&](T* to) { kernels::BinaryCrossEntropy(n, in, to); },
        [&] { return kernels::BinaryCrossEntropySum(n, in); });
  });
  Record(
      "BinaryCrossEntropyWithLogits", y, {logits, targets},
      Save(logits, targets, weight, pos_weight),
      [=](GradientSink& g, const Tensor& logits, const Tensor& targets,
          const Tensor& weight, const Tensor& pos_weight) {
        WithFloat(logits.dtype(), [&](auto t) {
          using T = decltype(t);
          const auto in = inputs(t, logits, targets, weight, pos_weight);
          const LossCotangent<T> dy(g.dy(), reduction, factor);
          if (g.Needs(0)) {
            auto d = g.Into<T>(0);
            kernels::BinaryCrossEntropyGradLogits(n, in, dy.scale, dy.each,
                                                  d.accumulate, d.data);
          }
          if (g.Needs(1)) {
            auto d = g.Into<T>(1);
            kernels::BinaryCrossEntropyGradTargets(n, in, dy.scale, dy.each,
                                                   d.accumulate, d.data);
          }
        });
      },
      [reduction](const Tensor& logits, const Tensor& targets,
                  const Tensor& weight, const Tensor& pos_weight) {
        return BinaryCrossEntropyWithLogitsComposed(
            logits, targets, {reduction, weight, pos_weight});
      });
  return y;
}

Tensor BinaryCrossEntropyWithLogitsComposed(
    const Tensor& logits, const Tensor& targets,
    const BinaryCrossEntropyOptions& options) {
  CheckBinary(logits, targets, options);
  // softplus(x) = log(e^x + e^0), and softplus(-x) likewise.
  const auto softplus = [&](const Tensor& x) {
    absl::InlinedVector<int64_t, 6> column(x.shape().dims().begin(),
                                           x.shape().dims().end());
    column.push_back(1);
    const Tensor v = Reshape(x, Shape(column));
    return LogSumExp(Concat({v, Tensor::Zeros(v.shape(), v.dtype())}, -1), -1);
  };
  Tensor positive = targets * softplus(-logits);
  if (options.pos_weight.defined()) {
    positive = positive * options.pos_weight.Detach();
  }
  Tensor loss = positive + (1 - targets) * softplus(logits);
  if (options.weight.defined()) loss = loss * options.weight.Detach();
  return Reduced(loss, options.reduction, static_cast<double>(loss.size()));
}

Tensor KlDivLoss(const Tensor& log_probs, const Tensor& targets,
                 KlDivOptions options) {
  CheckPair("KlDivLoss", "log_probs", log_probs, "targets", targets);
  if (options.batch_mean &&
      (options.reduction != Reduction::kMean || targets.rank() == 0)) {
    Throw("KlDivLoss", "a batch mean of targets ", Describe(targets),
          "; wanted Reduction::kMean and at least one axis");
  }
  const double count =
      static_cast<double>(options.batch_mean ? targets.dim(0) : targets.size());
  const double none =
      options.log_target ? -std::numeric_limits<double>::infinity() : 0;
  // 1 log 1, or e^0 0, stands where t is 0.
  const Tensor absent = Equal(targets, Constant(none, targets));
  const Tensor log_p = MaskedFill(log_probs, absent, 0);
  const Tensor t = MaskedFill(targets, absent, options.log_target ? 0 : 1);
  const Tensor loss =
      options.log_target ? Exp(t) * (t - log_p) : t * (Log(t) - log_p);
  return Reduced(loss, options.reduction, count);
}

Tensor CosineSimilarity(const Tensor& a, const Tensor& b, int axis,
                        double eps) {
  CheckFloats("CosineSimilarity", {a, b});
  if (!(eps > 0)) Throw("CosineSimilarity", "eps ", eps, "; wanted one > 0");
  const Shape shape = Broadcast("CosineSimilarity", a.shape(), b.shape());
  const int i = shape.CheckAxis("CosineSimilarity", axis);
  const auto whole = [&](const Tensor& x) {
    return x.shape() == shape ? x : BroadcastTo(x, shape);
  };
  const Tensor u = whole(a), v = whole(b);
  const double smallest = WithFloat(a.dtype(), [](auto t) -> double {
    return std::numeric_limits<decltype(t)>::min();
  });
  // 1 / max(|x|, eps), a constant where |x| is below eps.
  const auto inverse = [&](const Tensor& x) {
    return Rsqrt(
        Maximum(Constant(std::max(eps * eps, smallest), x), Sum(Square(x), i)));
  };
  return Sum(u * v, i) * inverse(u) * inverse(v);
}

}  // namespace wengert
