// Adagrad: steps divided by the root of all squared gradients so far.
#ifndef WENGERT_TRAIN_ADAGRAD_H_
#define WENGERT_TRAIN_ADAGRAD_H_

#include <map>
#include <string>

#include "nn/parameter_store.h"
#include "train/optimizer.h"

namespace wengert::train {

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double eps = 1e-10;
  double initial_sum = 0;   // of the squared gradients
  double weight_decay = 0;  // times w, is added to the gradient
  DecayFilter decay_filter = nullptr;
};

// With gradient g in the t-th update, from 1 (Duchi, Hazan, Singer 2011;
// PyTorch's Adagrad):
//   g = g + weight_decay w,  s = s + g^2,
//   w = w - lr / (1 + (t - 1) lr_decay) g / (sqrt(initial_sum + s) + eps).
// Throws Error unless eps > 0 and all others are >= 0 and finite.
class Adagrad : public Optimizer {
 public:
  explicit Adagrad(nn::ParameterStore& store, AdagradOptions options = {});

 private:
  void Update(const Run& run) override;
  std::map<std::string, double> options() const override;
  void set_options(const std::map<std::string, double>& options) override;

  double lr_decay_, eps_, initial_sum_, weight_decay_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_ADAGRAD_H_
