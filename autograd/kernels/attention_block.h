// Where a block of one head's queries lies, and what masks its scores. For
// .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_ATTENTION_BLOCK_H_
#define WENGERT_AUTOGRAD_KERNELS_ATTENTION_BLOCK_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "autograd/kernels/attention.h"
#include "autograd/kernels/dropout.h"
#include "autograd/kernels/softmax_row.h"

namespace wengert::kernels {

// A block of queries of one head.
template <class T>
struct QueryBlock {
  const AttentionArgs<T>& x;
  int64_t b, h, begin, end;  // queries [begin, end)

  int64_t rows() const { return end - begin; }
  int64_t kv_head() const { return h / (x.heads / x.kv_heads); }
  // Index of row (b, h, i) in lse.
  int64_t row(int64_t i) const { return (b * x.heads + h) * x.tq + i; }

  // Keys that the causal mask leaves to query i are those below this.
  int64_t KeyEnd(int64_t i) const {
    if (!x.causal) return x.tk;
    return std::clamp<int64_t>(i + 1 + x.tk - x.tq, 0, x.tk);
  }

  // Where the block's queries, key j and output i begin in their buffers.
  int64_t Q() const { return b * x.q.batch + begin * x.q.row + h * x.d; }
  int64_t K(int64_t j) const {
    return b * x.k.batch + j * x.k.row + kv_head() * x.d;
  }
  int64_t V(int64_t j) const {
    return b * x.v.batch + j * x.v.row + kv_head() * x.dv;
  }
  int64_t Out(int64_t i) const {
    return b * x.out.batch + i * x.out.row + h * x.dv;
  }

  // Adds the bias to n scaled scores of query i from key j on, and puts -inf
  // where they are masked.
  void MaskRow(int64_t i, int64_t j, int64_t n, T* s) const {
    const auto at = [&](const std::array<int64_t, 4>& strides) {
      return b * strides[0] + h * strides[1] + i * strides[2] + j * strides[3];
    };
    if (x.bias != nullptr) {
      const T* bias = x.bias + at(x.bias_strides);
      const int64_t stride = x.bias_strides[3];
      for (int64_t l = 0; l < n; ++l) s[l] += bias[l * stride];
    }
    if (x.mask != nullptr) {
      const bool* mask = x.mask + at(x.mask_strides);
      const int64_t stride = x.mask_strides[3];
      for (int64_t l = 0; l < n; ++l) {
        s[l] = mask[l * stride] ? s[l] : -kInfinity<T>;
      }
    }
    if (x.key_mask != nullptr) {
      const bool* mask = x.key_mask + b * x.tk + j;
      for (int64_t l = 0; l < n; ++l) s[l] = mask[l] ? s[l] : -kInfinity<T>;
    }
  }

  // The dropout factors of query i from key j on.
  void DropoutRow(int64_t i, int64_t j, int64_t n, T* factor) const {
    DropoutMaskRow(x.seed, x.offset, row(i) * x.tk + j, n, x.dropout_p, factor);
  }
};

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_ATTENTION_BLOCK_H_
