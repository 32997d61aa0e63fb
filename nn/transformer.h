// The encoder-decoder transformer of Vaswani et al. (2017): an encoder reads a
// source, a decoder makes a target that attends to it.
#ifndef WENGERT_NN_TRANSFORMER_H_
#define WENGERT_NN_TRANSFORMER_H_

#include <cstdint>

#include "nn/decoder.h"
#include "nn/encoder.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

struct TransformerOptions {
  int64_t n_encoder_layers = 6;
  int64_t n_decoder_layers = 6;
  EncoderOptions layer = {};  // of both; the encoder and the decoder each end
                              // in a norm, as PyTorch's do
};

// source [B, Ts, d_model] and target [B, T, d_model], embedded, -> target's
// shape. Parameters "encoder.*" and "decoder.*", as in PyTorch's
// nn.Transformer, each layer started as it starts alone.
class Transformer {
 public:
  Transformer(Params p, TransformerOptions o)
      : encoder_(p.Sub("encoder"), o.n_encoder_layers, WithNorm(o.layer)),
        decoder_(p.Sub("decoder"), o.n_decoder_layers, WithNorm(o.layer)),
        path_(p.layer_path()) {}

  // masks.memory_key_mask hides the source's padding from both.
  Tensor operator()(const Tensor& source, const Tensor& target,
                    const DecoderMasks& masks = {}) const {
    const auto scope = path_.Open();
    const Tensor memory = encoder_(source, {.key_mask = masks.memory_key_mask});
    return path_.Out(decoder_(target, memory, masks));
  }

  // For step-by-step decoding: decoder().Start(encoder()(source)).
  const Encoder& encoder() const { return encoder_; }
  const Decoder& decoder() const { return decoder_; }

 private:
  static EncoderOptions WithNorm(EncoderOptions options) {
    options.last_norm = true;
    return options;
  }

  Encoder encoder_;
  Decoder decoder_;
  LayerPath path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_TRANSFORMER_H_
