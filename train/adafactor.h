// Adafactor: Adam's second moment of a matrix kept as one number a row and one
// a column, and steps in proportion to the weights.
#ifndef WENGERT_TRAIN_ADAFACTOR_H_
#define WENGERT_TRAIN_ADAFACTOR_H_

#include <map>
#include <string>

#include "nn/parameter_store.h"
#include "train/optimizer.h"

namespace wengert::train {

struct AdafactorOptions {
  double lr = 1e-2;
  double beta2_decay = -0.8;
  double eps1 = 0;  // 0: the distance of the dtype's 1 from the next number
  double eps2 = 1e-3;
  double d = 1;             // largest root mean square of an update
  double weight_decay = 0;  // lr times it is what w loses, apart from g
  DecayFilter decay_filter = nullptr;
};

// At a parameter's t-th update, with gradient g (Shazeer, Stern 2018; PyTorch's
// Adafactor), b = t^beta2_decay, and of two or more dimensions, for each matrix
// of the last two:
//   a = max(eps2, RMS(w)) min(lr, 1 / sqrt t),  w = (1 - lr weight_decay) w,
//   r = r + b (mean of g^2 over a row - r),  c the same over a column,
//   v = r c / max(mean r, eps1);  of fewer dimensions  v = v + b (g^2 - v);
//   u = g / max(sqrt v, eps1),  w = w - a u / max(1, RMS(u) / d).
// Throws Error unless beta2_decay <= 0, d > 0, and eps and weight_decay >= 0.
class Adafactor : public Optimizer {
 public:
  explicit Adafactor(nn::ParameterStore& store, AdafactorOptions options = {});

 private:
  void Update(const Run& run) override;
  std::map<std::string, double> options() const override;
  void set_options(const std::map<std::string, double>& options) override;
  template <class T>
  void UpdateAs(const Run& run);

  double beta2_decay_, eps1_, eps2_, d_, weight_decay_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_ADAFACTOR_H_
