#include "nn/encoder_layer.h"

#include "absl/strings/str_cat.h"
#include "autograd/error.h"

namespace wengert::nn {

const EncoderOptions& Checked(const char* op, const EncoderOptions& o) {
  if (o.d_model < 1 || o.n_heads < 1 || o.d_model % o.n_heads != 0 ||
      o.hidden < 1 || !(o.dropout >= 0 && o.dropout <= 1)) {
    throw Error(absl::StrCat(
        op, ": d_model ", o.d_model, ", n_heads ", o.n_heads, ", hidden ",
        o.hidden, ", dropout ", o.dropout,
        "; wanted sizes of 1 or more, n_heads that divides d_model, and "
        "dropout in [0, 1]"));
  }
  return o;
}

void CheckLayers(const char* op, int64_t n_layers) {
  if (n_layers >= 0) return;
  throw Error(absl::StrCat(op, ": n_layers ", n_layers, "; wanted 0 or more"));
}

EncoderLayer::EncoderLayer(Params p, const EncoderOptions& o)
    : attention_(p.Sub("self_attn"), Checked("EncoderLayer", o).d_model,
                 o.n_heads, {.dropout = o.dropout}),
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

Tensor EncoderLayer::Step(const Tensor& x, KeyValueCache& cache,
                          const AttentionOptions& options) const {
  const auto scope = path_.Open();
  return Finish(x, attention_.Step(AttentionInput(x), cache, options));
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
  if (norm_ == Norm::kPre) {
    return path_.Out(sum + dropout_(mlp_(norm2_(sum))));
  }
  const Tensor y = norm1_(sum);
  return path_.Out(norm2_(y + dropout_(mlp_(y))));
}

}  // namespace wengert::nn
