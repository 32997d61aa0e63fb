// A trained vector for each place of a sequence, as in BERT and GPT-2.
#ifndef WENGERT_NN_LEARNED_POSITIONS_H_
#define WENGERT_NN_LEARNED_POSITIONS_H_

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/ops.h"
#include "nn/dropout.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

struct LearnedPositionsOptions {
  double dropout = 0;  // of the sum
  double stddev = 0.02;
};

// y = dropout(x + weight[offset : offset + T]); x [..., T, d_model] with
// offset + T <= max_length. Parameter "weight" [max_length, d_model], normal
// (0, stddev).
class LearnedPositions {
 public:
  LearnedPositions(Params p, int64_t max_length, int64_t d_model,
                   LearnedPositionsOptions options = {})
      : weight_(p.Normal("weight", {max_length, d_model}, options.stddev)),
        dropout_(options.dropout),
        path_(p.layer_path()) {}

  // `offset` is the position of the first row.
  Tensor operator()(const Tensor& x, int64_t offset = 0) const {
    const auto scope = path_.Open();
    const int64_t max_length = weight_.dim(0), d_model = weight_.dim(1);
    if (x.rank() < 2 || x.dim(-1) != d_model || offset < 0 ||
        x.dim(-2) > max_length - offset) {
      throw Error(absl::StrCat("nn::LearnedPositions: x ", Describe(x),
                               ", offset ", offset, "; wanted [..., T, ",
                               d_model, "] with offset + T at most ",
                               max_length));
    }
    return path_.Out(dropout_(x + Slice(weight_, 0, offset, x.dim(-2))));
  }

 private:
  Tensor weight_;
  Dropout dropout_;
  LayerPath path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_LEARNED_POSITIONS_H_
