#include "train/adagrad.h"

#include "autograd/kernels/optimizer.h"

namespace wengert::train {

Adagrad::Adagrad(nn::ParameterStore& store, AdagradOptions o)
    : Optimizer(store, "Adagrad", {"sum"}, o.lr, o.decay_filter) {
  set_options({{"lr_decay", o.lr_decay},
               {"eps", o.eps},
               {"initial_sum", o.initial_sum},
               {"weight_decay", o.weight_decay}});
}

std::map<std::string, double> Adagrad::options() const {
  return {{"lr_decay", lr_decay_},
          {"eps", eps_},
          {"initial_sum", initial_sum_},
          {"weight_decay", weight_decay_}};
}

void Adagrad::set_options(const std::map<std::string, double>& options) {
  CheckNonNegative(options, {"lr_decay", "initial_sum", "weight_decay"});
  CheckEps(options.at("eps"));
  lr_decay_ = options.at("lr_decay");
  eps_ = options.at("eps");
  initial_sum_ = options.at("initial_sum");
  weight_decay_ = options.at("weight_decay");
}

void Adagrad::Update(const Run& run) {
  const double updates_before = static_cast<double>(run.step - 1);
  const kernels::AdagradFactors factors = {
      .lr = lr() / (1 + updates_before * lr_decay_),
      .start = initial_sum_,
      .eps = eps_,
      .l2 = run.decay ? weight_decay_ : 0};
  WithFloat(dtype(), [&]<class T>(T) {
    kernels::AdagradStep<T>(run.size, factors, run.At<T>(run.segment.gradients),
                            run.At<T>(run.segment.values),
                            run.At<T>(run.state[0]));
  });
}

}  // namespace wengert::train
