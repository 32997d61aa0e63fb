#include "nn/encoder_layer.h"

namespace wengert::nn {

EncoderLayer::EncoderLayer(Params p, const EncoderOptions& o)
    : attention_(p.Sub("self_attn"), o.d_model, o.n_heads,
                 {.dropout = o.dropout}),
      mlp_(p, o.d_model, o.hidden,
           {.activation = o.activation,
            .dropout = o.dropout,
            .up = "linear1",
            .down = "linear2"}),
      norm1_(p.Sub("norm1"), o.d_model, o.eps),
      norm2_(p.Sub("norm2"), o.d_model, o.eps),
      dropout_(o.dropout),
      norm_(o.norm),
      path_(p.layer_path()) {}

Tensor EncoderLayer::operator()(const Tensor& x,
                                const AttentionOptions& options) const {
  const auto scope = path_.Open();
  return Finish(x, attention_(AttentionInput(x), options));
}

AttentionResult EncoderLayer::WithWeights(
    const Tensor& x, const AttentionOptions& options) const {
  const auto scope = path_.Open();
  const auto [attended, weights] =
      attention_.WithWeights(AttentionInput(x), options);
  return {Finish(x, attended), weights};
}

Tensor EncoderLayer::AttentionInput(const Tensor& x) const {
  return norm_ == Norm::kPre ? norm1_(x) : x;
}

// What follows the attention: its residual sum, and the network.
Tensor EncoderLayer::Finish(const Tensor& x, const Tensor& attended) const {
  const Tensor sum = x + dropout_(attended);
  if (norm_ == Norm::kPre) return sum + dropout_(mlp_(norm2_(sum)));
  const Tensor y = norm1_(sum);
  return norm2_(y + dropout_(mlp_(y)));
}

}  // namespace wengert::nn
