// Lion: steps of one size, by the sign of a momentum.
#ifndef WENGERT_TRAIN_LION_H_
#define WENGERT_TRAIN_LION_H_

#include <map>
#include <string>

#include "nn/parameter_store.h"
#include "train/optimizer.h"

namespace wengert::train {

struct LionOptions {
  double lr = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;  // decoupled
  DecayFilter decay_filter = nullptr;
};

// With gradient g (Chen et al. 2023, algorithm 2):
//   w = w - lr (sign(beta1 m + (1 - beta1) g) + weight_decay w),
//   m = beta2 m + (1 - beta2) g.
// Throws Error unless 0 <= beta < 1 and weight_decay >= 0.
class Lion : public Optimizer {
 public:
  explicit Lion(nn::ParameterStore& store, LionOptions options = {});

 private:
  void Update(const Run& run) override;
  std::map<std::string, double> options() const override;
  void set_options(const std::map<std::string, double>& options) override;

  double beta1_, beta2_, weight_decay_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_LION_H_
