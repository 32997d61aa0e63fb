// Normalisation over groups of channels, which needs no statistics of a batch.
#ifndef WENGERT_NN_GROUP_NORM_H_
#define WENGERT_NN_GROUP_NORM_H_

#include <cstdint>

#include "autograd/ops.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

struct GroupNormOptions {
  bool weight = true;
  bool bias = true;
};

// y = (x - mean) / sqrt(variance + eps) * weight + bias over each of `groups`
// groups of channels with all places; x [B, channels, ...] -> the same (Wu, He
// 2018). Parameters "weight" [channels], ones, and "bias" [channels], zeros.
class GroupNorm {
 public:
  GroupNorm(Params p, int64_t groups, int64_t channels, double eps = 1e-5,
            GroupNormOptions options = {})
      : groups_(groups), eps_(eps), path_(p.layer_path()) {
    if (options.weight) weight_ = p.Ones("weight", {channels});
    if (options.bias) bias_ = p.Zeros("bias", {channels});
  }

  Tensor operator()(const Tensor& x) const {
    const auto scope = path_.Open();
    return path_.Out(wengert::GroupNorm(x, groups_, weight_, bias_, eps_));
  }

 private:
  int64_t groups_;
  double eps_;
  Tensor weight_, bias_;
  LayerPath path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_GROUP_NORM_H_
