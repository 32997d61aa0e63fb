// A loop written from the parts that train::Loop is made of. See
// docs/training.md.
#include <iostream>

#include "nn/nn.h"
#include "train/adam.h"
#include "train/checkpoint.h"
#include "train/clip.h"
#include "train/schedule.h"

using namespace wengert;

int main() {
  nn::ParameterStore store(DType::kFloat32, /*seed=*/1);
  const nn::MLP model(store.root(), 1, 16);
  train::AdamW optimizer(store);
  Generator generator(/*seed=*/1);
  const train::WarmupCosine schedule(0.02, 20, 300);
  const Tensor x = Tensor::Of({5, 1}, {-1, -0.5, 0, 0.5, 1});
  const Tensor y = Square(x);
  for (int64_t step = 0; step < 300; ++step) {
    Tape tape(generator);
    const Tensor loss = Mean(Square(model(x) - y));
    tape.Backward(loss);
    if (!train::ClipGradNorm(store, 1).finite) continue;
    optimizer.set_lr(schedule(step));
    optimizer.Step();
    if (step % 100 == 99) {
      const absl::Status saved = train::SaveCheckpoint(
          "own.safetensors", {&store, &optimizer, &generator},
          {.step = step + 1});
      if (!saved.ok()) std::cerr << saved.message() << "\n";
    }
  }
}
