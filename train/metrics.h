// Measures of classification that add up over batches.
//
//   ConfusionMatrix confusion(n_classes);
//   for (...) confusion.Add(logits, targets);
//   confusion.Accuracy();   confusion.Macro().f1;
//
// Logits are [..., C], float; targets [...], int32 or int64, of the classes 0
// .. C - 1; a target that is ignore_index counts nowhere. The class predicted
// is that of the largest logit, the first of several; NaN is larger than any
// number, as NumPy has it. Other shapes, dtypes and targets throw Error, and
// then nothing is counted.
#ifndef WENGERT_TRAIN_METRICS_H_
#define WENGERT_TRAIN_METRICS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "autograd/tensor.h"
#include "train/metrics_log.h"

namespace wengert::train {

inline constexpr int64_t kIgnoreIndex = -100;  // PyTorch's

// How often each class was taken for each. Scores are scikit-learn's with
// zero_division=0: a quotient without anything to divide by is 0.
class ConfusionMatrix {
 public:
  // Throws Error unless there is a class.
  explicit ConfusionMatrix(int64_t n_classes,
                           int64_t ignore_index = kIgnoreIndex);

  void Add(const Tensor& logits, const Tensor& targets);

  // How often `truth` was taken for `predicted`. Throws Error for other
  // classes.
  int64_t Count(int64_t truth, int64_t predicted) const;
  int64_t total() const { return total_; }
  // The part of all that is right.
  double Accuracy() const;

  struct Scores {
    double precision;  // the part that is right of those taken for the class
    double recall;     // and of those that are of the class
    double f1;         // 2 right / (taken for it + of it)
  };
  Scores Of(int64_t c) const;
  // The means over the classes that were targets or predicted.
  Scores Macro() const;
  // Of all classes together: with one target each, all three are the accuracy.
  Scores Micro() const;

 private:
  int64_t n_classes_, ignore_index_, total_ = 0;
  std::vector<int64_t> counts_;  // [truth, predicted]
};

// The part of targets that are among the k classes of the largest logits.
class TopKAccuracy {
 public:
  // Throws Error unless k >= 1.
  explicit TopKAccuracy(int64_t k, int64_t ignore_index = kIgnoreIndex);
  void Add(const Tensor& logits, const Tensor& targets);
  int64_t total() const { return total_; }
  double Value() const;  // 0 of none

 private:
  int64_t k_, ignore_index_, total_ = 0, right_ = 0;
};

// exp of the mean loss of a unit (token), of batches' mean losses in nats.
class Perplexity {
 public:
  // Throws Error unless units >= 0.
  void Add(double mean_loss, int64_t units);
  double MeanLoss() const;  // 0 of none
  double Value() const;     // 1 of none

 private:
  double sum_ = 0;
  int64_t units_ = 0;
};

// What a function finds of a batch: means over so many units.
struct BatchMeans {
  std::vector<Metric> means;
  int64_t units = 1;
};
// Means over the rows 0 .. n_rows - 1, taken in order in batches of batch_size,
// of which the last may be smaller: each weighs by its units. A name that some
// batches lack is a mean over the others. Nothing is recorded on a tape, and
// dropout is off. For Loop::Run:
//   [&] { return Evaluate(n, 64, [&](auto rows) -> BatchMeans { ... }); }
// Throws Error unless batch_size >= 1, n_rows >= 0 and units >= 0.
std::vector<Metric> Evaluate(
    int64_t n_rows, int64_t batch_size,
    absl::FunctionRef<BatchMeans(absl::Span<const int64_t> rows)> f);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_METRICS_H_
