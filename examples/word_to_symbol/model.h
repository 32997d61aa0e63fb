// The models of the example: a post-norm transformer encoder that reads a
// sentence of words and names a symbol for each, and an encoder-decoder that
// reads the sentence and then writes its symbols one by one.
#ifndef WENGERT_EXAMPLES_WORD_TO_SYMBOL_MODEL_H_
#define WENGERT_EXAMPLES_WORD_TO_SYMBOL_MODEL_H_

#include <cstdint>
#include <vector>

#include "nn/nn.h"

namespace wengert {

struct ModelOptions {
  int64_t n_words = 0;
  int64_t n_symbols = 0;
  int64_t max_length = 0;  // of a sentence in words
  int64_t max_symbols = 0;
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

// Its embeddings have no factor sqrt(d_model): rows that start as normal (0, 1)
// would drown the positions, by which a symbol finds its word, and the model
// would learn the sentences that it is shown by heart.
// Symbol ids are followed by two tokens: one that ends a translation and one
// that starts it.
class Seq2Seq {
 public:
  Seq2Seq(nn::Params p, const ModelOptions& o);

  int64_t end() const { return n_symbols_; }
  int64_t start() const { return end() + 1; }

  // words [B, Ts] and key_mask as above, symbols [B, T] so far, the start first
  // -> logits of the next ones, [B, T, n_symbols + 1].
  Tensor operator()(const Tensor& words, const Tensor& key_mask,
                    const Tensor& symbols) const;
  // The most probable translation that beam search finds; a beam of 1 is
  // greedy. Ends at max_symbols.
  std::vector<int64_t> Translate(const std::vector<int64_t>& words,
                                 int64_t beam) const;
  // What each layer of the decoder sees of the words, [B, H, T, Ts].
  std::vector<Tensor> Attention(const Tensor& words, const Tensor& key_mask,
                                const Tensor& symbols) const;

 private:
  Tensor Memory(const Tensor& words, const Tensor& key_mask) const;

  int64_t n_symbols_, max_symbols_;
  nn::Embedding words_, symbols_;
  nn::PositionalEncoding word_positions_, symbol_positions_;
  nn::Transformer transformer_;
  nn::Linear head_;
};

}  // namespace wengert

#endif  // WENGERT_EXAMPLES_WORD_TO_SYMBOL_MODEL_H_
