#include "train/adam.h"

#include <cmath>
#include <string_view>

#include "autograd/kernels/optimizer.h"

namespace wengert::train {

Adam::Adam(nn::ParameterStore& store, const char* kind, const AdamOptions& o)
    : Optimizer(store, kind, {"m", "v"}, o.lr, o.decay_filter),
      decoupled_(std::string_view(kind) == "AdamW") {
  set_options({{"beta1", o.beta1},
               {"beta2", o.beta2},
               {"eps", o.eps},
               {"weight_decay", o.weight_decay}});
}

AdamW::AdamW(nn::ParameterStore& store, AdamWOptions o)
    : Adam(store, "AdamW",
           {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, o.decay_filter}) {}

std::map<std::string, double> Adam::options() const {
  return {{"beta1", beta1_},
          {"beta2", beta2_},
          {"eps", eps_},
          {"weight_decay", weight_decay_}};
}

void Adam::set_options(const std::map<std::string, double>& options) {
  CheckFractions(options, {"beta1", "beta2"});
  CheckEps(options.at("eps"));
  CheckNonNegative(options, {"weight_decay"});
  beta1_ = options.at("beta1");
  beta2_ = options.at("beta2");
  eps_ = options.at("eps");
  weight_decay_ = options.at("weight_decay");
}

void Adam::Update(const Run& run) {
  const double decay = run.decay ? weight_decay_ : 0;
  const auto t = static_cast<double>(run.step);
  const kernels::AdamFactors factors = {
      .step_size = lr() / (1 - std::pow(beta1_, t)),
      .beta1 = beta1_,
      .beta2 = beta2_,
      .root_scale = 1 / std::sqrt(1 - std::pow(beta2_, t)),
      .eps = eps_,
      .l2 = decoupled_ ? 0 : decay,
      .keep = decoupled_ ? 1 - lr() * decay : 1};
  WithFloat(dtype(), [&]<class T>(T) {
    kernels::AdamStep<T>(run.size, factors, run.At<T>(run.segment.gradients),
                         run.At<T>(run.segment.values), run.At<T>(run.state[0]),
                         run.At<T>(run.state[1]));
  });
}

}  // namespace wengert::train
