#include "nn/encoder_layer.h"

#include "absl/strings/str_cat.h"
#include "autograd/error.h"

namespace wengert::nn {
namespace {

// Throws before the first parameter is made, so that no half of a layer stays.
const EncoderOptions& Checked(const EncoderOptions& o) {
  if (o.d_model < 1 || o.n_heads < 1 || o.d_model % o.n_heads != 0 ||
      o.hidden < 1 || !(o.dropout >= 0 && o.dropout <= 1)) {
    throw Error(absl::StrCat(
        "EncoderLayer: d_model ", o.d_model, ", n_heads ", o.n_heads,
        ", hidden ", o.hidden, ", dropout ", o.dropout,
        "; wanted sizes of 1 or more, n_heads that divides d_model, and "
        "dropout in [0, 1]"));
  }
  return o;
}

}  // namespace

EncoderLayer::EncoderLayer(Params p, const EncoderOptions& o)
    : attention_(p.Sub("self_attn"), Checked(o).d_model, o.n_heads,
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
