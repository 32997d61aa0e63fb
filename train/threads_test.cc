// Same seed, same bits, for any number of threads: whole models, large enough
// to be split, trained with dropout, clipping and AdamW.
#include <cstdint>
#include <vector>

#include "autograd/parallel.h"
#include "autograd/random.h"
#include "autograd/tensor_testlib.h"
#include "gtest/gtest.h"
#include "train/adam.h"
#include "train/clip.h"
#include "train/gpt_testlib.h"

namespace wengert::train {
namespace {

struct Run {
  std::vector<float> losses;
  std::vector<Tensor> parameters;
  int64_t worker_chunks;  // chunks that other threads than the caller's ran
};

Run TrainSteps(const GptOptions& options, int64_t batch, int threads) {
  SetNumThreads(threads);
  const int64_t before = GetParallelStats().worker_chunks;
  nn::ParameterStore store(DType::kFloat32, 11);
  const Gpt model(store.root(), options);
  AdamW optimizer(store, {.lr = 1e-3, .weight_decay = 0.1});
  Generator generator(3);
  Run run;
  const int64_t n = batch * options.length;
  for (uint64_t step = 0; step < 5; ++step) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i <= n; ++i) {
      ids.push_back(UniformInt(17, step, i, options.vocabulary));
    }
    const Shape shape{batch, options.length};
    const Tensor x =
        Tensor::From(shape, std::vector<int64_t>(ids.begin(), ids.end() - 1));
    const Tensor y =
        Tensor::From(shape, std::vector<int64_t>(ids.begin() + 1, ids.end()));
    Tape tape(generator);
    const Tensor loss = CrossEntropy(model(x), y);
    tape.Backward(loss);
    ClipGradNorm(store, 1);
    optimizer.Step();
    run.losses.push_back(loss.data<float>()[0]);
  }
  for (const Parameter* p : store.parameters()) {
    run.parameters.push_back(p->value.Clone());
  }
  run.worker_chunks = GetParallelStats().worker_chunks - before;
  SetNumThreads(1);
  return run;
}

void ExpectSameBits(const GptOptions& options, int64_t batch) {
  const Run one = TrainSteps(options, batch, 1);
  EXPECT_EQ(one.worker_chunks, 0);
  EXPECT_LT(one.losses.back(), one.losses.front());
  for (int threads : {2, 3, 5}) {
    const Run many = TrainSteps(options, batch, threads);
    EXPECT_GT(many.worker_chunks, 0) << "nothing ran on a second thread";
    EXPECT_EQ(one.losses, many.losses) << threads << " threads";
    for (size_t i = 0; i < one.parameters.size(); ++i) {
      EXPECT_TRUE(SameBits(one.parameters[i], many.parameters[i]))
          << "parameter " << i << ", " << threads << " threads";
    }
  }
  const Run again = TrainSteps(options, batch, 1);
  EXPECT_EQ(one.losses, again.losses) << "the next run";
}

TEST(Threads, SmallGpt) {
  ExpectSameBits({.length = 64, .d_model = 128, .n_heads = 4, .n_layers = 2},
                 6);
}

TEST(Threads, RaggedSizes) {
  ExpectSameBits({.vocabulary = 71,
                  .length = 37,
                  .d_model = 132,
                  .n_heads = 6,
                  .n_layers = 2},
                 5);
}

}  // namespace
}  // namespace wengert::train
