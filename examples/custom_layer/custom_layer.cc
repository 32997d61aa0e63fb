// A layer of one's own: a gate decides, element by element, how much of a
// linear map passes (Dauphin et al. 2017). It is checked against central
// differences and then learns a function that no single linear map can:
// y = x where x > 0, else 0.1 x.
#include <iostream>

#include "absl/strings/str_format.h"
#include "autograd/gradcheck.h"
#include "nn/nn.h"
#include "train/adam.h"

using namespace wengert;

// y = (x Wᵀ + b) sigmoid(x Vᵀ + c); x [..., in] -> y [..., out].
class GatedLinear {
 public:
  GatedLinear(nn::Params p, int64_t in, int64_t out)
      : value_(p.Sub("value"), in, out), gate_(p.Sub("gate"), in, out) {}

  Tensor operator()(const Tensor& x) const {
    return value_(x) * Sigmoid(gate_(x));
  }

 private:
  nn::Linear value_, gate_;
};

// Compares every derivative of the layer, first and second order, with
// differences: by x and by each parameter.
bool GradientsAreRight() {
  nn::ParameterStore store(DType::kFloat64, /*seed=*/2);
  const GatedLinear layer(store.root(), 3, 2);
  std::vector<Tensor> inputs = {
      Tensor::Of<double>({2, 3}, {0.5, -1, 2, 0.1, 0.7, -0.3})};
  for (const Parameter* p : store.parameters()) inputs.push_back(p->value);
  const GradCheckReport report =
      GradCheck([&](auto x) { return layer(x[0]); }, inputs,
                {.name = "GatedLinear", .order = 2});
  if (!report) std::cout << report.message << "\n";
  return report.ok;
}

int main() {
  if (!GradientsAreRight()) return 1;
  std::cout << "gradients agree with central differences\n";

  nn::ParameterStore store(DType::kFloat32, /*seed=*/1);
  const GatedLinear layer(store.root(), 1, 1);
  std::cout << store.Table();
  const Tensor x = Tensor::Of({7, 1}, {-3, -2, -1, 0, 1, 2, 3});
  const Tensor y = Maximum(x, 0.1 * x);
  train::Adam optimizer(store, {.lr = 0.05});
  double loss = 0;
  for (int step = 1; step <= 400; ++step) {
    Tape tape;
    const Tensor error = Mean(Square(layer(x) - y));
    tape.Backward(error);
    optimizer.Step();
    loss = error.item();
    if (step == 1 || step % 100 == 0) {
      std::cout << absl::StrFormat("step %3d  loss %.5f\n", step, loss);
    }
  }
  return loss < 0.02 ? 0 : 1;
}
