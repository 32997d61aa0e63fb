// The two-layer network that a transformer applies to each position.
#ifndef WENGERT_NN_MLP_H_
#define WENGERT_NN_MLP_H_

#include <cstdint>

#include "autograd/ops.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

struct MLPOptions {
  Activation activation = Activation::kGelu;
  double dropout = 0;  // of the hidden values
  bool bias = true;
  // What the weights to be loaded call the two maps.
  const char* up = "up";
  const char* down = "down";
};

// y = down(dropout(f(up(x)))); x [..., d_model] -> [..., d_model].
// Parameters "up.weight" [hidden, d_model], "down.weight" [d_model, hidden] and
// their biases.
class MLP {
 public:
  MLP(Params p, int64_t d_model, int64_t hidden, MLPOptions options = {})
      : up_(p.Sub(options.up), d_model, hidden, {.bias = options.bias}),
        down_(p.Sub(options.down), hidden, d_model, {.bias = options.bias}),
        activation_(options.activation),
        dropout_(options.dropout),
        path_(p.layer_path()) {}

  Tensor operator()(const Tensor& x) const {
    const auto scope = path_.Open();
    if (dropout_.p() == 0) {
      return path_.Out(down_.Activated(activation_, up_(x)));
    }
    return path_.Out(down_(dropout_(Activate(activation_, up_(x)))));
  }

 private:
  Linear up_, down_;
  Activation activation_;
  Dropout dropout_;
  LayerPath path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_MLP_H_
