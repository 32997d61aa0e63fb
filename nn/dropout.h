// Noise that keeps a network from leaning on single numbers.
#ifndef WENGERT_NN_DROPOUT_H_
#define WENGERT_NN_DROPOUT_H_

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/ops.h"

namespace wengert::nn {

// Under a training tape, each element of x becomes 0 with probability p in
// [0, 1] and x / (1 - p) otherwise; x itself in evaluation. No parameters.
class Dropout {
 public:
  explicit Dropout(double p) : p_(p) {
    if (!(p >= 0 && p <= 1)) {
      throw Error(absl::StrCat("nn::Dropout: p = ", p, "; wanted [0, 1]"));
    }
  }

  Tensor operator()(const Tensor& x) const { return wengert::Dropout(x, p_); }

  double p() const { return p_; }

 private:
  double p_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_DROPOUT_H_
