// One layer of a transformer decoder: attention between the positions, then
// attention to a memory such as an encoder's result, then a network on each
// position, all inside a residual.
#ifndef WENGERT_NN_DECODER_LAYER_H_
#define WENGERT_NN_DECODER_LAYER_H_

#include "autograd/ops.h"
#include "nn/dropout.h"
#include "nn/encoder_layer.h"
#include "nn/key_value_cache.h"
#include "nn/layer_norm.h"
#include "nn/mlp.h"
#include "nn/multi_head_attention.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

using DecoderOptions = EncoderOptions;

// What the positions of a decoder may see. Masks are true where they attend.
struct DecoderMasks {
  // Only themselves and earlier positions. Unlike PyTorch's, a decoder is
  // causal unless it is told otherwise.
  bool causal = true;
  Tensor key_mask = {};         // [B, T]
  Tensor mask = {};             // broadcasts to [B, H, T, T]
  Tensor memory_key_mask = {};  // [B, Tm]
  Tensor memory_mask = {};      // broadcasts to [B, H, T, Tm]

  AttentionOptions self() const {
    return {.causal = causal, .key_mask = key_mask, .mask = mask};
  }
  AttentionOptions memory() const {
    return {.key_mask = memory_key_mask, .mask = memory_mask};
  }
};

// kPost (Vaswani et al. 2017):     x = norm1(x + attention(x))
//                                  x = norm2(x + attention(x, memory))
//                                  x = norm3(x + mlp(x))
// kPre (Xiong et al. 2020):        x = x + attention(norm1(x)), and so on
// x [B, T, d_model], memory [B, Tm, d_model] -> x's shape. Names and layouts
// are those of PyTorch's nn.TransformerDecoderLayer: "self_attn.*",
// "multihead_attn.*" (to the memory), "linear1.*", "linear2.*", "norm1.*",
// "norm2.*", "norm3.*".
class DecoderLayer {
 public:
  DecoderLayer(Params p, const DecoderOptions& options);

  Tensor operator()(const Tensor& x, const Tensor& memory,
                    const DecoderMasks& masks = {}) const;
  // With the memory's attention weights [B, H, T, Tm], before dropout.
  AttentionResult WithWeights(const Tensor& x, const Tensor& memory,
                              const DecoderMasks& masks = {}) const;

  // The keys and values of a memory, for Step.
  KeyValueCache Remember(const Tensor& memory) const {
    return memory_attention_.Remember(memory);
  }
  // The next positions x [B, T, d_model], behind those in `cache`, which gains
  // them; see MultiHeadAttention::Step.
  Tensor Step(const Tensor& x, KeyValueCache& cache,
              const KeyValueCache& memory,
              const DecoderMasks& masks = {}) const;

 private:
  template <class Self, class Memory>
  Tensor Run(const Tensor& x, Self self, Memory memory) const;

  MultiHeadAttention self_attention_, memory_attention_;
  MLP mlp_;
  LayerNorm norm1_, norm2_, norm3_;
  Dropout dropout_;
  Norm norm_;
  LayerPath path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_DECODER_LAYER_H_
