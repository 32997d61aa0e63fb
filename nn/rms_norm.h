// Normalisation of each row by its root mean square, as Llama and T5 do.
#ifndef WENGERT_NN_RMS_NORM_H_
#define WENGERT_NN_RMS_NORM_H_

#include <cstdint>
#include <optional>

#include "autograd/ops.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

struct RMSNormOptions {
  // Undefined is the dtype's epsilon, as in PyTorch; Llama and T5 have 1e-6.
  std::optional<double> eps = {};
  bool weight = true;
};

// y = x / sqrt(mean(x²) + eps) * weight over the last axes, whose shape is
// `shape`; x [..., shape] -> the same (Zhang, Sennrich 2019).
// Parameter "weight" [shape], ones.
class RMSNorm {
 public:
  RMSNorm(Params p, const Shape& shape, RMSNormOptions options = {})
      : weight_(options.weight ? p.Ones("weight", shape)
                               : Tensor::Ones(shape, p.dtype())),
        eps_(options.eps),
        path_(p.layer_path()) {}
  RMSNorm(Params p, int64_t width, RMSNormOptions options = {})
      : RMSNorm(p, Shape{width}, options) {}

  Tensor operator()(const Tensor& x) const {
    const auto scope = path_.Open();
    return path_.Out(RmsNorm(x, weight_, eps_));
  }

 private:
  Tensor weight_;  // a constant where it is no parameter, for its shape
  std::optional<double> eps_;
  LayerPath path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_RMS_NORM_H_
