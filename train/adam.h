// Adam (Kingma, Ba 2015) with bias correction, and AdamW, whose decay is apart
// from the gradient (Loshchilov, Hutter 2019).
#ifndef WENGERT_TRAIN_ADAM_H_
#define WENGERT_TRAIN_ADAM_H_

#include <map>
#include <string>

#include "nn/parameter_store.h"
#include "train/optimizer.h"

namespace wengert::train {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;  // times w, is added to the gradient
  DecayFilter decay_filter = nullptr;
};

// At a parameter's t-th update, with gradient g:
//   g = g + weight_decay w
//   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2
//   w = w - lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)
// Throws Error unless 0 <= beta < 1, weight_decay >= 0 and eps > 0, in the
// store's dtype too: a gradient that is 0 from the start gives 0 / eps.
class Adam : public Optimizer {
 public:
  explicit Adam(nn::ParameterStore& store, AdamOptions options = {})
      : Adam(store, "Adam", options) {}

 protected:
  Adam(nn::ParameterStore& store, const char* kind, const AdamOptions& options);

 private:
  void Update(const Run& run) override;
  std::map<std::string, double> options() const override;
  void set_options(const std::map<std::string, double>& options) override;

  const bool decoupled_;
  double beta1_, beta2_, eps_, weight_decay_;
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;  // lr times it is what w loses, apart from g
  DecayFilter decay_filter = nullptr;
};

// As Adam, with w = (1 - lr weight_decay) w first in place of the first line.
class AdamW : public Adam {
 public:
  explicit AdamW(nn::ParameterStore& store, AdamWOptions options = {});
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_ADAM_H_
