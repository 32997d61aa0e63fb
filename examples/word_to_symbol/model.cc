#include "examples/word_to_symbol/model.h"

#include "examples/word_to_symbol/beam_search.h"

namespace wengert {

Seq2Seq::Seq2Seq(nn::Params p, const ModelOptions& o)
    : n_symbols_(o.n_symbols),
      max_symbols_(o.max_symbols),
      words_(p.Sub("words"), o.n_words, o.d_model),
      symbols_(p.Sub("symbols"), o.n_symbols + 2, o.d_model),
      word_positions_(p.Sub("word_positions"), o.max_length, o.d_model,
                      o.dropout),
      // The end takes a place too.
      symbol_positions_(p.Sub("symbol_positions"), o.max_symbols + 1, o.d_model,
                        o.dropout),
      transformer_(p.Sub("transformer"), {.n_encoder_layers = o.n_layers,
                                          .n_decoder_layers = o.n_layers,
                                          .layer = {.d_model = o.d_model,
                                                    .n_heads = o.n_heads,
                                                    .hidden = o.hidden,
                                                    .dropout = o.dropout}}),
      head_(p.Sub("head"), o.d_model, o.n_symbols + 1) {}

Tensor Seq2Seq::Memory(const Tensor& words, const Tensor& key_mask) const {
  return transformer_.encoder()(word_positions_(words_(words)),
                                {.key_mask = key_mask});
}

Tensor Seq2Seq::operator()(const Tensor& words, const Tensor& key_mask,
                           const Tensor& symbols) const {
  return head_(transformer_(word_positions_(words_(words)),
                            symbol_positions_(symbols_(symbols)),
                            {.memory_key_mask = key_mask}));
}

std::vector<int64_t> Seq2Seq::Translate(const std::vector<int64_t>& words,
                                        int64_t beam) const {
  const auto n_words = static_cast<int64_t>(words.size());
  const nn::Decoder& decoder = transformer_.decoder();
  nn::DecoderCache cache =
      decoder.Start(Memory(Tensor::From({1, n_words}, words), {}));
  const auto next = [&](const std::vector<int64_t>& rows,
                        const std::vector<int64_t>& tokens) {
    cache.Select(rows);
    const auto n = static_cast<int64_t>(tokens.size());
    const Tensor x = symbol_positions_(symbols_(Tensor::From({n, 1}, tokens)),
                                       cache.length());
    const Tensor logits = head_(decoder.Step(x, cache));
    return Reshape(LogSoftmax(logits), {n, n_symbols_ + 1});
  };
  return BeamSearch(next, {.beam = beam,
                           .start = start(),
                           .end = end(),
                           .max_length = max_symbols_});
}

std::vector<Tensor> Seq2Seq::Attention(const Tensor& words,
                                       const Tensor& key_mask,
                                       const Tensor& symbols) const {
  return transformer_.decoder()
      .WithWeights(symbol_positions_(symbols_(symbols)),
                   Memory(words, key_mask), {.memory_key_mask = key_mask})
      .weights;
}

}  // namespace wengert
