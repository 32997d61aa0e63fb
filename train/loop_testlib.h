// A small run for tests of the loop: a linear map with dropout learns numbers
// that are made of the rows' indices.
#ifndef WENGERT_TRAIN_LOOP_TESTLIB_H_
#define WENGERT_TRAIN_LOOP_TESTLIB_H_

#include <cmath>
#include <vector>

#include "autograd/ops.h"
#include "nn/nn.h"
#include "train/adam.h"
#include "train/batch_stream.h"
#include "train/loop.h"

namespace wengert::train {

struct SmallRun {
  explicit SmallRun(DType dtype = DType::kFloat32, double dropout = 0.25)
      : store(dtype, 1),
        up(store.root().Sub("up"), 2, 8),
        down(store.root().Sub("down"), 8, 1),
        drop(dropout),
        optimizer(store, {.lr = 0.01}),
        generator(5),
        batches(n_rows, 3, 7) {}

  // 14 rows in batches of 3: the last one of an epoch has 2.
  static constexpr int64_t n_rows = 14;

  TrainingRun parts() { return {&store, &optimizer, &generator, &batches}; }

  BatchLoss Loss(absl::Span<const int64_t> rows) {
    const int64_t n = static_cast<int64_t>(rows.size());
    Tensor x = Tensor::Empty({n, 2}, DType::kFloat64);
    Tensor y = Tensor::Empty({n, 1}, DType::kFloat64);
    for (int64_t i = 0; i < n; ++i) {
      const double row = static_cast<double>(rows[i]);
      x.mutable_data<double>()[2 * i] = std::sin(row);
      x.mutable_data<double>()[2 * i + 1] = std::cos(row);
      y.mutable_data<double>()[i] = std::sin(2 * row) + bias;
    }
    const Tensor h = drop(Tanh(up(x.To(store.dtype()))));
    return {Mean(Square(down(h) - y.To(store.dtype()))), n};
  }

  nn::ParameterStore store;
  nn::Linear up, down;
  nn::Dropout drop;
  AdamW optimizer;
  Generator generator;
  BatchStream batches;
  double bias = 0;  // what is not finite goes in here
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_LOOP_TESTLIB_H_
