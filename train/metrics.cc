#include "train/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/tape.h"

namespace wengert::train {
namespace {

double Ratio(double a, double b) { return b > 0 ? a / b : 0; }

// Whether a logit is larger; NaN is the largest.
bool Larger(double a, double b) { return a > b || (a != a && b == b); }

std::vector<int64_t> Targets(const char* op, const Tensor& logits,
                             const Tensor& targets, int64_t ignore_index) {
  const bool fits =
      IsFloat(logits.dtype()) && logits.rank() >= 1 && logits.dim(-1) >= 1 &&
      (targets.dtype() == DType::kInt32 || targets.dtype() == DType::kInt64) &&
      targets.rank() == logits.rank() - 1 &&
      std::equal(targets.shape().dims().begin(), targets.shape().dims().end(),
                 logits.shape().dims().begin());
  if (!fits) {
    throw Error(absl::StrCat(op, ": logits ", Describe(logits), ", targets ",
                             Describe(targets),
                             "; wanted float [..., C] and integers [...]"));
  }
  const Tensor ids = targets.To(DType::kInt64);
  const auto span = ids.span<int64_t>();
  for (const int64_t c : span) {
    if (c != ignore_index && (c < 0 || c >= logits.dim(-1))) {
      throw Error(absl::StrCat(op, ": the target ", c, " is outside ",
                               logits.dim(-1), " classes"));
    }
  }
  return std::vector<int64_t>(span.begin(), span.end());
}

// f(row of logits, target) of each target that is not ignored.
template <class F>
void ForEachRow(const Tensor& logits, const std::vector<int64_t>& targets,
                int64_t ignore_index, F f) {
  const int64_t n_classes = logits.dim(-1);
  WithFloat(logits.dtype(), [&]<class T>(T) {
    const T* row = logits.data<T>();
    for (const int64_t target : targets) {
      if (target != ignore_index) f(row, target);
      row += n_classes;
    }
  });
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(int64_t n_classes, int64_t ignore_index)
    : n_classes_(n_classes), ignore_index_(ignore_index) {
  if (n_classes < 1) {
    throw Error(absl::StrCat("ConfusionMatrix: ", n_classes,
                             " classes; wanted 1 or more"));
  }
  counts_.assign(n_classes * n_classes, 0);
}

void ConfusionMatrix::Add(const Tensor& logits, const Tensor& targets) {
  const auto ids = Targets("ConfusionMatrix", logits, targets, ignore_index_);
  if (logits.dim(-1) != n_classes_) {
    throw Error(absl::StrCat("ConfusionMatrix: logits ", Describe(logits),
                             "; wanted ", n_classes_, " classes"));
  }
  ForEachRow(logits, ids, ignore_index_, [&](const auto* row, int64_t target) {
    int64_t best = 0;
    for (int64_t c = 1; c < n_classes_; ++c) {
      if (Larger(row[c], row[best])) best = c;
    }
    ++counts_[target * n_classes_ + best];
    ++total_;
  });
}

int64_t ConfusionMatrix::Count(int64_t truth, int64_t predicted) const {
  if (std::min(truth, predicted) < 0 ||
      std::max(truth, predicted) >= n_classes_) {
    throw Error(absl::StrCat("ConfusionMatrix: the classes ", truth, " and ",
                             predicted, " of ", n_classes_));
  }
  return counts_[truth * n_classes_ + predicted];
}

double ConfusionMatrix::Accuracy() const { return Micro().recall; }

ConfusionMatrix::Scores ConfusionMatrix::Of(int64_t c) const {
  const auto right = static_cast<double>(Count(c, c));
  double taken = 0, of_it = 0;
  for (int64_t k = 0; k < n_classes_; ++k) {
    taken += static_cast<double>(Count(k, c));
    of_it += static_cast<double>(Count(c, k));
  }
  return {Ratio(right, taken), Ratio(right, of_it),
          Ratio(2 * right, taken + of_it)};
}

ConfusionMatrix::Scores ConfusionMatrix::Macro() const {
  Scores sum = {0, 0, 0};
  double n = 0;
  for (int64_t c = 0; c < n_classes_; ++c) {
    bool seen = false;
    for (int64_t k = 0; k < n_classes_; ++k) {
      seen |= Count(c, k) > 0 || Count(k, c) > 0;
    }
    if (!seen) continue;
    const Scores scores = Of(c);
    sum.precision += scores.precision;
    sum.recall += scores.recall;
    sum.f1 += scores.f1;
    ++n;
  }
  return {Ratio(sum.precision, n), Ratio(sum.recall, n), Ratio(sum.f1, n)};
}

ConfusionMatrix::Scores ConfusionMatrix::Micro() const {
  double right = 0;
  for (int64_t c = 0; c < n_classes_; ++c) {
    right += static_cast<double>(Count(c, c));
  }
  const double part = Ratio(right, static_cast<double>(total_));
  return {part, part, part};
}

TopKAccuracy::TopKAccuracy(int64_t k, int64_t ignore_index)
    : k_(k), ignore_index_(ignore_index) {
  if (k < 1) {
    throw Error(absl::StrCat("TopKAccuracy: k is ", k, "; wanted 1 or more"));
  }
}

void TopKAccuracy::Add(const Tensor& logits, const Tensor& targets) {
  const auto ids = Targets("TopKAccuracy", logits, targets, ignore_index_);
  const int64_t n_classes = logits.dim(-1);
  ForEachRow(logits, ids, ignore_index_, [&](const auto* row, int64_t target) {
    int64_t before = 0;  // classes that come before the target
    for (int64_t c = 0; c < n_classes; ++c) {
      before += Larger(row[c], row[target]) ||
                (c < target && !Larger(row[target], row[c]));
    }
    right_ += before < k_;
    ++total_;
  });
}

double TopKAccuracy::Value() const {
  return Ratio(static_cast<double>(right_), static_cast<double>(total_));
}

void Perplexity::Add(double mean_loss, int64_t units) {
  if (units < 0) {
    throw Error(
        absl::StrCat("Perplexity: ", units, " units; wanted 0 or more"));
  }
  if (units == 0) return;
  sum_ += mean_loss * static_cast<double>(units);
  units_ += units;
}

double Perplexity::MeanLoss() const {
  return Ratio(sum_, static_cast<double>(units_));
}

double Perplexity::Value() const { return std::exp(MeanLoss()); }

std::vector<Metric> Evaluate(
    int64_t n_rows, int64_t batch_size,
    absl::FunctionRef<BatchMeans(absl::Span<const int64_t> rows)> f) {
  if (n_rows < 0 || batch_size < 1) {
    throw Error(absl::StrCat("Evaluate: ", n_rows, " rows in batches of ",
                             batch_size,
                             "; wanted 0 or more in batches of 1 or more"));
  }
  const Tape::Pause pause;
  std::vector<Metric> sums;
  std::vector<double> units;  // parallel to sums
  std::vector<int64_t> rows;
  for (int64_t begin = 0; begin < n_rows; begin += batch_size) {
    rows.resize(std::min(batch_size, n_rows - begin));
    std::iota(rows.begin(), rows.end(), begin);
    const BatchMeans batch = f(rows);
    if (batch.units < 0) {
      throw Error(absl::StrCat("Evaluate: a batch of ", batch.units,
                               " units; wanted 0 or more"));
    }
    if (batch.units == 0) continue;
    for (const Metric& m : batch.means) {
      const auto found =
          std::find_if(sums.begin(), sums.end(),
                       [&](const Metric& sum) { return sum.name == m.name; });
      const size_t i = found - sums.begin();
      if (found == sums.end()) {
        sums.push_back({m.name, 0});
        units.push_back(0);
      }
      sums[i].value += m.value * static_cast<double>(batch.units);
      units[i] += static_cast<double>(batch.units);
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) sums[i].value /= units[i];
  return sums;
}

}  // namespace wengert::train
