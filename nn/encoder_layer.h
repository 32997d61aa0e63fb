// One layer of a transformer encoder: attention between the positions, then a
// network on each of them, both inside a residual.
#ifndef WENGERT_NN_ENCODER_LAYER_H_
#define WENGERT_NN_ENCODER_LAYER_H_

#include <cstdint>

#include "autograd/ops.h"
#include "nn/dropout.h"
#include "nn/key_value_cache.h"
#include "nn/layer_norm.h"
#include "nn/mlp.h"
#include "nn/multi_head_attention.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

// Where the norms stand: behind each residual sum, or before each branch.
enum class Norm { kPost, kPre };

struct EncoderOptions {
  int64_t d_model = 0;
  int64_t n_heads = 0;
  int64_t hidden = 0;  // width of the network inside
  double dropout = 0;  // of attention weights, hidden values and both branches
  Activation activation = Activation::kRelu;
  Norm norm = Norm::kPost;
  double eps = 1e-5;
  // Whether a norm stands behind the last layer with kPost too, as in PyTorch's
  // nn.Transformer. With kPre there always is one.
  bool last_norm = false;
};
// Throws Error, which starts with `op`, unless the options fit each other. A
// layer asks before it makes its first parameter, so that no half of it stays.
const EncoderOptions& Checked(const char* op, const EncoderOptions& options);
// Throws unless n_layers >= 0.
void CheckLayers(const char* op, int64_t n_layers);

// kPost (Vaswani et al. 2017):     x = norm1(x + attention(x))
//                                  x = norm2(x + mlp(x))
// kPre (Xiong et al. 2020):        x = x + attention(norm1(x))
//                                  x = x + mlp(norm2(x))
// x [B, T, d_model] -> the same shape. Names and layouts are those of PyTorch's
// nn.TransformerEncoderLayer, so that weights cross over: "self_attn.*",
// "linear1.*" and "linear2.*" (the MLP's two maps), "norm1.*", "norm2.*".
class EncoderLayer {
 public:
  EncoderLayer(Params p, const EncoderOptions& options);

  // `options` reach the attention: key_mask [B, T], causal, ...
  Tensor operator()(const Tensor& x,
                    const AttentionOptions& options = {}) const;
  // The same with the attention's weights [B, H, T, T], before dropout.
  AttentionResult WithWeights(const Tensor& x,
                              const AttentionOptions& options = {}) const;
  // The next positions x [B, T, d_model], behind those in `cache`, which gains
  // them; see MultiHeadAttention::Step.
  Tensor Step(const Tensor& x, KeyValueCache& cache,
              const AttentionOptions& options = {}) const;

 private:
  Tensor AttentionInput(const Tensor& x) const;
  Tensor Finish(const Tensor& x, const Tensor& attended) const;

  MultiHeadAttention attention_;
  MLP mlp_;
  LayerNorm norm1_, norm2_;
  Dropout dropout_;
  Norm norm_;
  LayerPath path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_ENCODER_LAYER_H_
