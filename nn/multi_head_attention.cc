#include "nn/multi_head_attention.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"

namespace wengert::nn {
namespace {

// n / by, or an Error unless it is whole.
int64_t Divide(const char* what, int64_t n, const char* by_what, int64_t by) {
  if (n <= 0 || by <= 0 || n % by != 0) {
    throw Error(absl::StrCat("nn::MultiHeadAttention: ", what, " ", n, ", ",
                             by_what, " ", by, "; wanted a multiple"));
  }
  return n / by;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(Params p, int64_t d_model,
                                       int64_t n_heads,
                                       MultiHeadAttentionOptions o)
    : d_model_(d_model),
      n_heads_(n_heads),
      n_kv_heads_(o.n_kv_heads ? o.n_kv_heads : n_heads),
      d_key_(o.d_key ? o.d_key
                     : Divide("d_model", d_model, "n_heads", n_heads)),
      dropout_(o.dropout),
      rotary_(o.rotary),
      path_(p.layer_path()) {
  Divide("n_heads", n_heads, "n_kv_heads", n_kv_heads_);
  const int64_t rows = (n_heads + 2 * n_kv_heads_) * d_key_;
  const int64_t inner = n_heads * d_key_;
  const Params out = p.Sub("out_proj");
  in_weight_ = p.Uniform("in_proj_weight", {rows, d_model},
                         std::sqrt(6.0 / static_cast<double>(rows + d_model)));
  if (o.bias) in_bias_ = p.Zeros("in_proj_bias", {rows});
  out_weight_ = out.Uniform("weight", {d_model, inner},
                            1 / std::sqrt(static_cast<double>(inner)));
  if (o.bias) out_bias_ = out.Zeros("bias", {d_model});
}

Tensor MultiHeadAttention::operator()(const Tensor& x,
                                      const AttentionOptions& options) const {
  if (n_kv_heads_ != n_heads_ || rotary_) return (*this)(x, x, options);
  const auto scope = path_.Open();
  Check("x", x);
  // One product for all three, which attention reads in place.
  const Tensor qkv = wengert::Linear(x, in_weight_, in_bias_);
  return Merge(
      PackedAttention(Reshape(qkv, {x.dim(0), x.dim(1), 3, n_heads_, d_key_}),
                      Complete(options)));
}

Tensor MultiHeadAttention::operator()(const Tensor& query, const Tensor& memory,
                                      const AttentionOptions& options) const {
  const auto scope = path_.Open();
  const auto [q, k, v] = Heads(query, memory);
  return Merge(Attention(q, k, v, Complete(options)));
}

AttentionResult MultiHeadAttention::WithWeights(
    const Tensor& x, const AttentionOptions& options) const {
  return WithWeights(x, x, options);
}

AttentionResult MultiHeadAttention::WithWeights(
    const Tensor& query, const Tensor& memory,
    const AttentionOptions& options) const {
  const auto scope = path_.Open();
  const auto [q, k, v] = Heads(query, memory);
  const auto [out, weights] = AttentionWithWeights(q, k, v, Complete(options));
  return {Merge(out), weights};
}

Tensor MultiHeadAttention::Step(const Tensor& x, KeyValueCache& cache,
                                AttentionOptions options) const {
  const auto scope = path_.Open();
  options.causal = true;
  const auto [q, k, v] = Heads(x, x, cache.length());
  return StepOrRestore(absl::MakeSpan(&cache, 1), [&, &q = q, &k = k, &v = v] {
    cache.Append(k, v);
    return Merge(CachedAttention(q, cache.keys(), cache.values(),
                                 cache.length(), Complete(options)));
  });
}

KeyValueCache MultiHeadAttention::Remember(const Tensor& memory) const {
  const auto scope = path_.Open();
  Check("memory", memory);
  KeyValueCache cache;
  cache.Append(Keys(memory), Values(memory));
  return cache;
}

Tensor MultiHeadAttention::Recall(const Tensor& query,
                                  const KeyValueCache& memory,
                                  const AttentionOptions& options) const {
  const auto scope = path_.Open();
  Check("query", query);
  return Merge(CachedAttention(Queries(query), memory.keys(), memory.values(),
                               memory.length(), Complete(options)));
}

AttentionOptions MultiHeadAttention::Complete(AttentionOptions options) const {
  if (options.dropout == 0) options.dropout = dropout_;
  return options;
}

void MultiHeadAttention::Check(const char* name, const Tensor& x) const {
  if (x.rank() != 3 || x.dim(2) != d_model_) {
    throw Error(absl::StrCat("nn::MultiHeadAttention: ", name, " ", Describe(x),
                             "; wanted [B, T, ", d_model_, "]"));
  }
}

// Queries [B, Tq, H, D], keys and values [B, Tk, Hkv, D].
std::array<Tensor, 3> MultiHeadAttention::Heads(const Tensor& query,
                                                const Tensor& memory,
                                                int64_t position) const {
  Check("query", query);
  Check("memory", memory);
  return {Queries(query, position), Keys(memory, position), Values(memory)};
}

Tensor MultiHeadAttention::Queries(const Tensor& x, int64_t position) const {
  return Turn(Project(x, 0, n_heads_), position);
}
Tensor MultiHeadAttention::Keys(const Tensor& x, int64_t position) const {
  return Turn(Project(x, n_heads_, n_kv_heads_), position);
}
Tensor MultiHeadAttention::Values(const Tensor& x) const {
  return Project(x, n_heads_ + n_kv_heads_, n_kv_heads_);
}

// x [B, T, C] through the rows of some heads -> [B, T, heads, D].
Tensor MultiHeadAttention::Project(const Tensor& x, int64_t first_head,
                                   int64_t heads) const {
  const int64_t row = first_head * d_key_, rows = heads * d_key_;
  const Tensor weight = Slice(in_weight_, 0, row, rows);
  const Tensor bias =
      in_bias_.defined() ? Slice(in_bias_, 0, row, rows) : Tensor();
  return Reshape(wengert::Linear(x, weight, bias),
                 {x.dim(0), x.dim(1), heads, d_key_});
}

// [B, T, H, D], the first row of which has this position -> the same.
Tensor MultiHeadAttention::Turn(const Tensor& heads, int64_t position) const {
  if (!rotary_) return heads;
  RotaryOptions options = *rotary_;
  options.offset += position;
  return Rotary(heads, options);
}

// [B, T, H, D] -> [B, T, C], the layer's result
Tensor MultiHeadAttention::Merge(const Tensor& heads) const {
  return path_.Out(wengert::Linear(
      Reshape(heads, {heads.dim(0), heads.dim(1), n_heads_ * d_key_}),
      out_weight_, out_bias_));
}

}  // namespace wengert::nn
