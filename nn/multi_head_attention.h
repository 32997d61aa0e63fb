// Attention in several heads, each of which compares and mixes the positions of
// a sequence in a subspace of its own (Vaswani et al. 2017).
#ifndef WENGERT_NN_MULTI_HEAD_ATTENTION_H_
#define WENGERT_NN_MULTI_HEAD_ATTENTION_H_

#include <array>
#include <cstdint>
#include <optional>

#include "autograd/ops.h"
#include "nn/key_value_cache.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

struct MultiHeadAttentionOptions {
  int64_t n_kv_heads = 0;  // 0 means n_heads; fewer are shared by the queries
  int64_t d_key = 0;       // width D of a head; 0 means d_model / n_heads
  double dropout = 0;      // of the weights; for calls that do not give one
  bool bias = true;
  // Turns queries and keys by their positions (RoFormer, Su et al. 2021).
  std::optional<RotaryOptions> rotary = {};
};

// C = d_model, H query heads and Hkv key and value heads of width D.
// Names, layouts and start are those of PyTorch's nn.MultiheadAttention with
// batch_first: "in_proj_weight" [(H + 2 Hkv) D, C] (its rows: all query heads,
// all key heads, all value heads), uniform in ±sqrt(6 / (rows + C)),
// "in_proj_bias", zeros, "out_proj.weight" [C, H D], uniform in ±1/sqrt(H D),
// and "out_proj.bias", zeros.
class MultiHeadAttention {
 public:
  MultiHeadAttention(Params p, int64_t d_model, int64_t n_heads,
                     MultiHeadAttentionOptions options = {});

  // Self-attention: x [B, T, C] -> [B, T, C].
  Tensor operator()(const Tensor& x,
                    const AttentionOptions& options = {}) const;
  // Cross-attention: query [B, Tq, C], memory [B, Tk, C] -> [B, Tq, C].
  Tensor operator()(const Tensor& query, const Tensor& memory,
                    const AttentionOptions& options = {}) const;
  // The same with the weights [B, H, Tq, Tk] of each head, before dropout.
  AttentionResult WithWeights(const Tensor& x,
                              const AttentionOptions& options = {}) const;
  AttentionResult WithWeights(const Tensor& query, const Tensor& memory,
                              const AttentionOptions& options = {}) const;

  // Self-attention token by token: x [B, T, C] holds the positions behind those
  // in `cache`, which gains them -> [B, T, C], the last T rows of operator() on
  // all of them: to the bit, but where D <= 16 and there are more than 16
  // positions, to rounding. Always causal; key_mask and the like are for all
  // keys so far. Throws Error, and leaves the cache, where shapes differ or a
  // tape records.
  Tensor Step(const Tensor& x, KeyValueCache& cache,
              AttentionOptions options = {}) const;
  // Cross-attention to a memory whose keys and values are computed once:
  // Recall(query, Remember(memory)) is operator()(query, memory).
  KeyValueCache Remember(const Tensor& memory) const;
  Tensor Recall(const Tensor& query, const KeyValueCache& memory,
                const AttentionOptions& options = {}) const;

 private:
  AttentionOptions Complete(AttentionOptions options) const;
  void Check(const char* name, const Tensor& x) const;
  // Of rows that begin at a position, which rotary turns by.
  std::array<Tensor, 3> Heads(const Tensor& query, const Tensor& memory,
                              int64_t position = 0) const;
  Tensor Queries(const Tensor& x, int64_t position = 0) const;
  Tensor Keys(const Tensor& x, int64_t position = 0) const;
  Tensor Values(const Tensor& x) const;
  Tensor Project(const Tensor& x, int64_t first_head, int64_t heads) const;
  Tensor Turn(const Tensor& heads, int64_t position) const;
  Tensor Merge(const Tensor& heads) const;

  int64_t d_model_, n_heads_, n_kv_heads_, d_key_;
  double dropout_;
  std::optional<RotaryOptions> rotary_;
  Tensor in_weight_, in_bias_, out_weight_, out_bias_;
  LayerPath path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_MULTI_HEAD_ATTENTION_H_
