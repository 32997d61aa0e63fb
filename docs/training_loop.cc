// A training run in one's own program: what a loop needs, and what the recorder
// adds. See docs/training.md.
#include <cmath>
#include <iostream>

#include "nn/nn.h"
#include "train/adam.h"
#include "train/loop.h"
#include "train/recorder.h"
#include "train/run_flags.h"
#include "train/schedule.h"

using namespace wengert;

// y = sin x, for the rows whose indices a batch lists.
train::BatchLoss Loss(const nn::MLP& model, absl::Span<const int64_t> rows) {
  const int64_t n = static_cast<int64_t>(rows.size());
  Tensor x = Tensor::Empty({n, 1}), y = Tensor::Empty({n, 1});
  for (int64_t i = 0; i < n; ++i) {
    const float angle = 0.1f * static_cast<float>(rows[i] - 32);
    x.mutable_data<float>()[i] = angle;
    y.mutable_data<float>()[i] = std::sin(angle);
  }
  return {Mean(Square(model(x) - y)), n};
}

int main(int argc, char** argv) {
  const absl::Status parsed =
      train::ParseRunCommandLine(argc, argv, "Learns y = sin x.", __FILE__);
  if (!parsed.ok()) {
    std::cerr << parsed.message() << "\n";
    return absl::IsCancelled(parsed) ? 0 : 2;
  }
  // From here on the text shows it.
  nn::ParameterStore store(DType::kFloat32, /*seed=*/1);
  const nn::MLP model(store.root(), 1, 32);
  train::AdamW optimizer(store);
  Generator generator(/*seed=*/1);
  train::BatchStream batches(/*n=*/64, /*batch_size=*/16, /*seed=*/1);

  train::LoopOptions options = train::LoopFlags();
  options.steps = 2000;
  options.clip_norm = 1;
  options.schedule = train::WarmupCosine(0.02, 20, options.steps);
  options.evaluate_every = 500;
  train::Loop loop({&store, &optimizer, &generator, &batches}, options);
  const auto recorder =
      train::Recorder::Open(loop, train::RecorderFlags(/*seed=*/1));
  if (!recorder.ok()) {
    std::cerr << recorder.status().message() << "\n";
    return 2;
  }
  const auto end = loop.Run(
      [&](auto rows) { return Loss(model, rows); },
      [&]() -> std::vector<train::Metric> {
        return {{"eval/loss", Loss(model, {1, 20, 40, 63}).loss.item()}};
      });
  return (*recorder)->Finish(end).ok() ? 0 : 1;
}
