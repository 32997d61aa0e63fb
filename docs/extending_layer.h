// The layer that docs/extending.md adds.
#ifndef WENGERT_DOCS_EXTENDING_LAYER_H_
#define WENGERT_DOCS_EXTENDING_LAYER_H_

#include "nn/nn.h"

namespace wengert::nn {

// y = x (1 + g), one trained g for each feature; x [..., width].
class Scale {
 public:
  Scale(Params p, int64_t width)
      : gain_(p.Zeros("gain", {width})), path_(p.layer_path()) {}

  Tensor operator()(const Tensor& x) const {
    const auto scope = path_.Open();
    return path_.Out(x * (1 + gain_));
  }

 private:
  Tensor gain_;
  LayerPath path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_DOCS_EXTENDING_LAYER_H_
