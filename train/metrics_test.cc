// Measures against values worked out by hand and with scikit-learn's rules.
#include "train/metrics.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "autograd/error.h"
#include "autograd/ops.h"
#include "autograd/tape.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert::train {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor Ids(std::vector<int64_t> ids) {
  return Tensor::From({static_cast<int64_t>(ids.size())}, ids);
}

// Logits whose largest is each of the classes.
Tensor Predicting(const std::vector<int64_t>& classes, int64_t n) {
  std::vector<double> x(classes.size() * n, -1.0);
  for (size_t i = 0; i < classes.size(); ++i) x[i * n + classes[i]] = 2;
  return Tensor::From({static_cast<int64_t>(classes.size()), n}, x);
}

TEST(ConfusionMatrix, ScoresOfThreeClasses) {
  // The example of scikit-learn's guide: precision 0.67 0 0, recall 1 0 0.
  ConfusionMatrix m(3);
  m.Add(Predicting({0, 2, 1}, 3), Ids({0, 1, 2}));
  m.Add(Predicting({0, 0, 1}, 3), Ids({0, 1, 2}));
  EXPECT_EQ(m.total(), 6);
  EXPECT_EQ(m.Count(0, 0), 2);
  EXPECT_EQ(m.Count(1, 0), 1);
  EXPECT_EQ(m.Count(1, 2), 1);
  EXPECT_EQ(m.Count(2, 1), 2);
  EXPECT_DOUBLE_EQ(m.Accuracy(), 2.0 / 6);
  EXPECT_DOUBLE_EQ(m.Of(0).precision, 2.0 / 3);
  EXPECT_DOUBLE_EQ(m.Of(0).recall, 1);
  EXPECT_DOUBLE_EQ(m.Of(0).f1, 0.8);
  EXPECT_EQ(m.Of(1).f1, 0);
  EXPECT_DOUBLE_EQ(m.Macro().precision, 2.0 / 9);
  EXPECT_DOUBLE_EQ(m.Macro().recall, 1.0 / 3);
  EXPECT_DOUBLE_EQ(m.Macro().f1, 0.8 / 3);
  EXPECT_DOUBLE_EQ(m.Micro().f1, 1.0 / 3);
}

TEST(ConfusionMatrix, IgnoresAndLeavesOutClassesThatNeverCome) {
  ConfusionMatrix m(5, /*ignore_index=*/-1);
  m.Add(Predicting({0, 1, 1}, 5), Ids({0, -1, 0}));
  EXPECT_EQ(m.total(), 2);
  EXPECT_DOUBLE_EQ(m.Accuracy(), 0.5);
  EXPECT_DOUBLE_EQ(m.Macro().recall, 0.25);  // of the classes 0 and 1
  const ConfusionMatrix none(2);
  EXPECT_EQ(none.Accuracy(), 0);
  EXPECT_EQ(none.Macro().f1, 0);
}

TEST(ConfusionMatrix, TheFirstOfTheLargestIsPredicted) {
  ConfusionMatrix m(3);
  m.Add(Tensor::Of<double>({2, 2, 3}, {1, 7, 7,     //
                                       0, 0, 0,     //
                                       9, kNan, 1,  //
                                       -1, -2, kNan}),
        Tensor::Of<int32_t>({2, 2}, {1, 0, 1, 2}));
  EXPECT_EQ(m.Accuracy(), 1);
}

TEST(ConfusionMatrix, RefusesWhatDoesNotFit) {
  ConfusionMatrix m(3);
  const auto error = [&](const Tensor& logits, const Tensor& targets,
                         const std::string& what) {
    EXPECT_THAT([&] { m.Add(logits, targets); },
                ThrowsMessage<Error>(HasSubstr(what)));
    EXPECT_EQ(m.total(), 0);
  };
  error(Tensor::Zeros({2, 3}), Ids({0}),
        "logits float32 [2, 3], targets int64 [1]; wanted");
  error(Tensor::Zeros({2, 3}), Tensor::Zeros({2}), "targets float32 [2]");
  error(Tensor::Zeros({1, 4}), Ids({0}), "wanted 3 classes");
  error(Tensor::Zeros({2, 3}), Ids({0, 3}), "target 3 is outside 3 classes");
  EXPECT_THROW(m.Count(0, 3), Error);
  EXPECT_THROW(ConfusionMatrix(0), Error);
}

TEST(TopKAccuracy, CountsTargetsAmongTheLargest) {
  const Tensor logits = Tensor::Of({4, 4}, {4, 3, 2, 1,  //
                                            4, 3, 2, 1,  //
                                            1, 1, 1, 1,  //
                                            9, 0, 0, 0});
  const Tensor targets = Ids({1, 2, 1, kIgnoreIndex});
  const double want[] = {0, 2.0 / 3, 1, 1, 1};
  for (int64_t k = 1; k <= 5; ++k) {
    TopKAccuracy top(k);
    top.Add(logits, targets);
    EXPECT_DOUBLE_EQ(top.Value(), want[k - 1]) << k;
    EXPECT_EQ(top.total(), 3);
  }
  EXPECT_EQ(TopKAccuracy(1).Value(), 0);
  EXPECT_THROW(TopKAccuracy(0), Error);
}

TEST(Perplexity, WeighsBatchesByTheirUnits) {
  Perplexity perplexity;
  EXPECT_EQ(perplexity.Value(), 1);
  perplexity.Add(std::log(2), 3);
  perplexity.Add(std::log(32), 1);
  perplexity.Add(kNan, 0);
  EXPECT_NEAR(perplexity.Value(), 4, 1e-12);
  EXPECT_NEAR(perplexity.MeanLoss(), std::log(4), 1e-12);
  EXPECT_THROW(perplexity.Add(1, -1), Error);
}

TEST(Evaluate, IsTheMeanOverAllRowsForAnySizeOfBatch) {
  for (const int64_t batch_size : {1, 2, 3, 7, 100}) {
    int64_t seen = 0;
    const auto means = Evaluate(
        7, batch_size, [&](absl::Span<const int64_t> rows) -> BatchMeans {
          double sum = 0;
          for (const int64_t row : rows) {
            EXPECT_EQ(row, seen++);
            sum += static_cast<double>(row * row);
          }
          const auto n = static_cast<int64_t>(rows.size());
          BatchMeans batch = {{{"square", sum / static_cast<double>(n)}}, n};
          if (rows[0] == 0) batch.means.push_back({"first", 5});
          return batch;
        });
    ASSERT_EQ(means.size(), 2u);
    EXPECT_EQ(means[0].name, "square");
    EXPECT_NEAR(means[0].value, 13, 1e-12);
    EXPECT_EQ(means[1].value, 5);
    EXPECT_EQ(seen, 7);
  }
  const auto never = [](absl::Span<const int64_t>) { return BatchMeans{}; };
  EXPECT_TRUE(Evaluate(0, 5, never).empty());
  EXPECT_THROW(Evaluate(1, 0, never), Error);
}

TEST(Evaluate, RecordsNothing) {
  Tape tape;
  Tensor x = Tensor::Ones({2});
  tape.Watch(x);
  Tensor y;
  Evaluate(1, 1, [&](absl::Span<const int64_t>) -> BatchMeans {
    y = x * 2;
    return {};
  });
  EXPECT_THROW(tape.Backward(Sum(y)), Error);
}

}  // namespace
}  // namespace wengert::train
