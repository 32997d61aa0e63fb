#include "nn/decoder_layer.h"

namespace wengert::nn {

DecoderLayer::DecoderLayer(Params p, const DecoderOptions& o)
    : self_attention_(p.Sub("self_attn"), Checked("DecoderLayer", o).d_model,
                      o.n_heads, {.dropout = o.dropout}),
      memory_attention_(p.Sub("multihead_attn"), o.d_model, o.n_heads,
                        {.dropout = o.dropout}),
      mlp_(p, o.d_model, o.hidden,
           {.activation = o.activation,
            .dropout = o.dropout,
            .up = "linear1",
            .down = "linear2"}),
      norm1_(p.Sub("norm1"), o.d_model, o.eps),
      norm2_(p.Sub("norm2"), o.d_model, o.eps),
      norm3_(p.Sub("norm3"), o.d_model, o.eps),
      dropout_(o.dropout),
      norm_(o.norm),
      path_(p.layer_path()) {}

// The layer around its two attentions, functions of their queries.
template <class Self, class Memory>
Tensor DecoderLayer::Run(const Tensor& x, Self self, Memory memory) const {
  const auto scope = path_.Open();
  const auto add = [&](const LayerNorm& norm, const Tensor& x, auto branch) {
    if (norm_ == Norm::kPre) return x + dropout_(branch(norm(x)));
    return norm(x + dropout_(branch(x)));
  };
  return path_.Out(
      add(norm3_, add(norm2_, add(norm1_, x, self), memory), mlp_));
}

Tensor DecoderLayer::operator()(const Tensor& x, const Tensor& memory,
                                const DecoderMasks& masks) const {
  return Run(
      x, [&](const Tensor& q) { return self_attention_(q, masks.self()); },
      [&](const Tensor& q) {
        return memory_attention_(q, memory, masks.memory());
      });
}

AttentionResult DecoderLayer::WithWeights(const Tensor& x, const Tensor& memory,
                                          const DecoderMasks& masks) const {
  Tensor weights;
  const Tensor out = Run(
      x, [&](const Tensor& q) { return self_attention_(q, masks.self()); },
      [&](const Tensor& q) {
        auto result = memory_attention_.WithWeights(q, memory, masks.memory());
        weights = result.weights;
        return result.out;
      });
  return {out, weights};
}

Tensor DecoderLayer::Step(const Tensor& x, KeyValueCache& cache,
                          const KeyValueCache& memory,
                          const DecoderMasks& masks) const {
  return Run(
      x,
      [&](const Tensor& q) {
        return self_attention_.Step(q, cache, masks.self());
      },
      [&](const Tensor& q) {
        return memory_attention_.Recall(q, memory, masks.memory());
      });
}

}  // namespace wengert::nn
