// Normalisation of each row, which keeps deep models trainable.
#ifndef WENGERT_NN_LAYER_NORM_H_
#define WENGERT_NN_LAYER_NORM_H_

#include <cstdint>

#include "autograd/ops.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

struct LayerNormOptions {
  bool weight = true;
  bool bias = true;
};

// y = (x - mean) / sqrt(variance + eps) * weight + bias over the last axis;
// x [..., width] -> [..., width] (Ba, Kiros, Hinton 2016).
// Parameters "weight" [width], ones, and "bias" [width], zeros.
class LayerNorm {
 public:
  LayerNorm(Params p, int64_t width, double eps = 1e-5,
            LayerNormOptions options = {})
      : eps_(eps), path_(p.layer_path()) {
    if (options.weight) weight_ = p.Ones("weight", {width});
    if (options.bias) bias_ = p.Zeros("bias", {width});
  }

  Tensor operator()(const Tensor& x) const {
    const auto scope = path_.Open();
    return path_.Out(wengert::LayerNorm(x, weight_, bias_, eps_));
  }

 private:
  Tensor weight_, bias_;
  double eps_;
  LayerPath path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_LAYER_NORM_H_
