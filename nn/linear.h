// The affine map that most layers are made of.
#ifndef WENGERT_NN_LINEAR_H_
#define WENGERT_NN_LINEAR_H_

#include <cmath>
#include <cstdint>

#include "autograd/ops.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

struct LinearOptions {
  bool bias = true;
};

// y = x Wᵀ + b; x [..., in] -> y [..., out].
// Parameters "weight" [out, in] and "bias" [out], both uniform in
// [-1/sqrt(in), 1/sqrt(in)), as PyTorch's nn.Linear starts.
class Linear {
 public:
  Linear(Params p, int64_t in, int64_t out, LinearOptions options = {})
      : weight_(p.Uniform("weight", {out, in}, Bound(in))),
        path_(p.layer_path()) {
    if (options.bias) bias_ = p.Uniform("bias", {out}, Bound(in));
  }

  Tensor operator()(const Tensor& x) const {
    const auto scope = path_.Open();
    return path_.Out(wengert::Linear(x, weight_, bias_));
  }

  // f(x) Wᵀ + b, which keeps no f(x) for backward.
  Tensor Activated(Activation f, const Tensor& x) const {
    const auto scope = path_.Open();
    return path_.Out(ActivatedLinear(f, x, weight_, bias_));
  }

  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  // undefined without one

 private:
  static double Bound(int64_t in) {
    return in > 0 ? 1 / std::sqrt(static_cast<double>(in)) : 0;
  }

  Tensor weight_, bias_;
  LayerPath path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_LINEAR_H_
