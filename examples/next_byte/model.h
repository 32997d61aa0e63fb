// A small GPT over bytes: a pre-norm, causal transformer that says which byte
// comes next.
#ifndef WENGERT_EXAMPLES_NEXT_BYTE_MODEL_H_
#define WENGERT_EXAMPLES_NEXT_BYTE_MODEL_H_

#include <cstdint>
#include <numeric>
#include <vector>

#include "nn/nn.h"

namespace wengert {

struct ModelOptions {
  int64_t length = 64;  // bytes that it looks back at most
  int64_t d_model = 64;
  int64_t n_heads = 4;
  int64_t n_layers = 2;
  double dropout = 0;
};

class Model {
 public:
  static constexpr int64_t kBytes = 256;

  Model(nn::Params p, const ModelOptions& o)
      : bytes_(p.Sub("bytes"), kBytes, o.d_model),
        positions_(p.Sub("positions"), o.length, o.d_model),
        encoder_(p.Sub("encoder"), o.n_layers,
                 {.d_model = o.d_model,
                  .n_heads = o.n_heads,
                  .hidden = 4 * o.d_model,
                  .dropout = o.dropout,
                  .activation = Activation::kGeluTanh,
                  .norm = nn::Norm::kPre}),
        head_(p.Sub("head"), o.d_model, kBytes) {}

  // x [B, T] (int64), T <= length -> logits [B, T, 256]
  Tensor operator()(const Tensor& x) const {
    return head_(encoder_(Embedded(x), {.causal = true}));
  }

  // The attention weights of each layer, [B, H, T, T].
  std::vector<Tensor> Attention(const Tensor& x) const {
    return encoder_.WithWeights(Embedded(x), {.causal = true}).weights;
  }

 private:
  Tensor Embedded(const Tensor& x) const {
    Tensor places = Tensor::Empty({x.dim(1)}, DType::kInt64);
    int64_t* const p = places.mutable_data<int64_t>();
    std::iota(p, p + places.size(), int64_t{0});
    return bytes_(x) + positions_(places);
  }

  nn::Embedding bytes_, positions_;
  nn::Encoder encoder_;
  nn::Linear head_;
};

}  // namespace wengert

#endif  // WENGERT_EXAMPLES_NEXT_BYTE_MODEL_H_
