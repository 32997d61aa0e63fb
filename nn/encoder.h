// A transformer encoder: a stack of encoder layers.
#ifndef WENGERT_NN_ENCODER_H_
#define WENGERT_NN_ENCODER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "autograd/ops.h"
#include "nn/encoder_layer.h"
#include "nn/key_value_cache.h"
#include "nn/layer_norm.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

struct EncoderResult {
  Tensor out;                   // [B, T, d_model]
  std::vector<Tensor> weights;  // of each layer, [B, H, T, T], before dropout
};

// x [B, T, d_model] -> the same shape. Parameters "layers.0.*", "layers.1.*",
// ... as in PyTorch's nn.TransformerEncoder, and with Norm::kPre, or where
// asked for, a last norm "norm.*": with kPre the residual sum leaves the layers
// unnormalised.
class Encoder {
 public:
  Encoder(Params p, int64_t n_layers, const EncoderOptions& options)
      : path_(p.layer_path()) {
    CheckLayers("Encoder", n_layers);
    for (int64_t i = 0; i < n_layers; ++i) {
      layers_.emplace_back(p.Sub("layers").Sub(i), options);
    }
    if (options.norm == Norm::kPre || options.last_norm) {
      norm_.emplace(p.Sub("norm"), options.d_model, options.eps);
    }
  }

  // `options` reach every attention: key_mask [B, T], causal, ...
  Tensor operator()(Tensor x, const AttentionOptions& options = {}) const {
    const auto scope = path_.Open();
    for (const EncoderLayer& layer : layers_) x = layer(x, options);
    return Finish(x);
  }

  EncoderResult WithWeights(Tensor x,
                            const AttentionOptions& options = {}) const {
    const auto scope = path_.Open();
    std::vector<Tensor> weights;
    for (const EncoderLayer& layer : layers_) {
      AttentionResult result = layer.WithWeights(x, options);
      x = result.out;
      weights.push_back(result.weights);
    }
    return {Finish(x), weights};
  }

  // Caches for Step, one for each layer.
  std::vector<KeyValueCache> Start() const {
    return std::vector<KeyValueCache>(layers_.size());
  }
  // A decoder-only model (GPT) token by token: x [B, T, d_model] holds the
  // positions behind those in `caches`, which gain them -> the last T rows of
  // operator() with `causal` on all of them; see MultiHeadAttention::Step.
  // Throws Error, and leaves the caches, where shapes differ or a tape records.
  Tensor Step(Tensor x, std::vector<KeyValueCache>& caches,
              const AttentionOptions& options = {}) const {
    CheckCaches("Encoder::Step", caches.size(), layers_.size());
    const auto scope = path_.Open();
    return StepOrRestore(absl::MakeSpan(caches), [&] {
      for (size_t i = 0; i < layers_.size(); ++i) {
        x = layers_[i].Step(x, caches[i], options);
      }
      return Finish(x);
    });
  }

 private:
  Tensor Finish(const Tensor& x) const {
    return path_.Out(norm_ ? (*norm_)(x) : x);
  }

  std::vector<EncoderLayer> layers_;
  std::optional<LayerNorm> norm_;
  LayerPath path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_ENCODER_H_
