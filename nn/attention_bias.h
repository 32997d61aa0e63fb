// Biases of attention scores that depend on the distance between query and key,
// in the place of positions that are added to the words:
//
//   attention(x, {.causal = true, .bias = positions(Tq, Tk)});
//
// In both the last query is aligned with the last key, as it is in causal
// attention: query i has position i + Tk - Tq.
#ifndef WENGERT_NN_ATTENTION_BIAS_H_
#define WENGERT_NN_ATTENTION_BIAS_H_

#include <cstdint>

#include "autograd/ops.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

// 2^(-8/n), 2^(-16/n), ... for n a power of two; for another n those of the
// next lower power, then every second one of twice that power: [n_heads]
// (Press, Smith, Lewis 2022). Throws Error unless n_heads >= 1.
Tensor AlibiSlopes(int64_t n_heads, DType dtype = DType::kFloat32);
// ALiBi: -slope |query - key|; [1, n_heads, Tq, Tk]. No parameters. (The paper
// has the keys up to the query alone, where this is the same.)
Tensor AlibiBias(int64_t n_heads, int64_t queries, int64_t keys,
                 DType dtype = DType::kFloat32);

struct RelativeBiasOptions {
  int64_t num_buckets = 32;
  int64_t max_distance = 128;  // all that is as far or farther is one bucket
  // Keys after the query get buckets of their own; otherwise they all count as
  // distance 0, for causal attention.
  bool bidirectional = true;
  double stddev = 0.02;
};

// T5's relative position bias (Raffel et al. 2020): weight[bucket(key - query),
// head]; [1, n_heads, Tq, Tk]. Half of the buckets (in each direction) stand
// for one distance each, the rest for spans that grow by a factor up to
// max_distance. Parameter "weight" [num_buckets, n_heads], normal (0, stddev).
// The layers of a stack share one, as in T5.
class RelativeBias {
 public:
  RelativeBias(Params p, int64_t n_heads, RelativeBiasOptions options = {});

  Tensor operator()(int64_t queries, int64_t keys) const;

  // The bucket of a distance, key minus query.
  int64_t Bucket(int64_t distance) const;

 private:
  RelativeBiasOptions options_;
  Tensor weight_;
  LayerPath path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_ATTENTION_BIAS_H_
