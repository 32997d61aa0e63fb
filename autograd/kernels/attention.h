// Scaled dot-product attention (Vaswani et al. 2017) in blocks of queries and
// keys, without a [Tq, Tk] matrix (Dao et al. 2022). In every batch entry and
// head:
//   s_ij = scale q_i · k_j + bias_ij, or -inf where masked
//   p_i  = softmax(s_i)
//   out_i = sum_j dropout(p_ij) v_j
// A row whose keys are all masked gives zeros, and zero gradients.
#ifndef WENGERT_AUTOGRAD_KERNELS_ATTENTION_H_
#define WENGERT_AUTOGRAD_KERNELS_ATTENTION_H_

#include <array>
#include <cstdint>

namespace wengert::kernels {

// Where an operand's rows lie: row (b, t) starts at b * batch + t * row, and
// head h of it h * (head size) further on. A [B, T, H, D] tensor has
// {T * H * D, H * D}; the q, k, v of a packed [B, T, 3, H, D] have
// {T * 3 * H * D, 3 * H * D}.
struct AttentionStrides {
  int64_t batch = 0, row = 0;
};

template <class T>
struct AttentionArgs {
  // Query head h reads key head h / (heads / kv_heads), a whole number.
  int64_t batch = 0, heads = 0, kv_heads = 0;
  // A head has d elements in a row of q and k, dv in a row of v and out.
  int64_t tq = 0, tk = 0, d = 0, dv = 0;
  // Of the gradients too: dq lies as q does, dout as out.
  AttentionStrides q, k, v, out;
  T scale = 1;
  // Query i sees key j only if j <= i + tk - tq: the last query is aligned with
  // the last key.
  bool causal = false;
  // [batch, tk], true = attend; or null.
  const bool* key_mask = nullptr;
  // True = attend; or null. Element (b, h, i, j) lies at the sum of index times
  // stride; a stride of 0 broadcasts.
  const bool* mask = nullptr;
  std::array<int64_t, 4> mask_strides = {};
  // Added to the scaled scores; or null. Lies as the mask does.
  const T* bias = nullptr;
  std::array<int64_t, 4> bias_strides = {};
  // Weight (b, h, i, j) is element ((b * heads + h) * tq + i) * tk + j of the
  // stream (seed, offset) of dropout.h.
  double dropout_p = 0;
  uint64_t seed = 0, offset = 0;
};

// Writes out and lse [batch, heads, tq]: log sum_j exp(s_ij), -inf where all is
// masked.
template <class T>
void Attention(const AttentionArgs<T>& args, const T* q, const T* k, const T* v,
               T* out, T* lse);

// From the cotangent dout and what Attention wrote: dq, dk, dv (=|+=), each of
// which may be null.
template <class T>
void AttentionGrad(const AttentionArgs<T>& args, const T* q, const T* k,
                   const T* v, const T* out, const T* lse, const T* dout,
                   bool accumulate_dq, T* dq, bool accumulate_dk, T* dk,
                   bool accumulate_dv, T* dv);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_ATTENTION_H_
