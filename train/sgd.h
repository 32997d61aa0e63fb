// Stochastic gradient descent with momentum.
#ifndef WENGERT_TRAIN_SGD_H_
#define WENGERT_TRAIN_SGD_H_

#include <map>
#include <string>

#include "nn/parameter_store.h"
#include "train/optimizer.h"

namespace wengert::train {

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;  // times w, is added to the gradient
  DecayFilter decay_filter = nullptr;
};

// With gradient g:  g = g + weight_decay w,  b = momentum b + g,
//   w = w - lr b, or with nesterov (Sutskever et al. 2013)
//   w = w - lr (g + momentum b).
// Throws Error unless 0 <= momentum < 1 and weight_decay >= 0.
class Sgd : public Optimizer {
 public:
  explicit Sgd(nn::ParameterStore& store, SgdOptions options = {});

 private:
  void Update(const Run& run) override;
  std::map<std::string, double> options() const override;
  void set_options(const std::map<std::string, double>& options) override;

  double momentum_, nesterov_, weight_decay_;  // nesterov: 0 or 1
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_SGD_H_
