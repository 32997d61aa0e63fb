// A fused operation of one's own (squared_relu_gate.h): checked against central
// differences and against its composition, timed beside it, and then trained
// with.
#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "autograd/gradcheck.h"
#include "examples/custom_op/squared_relu_gate.h"
#include "nn/nn.h"
#include "train/adam.h"
#include "train/clock.h"
#include "train/command_line.h"

using namespace wengert;
using Gate = Tensor (*)(const Tensor&, const Tensor&);

Tensor Noise(const Shape& shape, uint64_t stream, DType dtype) {
  Tensor x = Tensor::Empty(shape, DType::kFloat32);
  FillNormal(/*seed=*/1, stream, 0, 1, x.size(), x.mutable_data<float>());
  return x.To(dtype);
}

// First and second derivatives by both inputs, also where one is repeated.
bool GradientsAreRight() {
  const Tensor a = Noise({3, 5}, 0, DType::kFloat64);
  const Tensor b = Noise({3, 5}, 1, DType::kFloat64);
  for (const auto& inputs : {std::pair(a, b), std::pair(a, a)}) {
    const GradCheckReport report = GradCheck(
        [](auto x) { return SquaredReluGate(x[0], x[1]); },
        {inputs.first, inputs.second}, {.name = "SquaredReluGate", .order = 2});
    if (!report) std::cout << report.message << "\n";
    if (!report) return false;
  }
  return true;
}

std::vector<Tensor> ValueAndGradients(Gate gate, const Tensor& a,
                                      const Tensor& b) {
  Tape tape;
  tape.Watch(a);
  tape.Watch(b);
  const Tensor y = gate(a, b);
  auto all = tape.Gradient(y, {a, b}, {.cotangent = Cos(y)});
  all.push_back(y.Detach());
  return all;
}

// The largest difference of value and gradients.
double Difference(const Tensor& a, const Tensor& b) {
  const auto fused = ValueAndGradients(SquaredReluGate, a, b);
  const auto composed = ValueAndGradients(SquaredReluGateComposed, a, b);
  double worst = 0;
  for (size_t i = 0; i < fused.size(); ++i) {
    worst = std::max(worst, Max(Abs(fused[i] - composed[i])).item());
  }
  return worst;
}

// Median of the composition's times over the fused form's, in turn.
double Speedup(const Tensor& a, const Tensor& b) {
  std::vector<double> ratios;
  for (int i = 0; i < 21; ++i) {
    double seconds[2];
    for (const Gate gate : {SquaredReluGate, SquaredReluGateComposed}) {
      const double begin = train::SteadySeconds();
      ValueAndGradients(gate, a, b);
      seconds[gate == SquaredReluGateComposed] = train::SteadySeconds() - begin;
    }
    ratios.push_back(seconds[1] / seconds[0]);
  }
  std::nth_element(ratios.begin(), ratios.begin() + 10, ratios.end());
  return ratios[10];
}

// The loss after learning y = |x|, which the gate can build from two halves.
double Train() {
  nn::ParameterStore store(DType::kFloat32, /*seed=*/1);
  const nn::Linear gate(store.root().Sub("gate"), 1, 8);
  const nn::Linear up(store.root().Sub("up"), 1, 8);
  const nn::Linear down(store.root().Sub("down"), 8, 1);
  train::Adam optimizer(store, {.lr = 0.02});
  const Tensor x = Reshape(Linspace(-1, 1, 21), {21, 1});
  double loss = 0;
  for (int step = 0; step <= 600; ++step) {
    Tape tape;
    const Tensor y = down(SquaredReluGate(gate(x), up(x)));
    const Tensor error = MseLoss(y, Abs(x));
    tape.Backward(error);
    optimizer.Step();
    loss = error.item();
    if (step % 200 == 0) absl::PrintF("step %3d  loss %.5f\n", step, loss);
  }
  return loss;
}

absl::StatusOr<int> Run(int argc, char** argv) {
  const absl::Status parsed = train::ParseCommandLine(
      argc, argv, "Checks, times and trains with a fused operation.",
      {__FILE__});
  if (!parsed.ok()) return parsed;
  if (!GradientsAreRight()) return 1;
  absl::PrintF("gradients agree with central differences\n");
  const Tensor a = Noise({512, 1024}, 2, DType::kFloat32);
  const Tensor b = Noise({512, 1024}, 3, DType::kFloat32);
  const double difference = Difference(a, b);
  absl::PrintF("fused and composed differ by at most %.1g\n", difference);
  if (!(difference < 1e-4)) return 1;
  absl::PrintF("forward and backward: %.1f times as fast as composed\n",
               Speedup(a, b));
  return Train() < 0.01 ? 0 : 1;
}

int main(int argc, char** argv) {
  return train::ExitStatus("custom_op", [&] { return Run(argc, argv); });
}
