#include "train/rmsprop.h"

#include "autograd/kernels/optimizer.h"

namespace wengert::train {

RmsProp::RmsProp(nn::ParameterStore& store, RmsPropOptions o)
    : Optimizer(store, "RmsProp", {"square", "mean", "momentum"}, o.lr,
                o.decay_filter) {
  set_options({{"alpha", o.alpha},
               {"eps", o.eps},
               {"momentum", o.momentum},
               {"centered", o.centered},
               {"weight_decay", o.weight_decay}});
}

std::map<std::string, double> RmsProp::options() const {
  return {{"alpha", alpha_},
          {"eps", eps_},
          {"momentum", momentum_},
          {"centered", centered_},
          {"weight_decay", weight_decay_}};
}

void RmsProp::set_options(const std::map<std::string, double>& options) {
  const double alpha = options.at("alpha");
  Check(alpha >= 0 && alpha <= 1, "alpha", alpha, "a number in [0, 1]");
  CheckEps(options.at("eps"));
  CheckFractions(options, {"momentum"});
  CheckSwitches(options, {"centered"});
  CheckNonNegative(options, {"weight_decay"});
  alpha_ = options.at("alpha");
  eps_ = options.at("eps");
  momentum_ = options.at("momentum");
  centered_ = options.at("centered");
  weight_decay_ = options.at("weight_decay");
}

void RmsProp::Update(const Run& run) {
  const kernels::RmsPropFactors factors = {.lr = lr(),
                                           .alpha = alpha_,
                                           .eps = eps_,
                                           .momentum = momentum_,
                                           .centered = centered_ != 0,
                                           .l2 = run.decay ? weight_decay_ : 0};
  WithFloat(dtype(), [&]<class T>(T) {
    kernels::RmsPropStep<T>(run.size, factors, run.At<T>(run.segment.gradients),
                            run.At<T>(run.segment.values),
                            run.At<T>(run.state[0]), run.At<T>(run.state[1]),
                            run.At<T>(run.state[2]));
  });
}

}  // namespace wengert::train
