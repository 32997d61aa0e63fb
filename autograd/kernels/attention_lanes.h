// Attention for short sequences of small heads, where a matrix product is
// smaller than the packing of its panels: sixteen problems at a time, one in
// each lane of a vector. For attention.cc.
#ifndef WENGERT_AUTOGRAD_KERNELS_ATTENTION_LANES_H_
#define WENGERT_AUTOGRAD_KERNELS_ATTENTION_LANES_H_

#include "autograd/kernels/attention.h"

namespace wengert::kernels {

// Whether the problems are so small that lanes are the faster way.
template <class T>
bool FitsLanes(const AttentionArgs<T>& x) {
  return x.tq <= 16 && x.tk <= 16 && x.d <= 16 && x.dv <= 16;
}

// As Attention and AttentionGrad, for arguments that fit.
template <class T>
void LanesAttention(const AttentionArgs<T>& x, const T* q, const T* k,
                    const T* v, T* out, T* lse);
template <class T>
void LanesAttentionGrad(const AttentionArgs<T>& x, const T* q, const T* k,
                        const T* v, const T* out, const T* lse, const T* dout,
                        bool accumulate_dq, T* dq, bool accumulate_dk, T* dk,
                        bool accumulate_dv, T* dv);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_ATTENTION_LANES_H_
