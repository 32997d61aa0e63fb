#include "train/sgd.h"

#include "autograd/kernels/optimizer.h"

namespace wengert::train {

Sgd::Sgd(nn::ParameterStore& store, SgdOptions o)
    : Optimizer(store, "Sgd", {"momentum"}, o.lr, o.decay_filter) {
  set_options({{"momentum", o.momentum},
               {"nesterov", o.nesterov},
               {"weight_decay", o.weight_decay}});
}

std::map<std::string, double> Sgd::options() const {
  return {{"momentum", momentum_},
          {"nesterov", nesterov_},
          {"weight_decay", weight_decay_}};
}

void Sgd::set_options(const std::map<std::string, double>& options) {
  CheckFractions(options, {"momentum"});
  CheckSwitches(options, {"nesterov"});
  CheckNonNegative(options, {"weight_decay"});
  momentum_ = options.at("momentum");
  nesterov_ = options.at("nesterov");
  weight_decay_ = options.at("weight_decay");
}

void Sgd::Update(const Run& run) {
  const kernels::SgdFactors factors = {.lr = lr(),
                                       .momentum = momentum_,
                                       .nesterov = nesterov_ != 0,
                                       .l2 = run.decay ? weight_decay_ : 0};
  WithFloat(dtype(), [&]<class T>(T) {
    kernels::SgdStep<T>(run.size, factors, run.At<T>(run.segment.gradients),
                        run.At<T>(run.segment.values), run.At<T>(run.state[0]));
  });
}

}  // namespace wengert::train
