// The model of the example: a post-norm transformer encoder that reads a
// sentence of words and names a symbol for each.
#ifndef WENGERT_EXAMPLES_WORD_TO_SYMBOL_MODEL_H_
#define WENGERT_EXAMPLES_WORD_TO_SYMBOL_MODEL_H_

#include <cstdint>
#include <vector>

#include "nn/nn.h"

namespace wengert {

struct ModelOptions {
  int64_t n_words = 0;
  int64_t n_symbols = 0;
  int64_t max_length = 0;
  int64_t d_model = 12;
  int64_t n_heads = 3;
  int64_t n_layers = 1;
  int64_t hidden = 48;
  double dropout = 0;
};

// words [B, T] (int64), key_mask [B, T] (true = a word, false = padding)
// -> logits [B, T, n_symbols].
class Model {
 public:
  Model(nn::Params p, const ModelOptions& o)
      : embedding_(p.Sub("embedding"), o.n_words, o.d_model,
                   {.scale_by_sqrt_dim = true}),
        positions_(p.Sub("positions"), o.max_length, o.d_model, o.dropout),
        encoder_(p.Sub("encoder"), o.n_layers,
                 {.d_model = o.d_model,
                  .n_heads = o.n_heads,
                  .hidden = o.hidden,
                  .dropout = o.dropout}),
        head_(p.Sub("head"), o.d_model, o.n_symbols) {}

  Tensor operator()(const Tensor& words, const Tensor& key_mask) const {
    const Tensor x = positions_(embedding_(words));
    return head_(encoder_(x, {.key_mask = key_mask}));
  }

  // The attention weights of each layer, [B, H, T, T].
  std::vector<Tensor> Attention(const Tensor& words,
                                const Tensor& key_mask) const {
    const Tensor x = positions_(embedding_(words));
    return encoder_.WithWeights(x, {.key_mask = key_mask}).weights;
  }

 private:
  nn::Embedding embedding_;
  nn::PositionalEncoding positions_;
  nn::Encoder encoder_;
  nn::Linear head_;
};

}  // namespace wengert

#endif  // WENGERT_EXAMPLES_WORD_TO_SYMBOL_MODEL_H_
