// The gated network that Llama and T5 1.1 apply to each position.
#ifndef WENGERT_NN_GATED_MLP_H_
#define WENGERT_NN_GATED_MLP_H_

#include <cstdint>

#include "autograd/ops.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

struct GatedMLPOptions {
  Activation activation = Activation::kSilu;  // SwiGLU; with kGelu, GeGLU
  double dropout = 0;                         // of the hidden values
  bool bias = false;
  // What the weights to be loaded call the three maps.
  const char* gate = "gate_proj";
  const char* up = "up_proj";
  const char* down = "down_proj";
};

// y = down(dropout(f(gate(x)) up(x))); x [..., d_model] -> [..., d_model]
// (Shazeer 2020). Parameters "gate_proj.weight" and "up_proj.weight" [hidden,
// d_model], "down_proj.weight" [d_model, hidden], and biases if wanted.
class GatedMLP {
 public:
  GatedMLP(Params p, int64_t d_model, int64_t hidden,
           GatedMLPOptions options = {})
      : gate_(p.Sub(options.gate), d_model, hidden, {.bias = options.bias}),
        up_(p.Sub(options.up), d_model, hidden, {.bias = options.bias}),
        down_(p.Sub(options.down), hidden, d_model, {.bias = options.bias}),
        activation_(options.activation),
        dropout_(options.dropout),
        path_(p.layer_path()) {}

  Tensor operator()(const Tensor& x) const {
    const auto scope = path_.Open();
    const Tensor gate = Activate(activation_, gate_(x));
    return path_.Out(down_(dropout_(gate * up_(x))));
  }

 private:
  Linear gate_, up_, down_;
  Activation activation_;
  Dropout dropout_;
  LayerPath path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_GATED_MLP_H_
