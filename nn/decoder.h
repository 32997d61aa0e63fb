// A transformer decoder: a stack of decoder layers over one memory.
#ifndef WENGERT_NN_DECODER_H_
#define WENGERT_NN_DECODER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "autograd/ops.h"
#include "nn/decoder_layer.h"
#include "nn/encoder.h"
#include "nn/key_value_cache.h"
#include "nn/layer_norm.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

// What step-by-step decoding keeps of each layer.
struct DecoderCache {
  std::vector<KeyValueCache> self;    // grows by what Step was given
  std::vector<KeyValueCache> memory;  // computed once

  // Positions so far.
  int64_t length() const { return self.empty() ? 0 : self[0].length(); }
  // Sequence i becomes a copy of sequence rows[i], for beam search; before the
  // first Step only the memory has any.
  void Select(absl::Span<const int64_t> rows) {
    if (length() > 0) {
      for (KeyValueCache& cache : self) cache.Select(rows);
    }
    for (KeyValueCache& cache : memory) cache.Select(rows);
  }
};

// x [B, T, d_model], memory [B, Tm, d_model] -> x's shape. Parameters
// "layers.0.*", "layers.1.*", ... as in PyTorch's nn.TransformerDecoder, and a
// last norm "norm.*" where an Encoder of these options has one.
class Decoder {
 public:
  Decoder(Params p, int64_t n_layers, const DecoderOptions& options)
      : path_(p.layer_path()) {
    CheckLayers("Decoder", n_layers);
    for (int64_t i = 0; i < n_layers; ++i) {
      layers_.emplace_back(p.Sub("layers").Sub(i), options);
    }
    if (options.norm == Norm::kPre || options.last_norm) {
      norm_.emplace(p.Sub("norm"), options.d_model, options.eps);
    }
  }

  Tensor operator()(Tensor x, const Tensor& memory,
                    const DecoderMasks& masks = {}) const {
    const auto scope = path_.Open();
    for (const DecoderLayer& layer : layers_) x = layer(x, memory, masks);
    return Finish(x);
  }
  // With each layer's weights on the memory, [B, H, T, Tm], before dropout.
  EncoderResult WithWeights(Tensor x, const Tensor& memory,
                            const DecoderMasks& masks = {}) const {
    const auto scope = path_.Open();
    std::vector<Tensor> weights;
    for (const DecoderLayer& layer : layers_) {
      AttentionResult result = layer.WithWeights(x, memory, masks);
      x = result.out;
      weights.push_back(result.weights);
    }
    return {Finish(x), weights};
  }

  // A cache for Step, with the memory's keys and values.
  DecoderCache Start(const Tensor& memory) const {
    const auto scope = path_.Open();
    DecoderCache cache;
    cache.self.resize(layers_.size());
    for (const DecoderLayer& layer : layers_) {
      cache.memory.push_back(layer.Remember(memory));
    }
    return cache;
  }
  // x [B, T, d_model] holds the positions behind those in `cache`, which gains
  // them -> the last T rows of operator() on all of them; see
  // MultiHeadAttention::Step. Always causal; masks are for all positions so
  // far. Throws Error, and leaves the cache, where shapes differ or a tape
  // records.
  Tensor Step(Tensor x, DecoderCache& cache,
              const DecoderMasks& masks = {}) const {
    CheckCaches("Decoder::Step", cache.self.size(), layers_.size());
    CheckCaches("Decoder::Step", cache.memory.size(), layers_.size());
    const auto scope = path_.Open();
    return StepOrRestore(absl::MakeSpan(cache.self), [&] {
      for (size_t i = 0; i < layers_.size(); ++i) {
        x = layers_[i].Step(x, cache.self[i], cache.memory[i], masks);
      }
      return Finish(x);
    });
  }

 private:
  Tensor Finish(const Tensor& x) const {
    return path_.Out(norm_ ? (*norm_)(x) : x);
  }

  std::vector<DecoderLayer> layers_;
  std::optional<LayerNorm> norm_;
  LayerPath path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_DECODER_H_
