// A small GPT, for the tests that train a whole model.
#ifndef WENGERT_TRAIN_GPT_TESTLIB_H_
#define WENGERT_TRAIN_GPT_TESTLIB_H_

#include <cstdint>
#include <vector>

#include "autograd/ops.h"
#include "nn/nn.h"

namespace wengert::train {

struct GptOptions {
  int64_t vocabulary = 65;
  int64_t length = 64;
  int64_t d_model = 128;
  int64_t n_heads = 4;
  int64_t n_layers = 2;
  double dropout = 0.1;
};

// ids [B, T] -> logits [B, T, vocabulary]; pre-norm, causal, tied head.
class Gpt {
 public:
  Gpt(nn::Params p, const GptOptions& o)
      : words_(p.Sub("wte"), o.vocabulary, o.d_model),
        positions_(p.Sub("wpe"), o.length, o.d_model),
        encoder_(p.Sub("h"), o.n_layers,
                 {.d_model = o.d_model,
                  .n_heads = o.n_heads,
                  .hidden = 4 * o.d_model,
                  .dropout = o.dropout,
                  .activation = Activation::kGeluTanh,
                  .norm = nn::Norm::kPre}) {
    std::vector<int64_t> places;
    for (int64_t t = 0; t < o.length; ++t) places.push_back(t);
    places_ = Tensor::From({o.length}, places);
  }

  Tensor operator()(const Tensor& ids) const {
    const Tensor x = words_(ids) + positions_(places_);
    return wengert::Linear(encoder_(x, {.causal = true}), words_.weight());
  }

 private:
  nn::Embedding words_, positions_;
  nn::Encoder encoder_;
  Tensor places_;
};

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_GPT_TESTLIB_H_
