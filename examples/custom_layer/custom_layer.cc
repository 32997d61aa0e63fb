// A layer of one's own: a gate decides, element by element, how much of a
// linear map passes (Dauphin et al. 2017). It is checked against central
// differences and then learns a function that no single linear map can:
// y = x where x > 0, else 0.1 x.
#include <iostream>

#include "absl/strings/str_format.h"
#include "autograd/gradcheck.h"
#include "nn/nn.h"
#include "train/adam.h"
#include "train/command_line.h"
#include "train/loop.h"
#include "train/recorder.h"
#include "train/run_flags.h"

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

absl::StatusOr<int> Run(int argc, char** argv) {
  const absl::Status parsed = train::ParseRunCommandLine(
      argc, argv, "Checks and trains a layer of one's own.", __FILE__);
  if (!parsed.ok()) return parsed;
  if (!GradientsAreRight()) return 1;
  std::cout << "gradients agree with central differences\n";

  constexpr uint64_t kSeed = 1;
  nn::ParameterStore store(DType::kFloat32, kSeed);
  const GatedLinear layer(store.root(), 1, 1);
  std::cout << store.Table() << std::flush;
  const Tensor x = Tensor::Of({7, 1}, {-3, -2, -1, 0, 1, 2, 3});
  const Tensor y = Maximum(x, 0.1 * x);
  train::Adam optimizer(store, {.lr = 0.05});
  train::BatchStream batches(1, 1, kSeed);  // every step sees all of x
  train::LoopOptions options = train::LoopFlags();
  options.steps = 400;
  train::Loop loop({&store, &optimizer, nullptr, &batches}, options);
  const auto recorder =
      train::Recorder::Open(loop, train::RecorderFlags(kSeed));
  if (!recorder.ok()) return recorder.status();
  double loss = 0;
  loop.OnStep([&](const train::StepInfo& info) {
    loss = info.loss;
    if (info.step == 1 || info.step % 100 == 0) {
      (*recorder)->Message(
          absl::StrFormat("step %3d  loss %.5f", info.step, loss));
    }
  });
  const auto end = loop.Run([&](auto) { return Mean(Square(layer(x) - y)); });
  const absl::Status status = (*recorder)->Finish(end);
  if (!status.ok()) return status;
  return !end->complete() || loss < 0.02 ? 0 : 1;
}

int main(int argc, char** argv) {
  return train::ExitStatus("custom_layer", [&] { return Run(argc, argv); });
}
