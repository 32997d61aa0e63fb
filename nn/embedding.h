// A table of trained vectors, one for each word.
#ifndef WENGERT_NN_EMBEDDING_H_
#define WENGERT_NN_EMBEDDING_H_

#include <cstdint>

#include "autograd/ops.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

struct EmbeddingOptions {
  // Multiplies by sqrt(dim), as Vaswani et al. (2017) do before they add
  // positions.
  bool scale_by_sqrt_dim = false;
  // A row that starts at zero and gets no gradient; -1 means none.
  int64_t padding_id = -1;
};

// ids (int32 or int64) [...] -> [..., dim]: rows of the table.
// Parameter "weight" [n, dim], normal (0, 1).
class Embedding {
 public:
  Embedding(Params p, int64_t n, int64_t dim, EmbeddingOptions options = {});

  Tensor operator()(const Tensor& ids) const {
    const auto scope = path_.Open();
    const Tensor y = wengert::Embedding(weight_, ids, padding_id_);
    return path_.Out(scale_ == 1 ? y : y * scale_);
  }

  // For an output layer that shares it: wengert::Linear(x, words.weight()).
  const Tensor& weight() const { return weight_; }

 private:
  int64_t padding_id_;
  double scale_;
  Tensor weight_;
  LayerPath path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_EMBEDDING_H_
