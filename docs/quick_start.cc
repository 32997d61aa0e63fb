#include <cstdio>

#include "nn/nn.h"
#include "train/adam.h"

using namespace wengert;

int main() {  // learns y = x² from five points
  nn::ParameterStore store(DType::kFloat32, /*seed=*/1);
  const nn::Linear up(store.root().Sub("up"), 1, 16);
  const nn::Linear down(store.root().Sub("down"), 16, 1);
  train::Adam optimizer(store, {.lr = 0.05});
  const Tensor x = Tensor::Of({5, 1}, {-1, -0.5, 0, 0.5, 1});
  for (int step = 0; step <= 200; ++step) {
    Tape tape;  // records
    const Tensor loss = Mean(Square(down(Tanh(up(x))) - Square(x)));
    tape.Backward(loss);  // fills the gradients
    optimizer.Step();
    if (step % 100 == 0) std::printf("step %d: %.4f\n", step, loss.item());
  }
}
