// Fixed waves that tell a transformer where in a sequence a row stands.
#ifndef WENGERT_NN_POSITIONAL_ENCODING_H_
#define WENGERT_NN_POSITIONAL_ENCODING_H_

#include <cstdint>

#include "autograd/ops.h"
#include "nn/dropout.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

// pe[t, 2i] = sin(t / 10000^(2i / d_model)), pe[t, 2i + 1] = cos(the same)
// (Vaswani et al. 2017); [length, d_model]. d_model may be odd.
Tensor SinusoidalPositions(int64_t length, int64_t d_model,
                           DType dtype = DType::kFloat32);

// y = dropout(x + pe[first : first + T]); x [..., T, d_model]. No parameters:
// the table is made again and not saved.
class PositionalEncoding {
 public:
  PositionalEncoding(Params p, int64_t max_length, int64_t d_model,
                     double dropout = 0)
      : positions_(SinusoidalPositions(max_length, d_model, p.dtype())),
        dropout_(dropout),
        path_(p.layer_path()) {}

  // Row 0 of x stands at position `first`, with first + T <= max_length.
  Tensor operator()(const Tensor& x, int64_t first = 0) const;

 private:
  Tensor positions_;  // [max_length, d_model]
  Dropout dropout_;
  LayerPath path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_POSITIONAL_ENCODING_H_
