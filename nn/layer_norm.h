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

// y = (x - mean) / sqrt(variance + eps) * weight + bias over the last axes,
// whose shape is `shape`; x [..., shape] -> the same (Ba, Kiros, Hinton 2016).
// Parameters "weight" [shape], ones, and "bias" [shape], zeros.
class LayerNorm {
 public:
  LayerNorm(Params p, const Shape& shape, double eps = 1e-5,
            LayerNormOptions options = {})
      : eps_(eps), path_(p.layer_path()) {
    if (options.weight) weight_ = p.Ones("weight", shape);
    if (options.bias) bias_ = p.Zeros("bias", shape);
    // A constant says which axes where no parameter does.
    if (!weight_.defined() && !bias_.defined()) {
      weight_ = Tensor::Ones(shape, p.dtype());
    }
  }
  LayerNorm(Params p, int64_t width, double eps = 1e-5,
            LayerNormOptions options = {})
      : LayerNorm(p, Shape{width}, eps, options) {}

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
