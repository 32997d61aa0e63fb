// RMSprop: steps divided by a running root mean square of the gradient.
#ifndef WENGERT_TRAIN_RMSPROP_H_
#define WENGERT_TRAIN_RMSPROP_H_

#include <map>
#include <string>

#include "nn/parameter_store.h"
#include "train/optimizer.h"

namespace wengert::train {

struct RmsPropOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double momentum = 0;
  bool centered = false;
  double weight_decay = 0;  // times w, is added to the gradient
  DecayFilter decay_filter = nullptr;
};

// With gradient g (Tieleman, Hinton 2012; PyTorch's RMSprop):
//   g = g + weight_decay w,  v = alpha v + (1 - alpha) g^2,
//   b = momentum b + g / (sqrt(v) + eps),  w = w - lr b.
// Centered (Graves 2013), with a = alpha a + (1 - alpha) g, it is divided by
// sqrt(v - a^2) + eps. Throws Error unless 0 <= alpha <= 1, 0 <= momentum < 1,
// eps > 0 and weight_decay >= 0.
class RmsProp : public Optimizer {
 public:
  explicit RmsProp(nn::ParameterStore& store, RmsPropOptions options = {});

 private:
  void Update(const Run& run) override;
  std::map<std::string, double> options() const override;
  void set_options(const std::map<std::string, double>& options) override;

  double alpha_, eps_, momentum_, centered_, weight_decay_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_RMSPROP_H_
