// Scaled dot-product attention (Vaswani et al. 2017) in blocks, without a [Tq,
// Tk] matrix (Dao et al. 2022).
//
//   s_ij = scale q_i · k_j + bias_ij, -inf where masked;  p_i = softmax(s_i);
//   out_i = sum_j dropout(p_ij) v_j
// for every batch entry b and head h. A row whose keys are all masked gives
// zeros, and zero gradients.
#ifndef WENGERT_AUTOGRAD_KERNELS_ATTENTION_H_
#define WENGERT_AUTOGRAD_KERNELS_ATTENTION_H_

#include <array>
#include <cstdint>

namespace wengert::kernels {

// Where an operand's rows lie: row (b, t) starts at b * batch + t * row, and
// head h of it h * (head size) further on. A [B, T, H, D] tensor has {T * H *
// D, H * D}; the q, k, v of a packed [B, T, 3, H, D] have {T * 3 * H * D, 3 * H
// * D}.
struct AttentionStrides {
  int64_t batch = 0, row = 0;
};

template <class T>
struct AttentionArgs {
  int64_t batch = 0, heads = 0,
          kv_heads = 0;  // heads is a multiple of kv_heads: head h reads h /
                         // (heads / kv_heads)
  int64_t tq = 0, tk = 0, d = 0,
          dv = 0;  // q, k rows have d elements a head; v, out rows dv
  AttentionStrides q, k, v,
      out;  // of gradients too: dq lies as q does, dout as out
  T scale = 1;
  bool causal = false;  // query i sees key j iff j <= i + tk - tq: the last
                        // query is aligned with the last key
  const bool* key_mask = nullptr;  // [batch, tk], true = attend
  const bool* mask = nullptr;      // element (b, h, i, j) at the sum of
                                   // mask_strides[.] * index (0 broadcasts);
  std::array<int64_t, 4> mask_strides = {};  // true = attend
  const T* bias = nullptr;  // added to the scaled scores, likewise
  std::array<int64_t, 4> bias_strides = {};
  T dropout_p =
      0;  // weight (b, h, i, j) is element ((b * heads + h) * tq + i) * tk + j
  uint64_t seed = 0, offset = 0;  // of this stream (see dropout.h)
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
