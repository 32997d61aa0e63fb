// Cross-entropy of logits against class indices.
#include "autograd/kernels/cross_entropy.h"

#include "autograd/kernels/reduce.h"
#include "autograd/ops.h"
#include "autograd/ops/op_util.h"

namespace wengert {
namespace {

// The targets as int64, checked; `count` gets how many are not ignored.
Tensor CheckTargets(const Tensor& logits, const Tensor& targets,
                    const CrossEntropyOptions& options, int64_t& count) {
  CheckFloats("CrossEntropy", {logits});
  const bool ids = targets.defined() && (targets.dtype() == DType::kInt32 ||
                                         targets.dtype() == DType::kInt64);
  if (!ids || logits.rank() < 1 ||
      Shape(logits.shape().dims().first(logits.rank() - 1)) !=
          targets.shape()) {
    Throw("CrossEntropy", "logits ", Describe(logits), ", targets ",
          Describe(targets),
          "; wanted logits [..., C] and int32 or int64 targets [...]");
  }
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
    Throw("CrossEntropy", "label smoothing ", options.label_smoothing,
          "; wanted one in [0, 1]");
  }
  Tensor ids64 = targets.To(DType::kInt64);
  count = 0;
  for (int64_t i = 0; i < ids64.size(); ++i) {
    const int64_t id = ids64.data<int64_t>()[i];
    if (id == options.ignore_index) continue;
    if (id < 0 || id >= logits.dim(-1)) {
      Throw("CrossEntropy", "target ", id, " at position ", i, " of ",
            Describe(targets), " is out of range; wanted one in [0, ",
            logits.dim(-1), ") for logits ", Describe(logits), ", or ",
            options.ignore_index, " to ignore it");
    }
    ++count;
  }
  return ids64;
}

// What the sum of the rows is multiplied by.
double Factor(Reduction reduction, int64_t count) {
  if (reduction != Reduction::kMean) return 1;
  return count == 0 ? 0 : 1.0 / static_cast<double>(count);
}

}  // namespace

// loss = -(1 - s) log p[t] - s/C sum_c log p[c], p = softmax(logits):
// dlogits = dloss (p - (1 - s) onehot(t) - s/C)
Tensor CrossEntropy(const Tensor& logits, const Tensor& targets,
                    const CrossEntropyOptions& options) {
  int64_t count;
  const Tensor ids = CheckTargets(logits, targets, options, count);
  const DType dtype = logits.dtype();
  const int64_t n = ids.size(), c = logits.dim(-1);
  const double factor = Factor(options.reduction, count);
  Tensor loss = Tensor::Empty(ids.shape(), dtype);
  Tensor log_sum = Tensor::Empty(ids.shape(), dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::CrossEntropy<T>(
        n, c, logits.data<T>(), ids.data<int64_t>(), options.ignore_index,
        static_cast<T>(options.label_smoothing), Out<T>(loss), Out<T>(log_sum));
  });
  const bool rows = options.reduction == Reduction::kNone;
  Tensor y = loss;
  if (!rows) {
    y = Tensor::Empty({}, dtype);
    WithFloat(dtype, [&](auto t) {
      using T = decltype(t);
      kernels::Sum<T>({n}, {false}, loss.data<T>(), false, Out<T>(y));
      *Out<T>(y) *= static_cast<T>(factor);
    });
  }
  Record(
      "CrossEntropy", y, {logits}, Save(logits, ids, log_sum),
      [n, c, options, factor, rows](GradientSink& g, const Tensor& logits,
                                    const Tensor& ids, const Tensor& log_sum) {
        WithFloat(logits.dtype(), [&](auto t) {
          using T = decltype(t);
          auto d = g.Into<T>(0);
          const T* dy = g.dy().data<T>();
          kernels::CrossEntropyGrad<T>(
              n, c, logits.data<T>(), ids.data<int64_t>(), options.ignore_index,
              static_cast<T>(options.label_smoothing), log_sum.data<T>(),
              rows ? T{1} : static_cast<T>(factor * dy[0]), rows ? dy : nullptr,
              d.accumulate, d.data);
        });
      },
      [options](const Tensor& logits, const Tensor& ids, const Tensor&) {
        return CrossEntropyComposed(logits, ids, options);
      });
  return y;
}

Tensor CrossEntropyComposed(const Tensor& logits, const Tensor& targets,
                            const CrossEntropyOptions& options) {
  int64_t count;
  const Tensor ids = CheckTargets(logits, targets, options, count);
  const double s = options.label_smoothing;
  const int64_t c = logits.dim(-1);
  Tensor classes = Tensor::Empty({c}, DType::kInt64);
  for (int64_t i = 0; i < c; ++i) Out<int64_t>(classes)[i] = i;
  absl::InlinedVector<int64_t, 6> column(ids.shape().dims().begin(),
                                         ids.shape().dims().end());
  column.push_back(1);
  const Tensor is_target = Equal(Reshape(ids, Shape(column)), classes);
  const Tensor ignored =
      Equal(ids, Tensor::From<int64_t>({}, {options.ignore_index}));
  // An ignored row may hold anything, NaN too.
  const Tensor log_p = LogSoftmaxComposed(
      MaskedFill(logits, Reshape(ignored, Shape(column)), 0));
  const Tensor zero = Tensor::Scalar(0, logits.dtype());
  Tensor loss = Affine(Sum(Where(is_target, log_p, zero), -1), -(1 - s), 0);
  if (s > 0) loss = loss - Mean(log_p, -1) * s;
  loss = MaskedFill(loss, ignored, 0);
  if (options.reduction == Reduction::kNone) return loss;
  return Sum(loss) * Factor(options.reduction, count);
}

}  // namespace wengert
