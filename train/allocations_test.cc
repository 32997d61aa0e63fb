// From the second step on, training takes nothing from the system.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "autograd/parallel.h"
#include "autograd/random.h"
#include "gtest/gtest.h"
#include "train/adam.h"
#include "train/allocations_testlib.h"
#include "train/clip.h"
#include "train/gpt_testlib.h"

namespace wengert::train {
namespace {

class Allocations : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CountsAllocations()) GTEST_SKIP() << "a sanitizer allocates";
  }
};

TEST_F(Allocations, AreCounted) {
  const int64_t before = SystemAllocations();
  void* volatile a = std::malloc(10);
  void* volatile b = std::aligned_alloc(64, 640);
  EXPECT_EQ(SystemAllocations() - before, 2);
  std::free(a);
  std::free(b);
}

TEST_F(Allocations, NoneInTheSecondStepOfASmallGpt) {
  for (int threads : {1, 2}) {
    SetNumThreads(threads);
    nn::ParameterStore store(DType::kFloat32, 1);
    const GptOptions options{.n_layers = 2};
    const Gpt model(store.root(), options);
    AdamW optimizer(store, {.decay_filter = IsMatrix});
    Generator generator(3);
    const int64_t n = 4 * options.length;
    std::vector<int64_t> ids;
    for (int64_t i = 0; i <= n; ++i) ids.push_back(i * i % 65);
    const Shape shape{4, options.length};
    const Tensor x =
        Tensor::From(shape, std::vector<int64_t>(ids.begin(), ids.end() - 1));
    const Tensor y =
        Tensor::From(shape, std::vector<int64_t>(ids.begin() + 1, ids.end()));
    std::vector<int64_t> counts(5);  // after each step
    for (int64_t& count : counts) {
      Tape tape(generator);
      const Tensor loss = CrossEntropy(model(x), y);
      tape.Backward(loss);
      ClipGradNorm(store, 1);
      optimizer.Step();
      count = SystemAllocations();
    }
    for (size_t step = 1; step < counts.size(); ++step) {
      EXPECT_EQ(counts[step] - counts[step - 1], 0)
          << "step " << step + 1 << " with " << threads << " threads";
    }
  }
  SetNumThreads(1);
}

}  // namespace
}  // namespace wengert::train
