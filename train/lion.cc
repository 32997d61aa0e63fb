#include "train/lion.h"

#include "autograd/kernels/optimizer.h"

namespace wengert::train {

Lion::Lion(nn::ParameterStore& store, LionOptions o)
    : Optimizer(store, "Lion", {"m"}, o.lr, o.decay_filter) {
  set_options({{"beta1", o.beta1},
               {"beta2", o.beta2},
               {"weight_decay", o.weight_decay}});
}

std::map<std::string, double> Lion::options() const {
  return {
      {"beta1", beta1_}, {"beta2", beta2_}, {"weight_decay", weight_decay_}};
}

void Lion::set_options(const std::map<std::string, double>& options) {
  CheckFractions(options, {"beta1", "beta2"});
  CheckNonNegative(options, {"weight_decay"});
  beta1_ = options.at("beta1");
  beta2_ = options.at("beta2");
  weight_decay_ = options.at("weight_decay");
}

void Lion::Update(const Run& run) {
  const kernels::LionFactors factors = {
      .lr = lr(),
      .beta1 = beta1_,
      .beta2 = beta2_,
      .keep = run.decay ? 1 - lr() * weight_decay_ : 1};
  WithFloat(dtype(), [&]<class T>(T) {
    kernels::LionStep<T>(run.size, factors, run.At<T>(run.segment.gradients),
                         run.At<T>(run.segment.values),
                         run.At<T>(run.state[0]));
  });
}

}  // namespace wengert::train
