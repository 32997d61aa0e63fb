// A transformer encoder: a stack of encoder layers.
#ifndef WENGERT_NN_ENCODER_H_
#define WENGERT_NN_ENCODER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/ops.h"
#include "nn/encoder_layer.h"
#include "nn/layer_norm.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

struct EncoderResult {
  Tensor out;                   // [B, T, d_model]
  std::vector<Tensor> weights;  // of each layer, [B, H, T, T], before dropout
};

// x [B, T, d_model] -> the same shape. Parameters "layers.0.*", "layers.1.*",
// ... as in PyTorch's nn.TransformerEncoder, and with Norm::kPre a last norm
// "norm.*", since the residual sum leaves the layers unnormalised there.
class Encoder {
 public:
  Encoder(Params p, int64_t n_layers, const EncoderOptions& options) {
    if (n_layers < 0) {
      throw Error(
          absl::StrCat("Encoder: n_layers ", n_layers, "; wanted 0 or more"));
    }
    for (int64_t i = 0; i < n_layers; ++i) {
      layers_.emplace_back(p.Sub("layers").Sub(i), options);
    }
    if (options.norm == Norm::kPre) {
      norm_.emplace(p.Sub("norm"), options.d_model, options.eps);
    }
  }

  // `options` reach every attention: key_mask [B, T], causal, ...
  Tensor operator()(Tensor x, const AttentionOptions& options = {}) const {
    for (const EncoderLayer& layer : layers_) x = layer(x, options);
    return norm_ ? (*norm_)(x) : x;
  }

  EncoderResult WithWeights(Tensor x,
                            const AttentionOptions& options = {}) const {
    std::vector<Tensor> weights;
    for (const EncoderLayer& layer : layers_) {
      AttentionResult result = layer.WithWeights(x, options);
      x = result.out;
      weights.push_back(result.weights);
    }
    return {norm_ ? (*norm_)(x) : x, weights};
  }

 private:
  std::vector<EncoderLayer> layers_;
  std::optional<LayerNorm> norm_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_ENCODER_H_
