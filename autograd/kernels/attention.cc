#include "autograd/kernels/attention.h"

#include <algorithm>

#include "autograd/kernels/attention_block.h"
#include "autograd/kernels/attention_lanes.h"
#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/kernels/softmax_row.h"
#include "autograd/kernels/vecmath.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

// Rows of a block of scores: whole tiles of AVX-512, and fewer where a causal
// mask would leave half of a block empty.
constexpr int64_t kMaxQueries = 56;
int64_t Queries(int64_t tq) { return tq <= 64 ? 28 : kMaxQueries; }
constexpr int64_t kKeys = 128;  // columns of a block of scores

// Calls fn(block, first key, one past the last key that any query sees) for the
// blocks of keys of a block of queries.
template <class T, class Fn>
void ForEachKeyBlock(const QueryBlock<T>& block, const Fn& fn) {
  const int64_t end = block.KeyEnd(block.end - 1);
  for (int64_t j = 0; j < end; j += kKeys) fn(j, std::min(kKeys, end - j));
}

// The running softmax of a row: all weights so far are exp(score - max).
template <class T>
struct RunningSoftmax {
  T max = -kInfinity<T>, sum = 0;

  // Turns n scores into weights, and returns what earlier weights are to be
  // multiplied by.
  T Add(int64_t n, T* s) {
    const T last = max, here = RowMax(n, s);
    max = here > last || here != here ? here : last;
    if (max == -kInfinity<T>) {
      std::fill_n(s, n, T(0));
      return 1;
    }
    ExpRow(n, s, max, s);
    const T decay = Exp(last - max);
    sum = sum * decay + BlockedSum<T>(n, [=](int64_t i) { return s[i]; });
    return decay;
  }
};

template <class T>
void BlockForward(const QueryBlock<T>& block, const T* q, const T* k,
                  const T* v, T* s, T* factor, T* out, T* lse) {
  const AttentionArgs<T>& x = block.x;
  RunningSoftmax<T> softmax[kMaxQueries];
  T* block_out = out + block.Out(block.begin);
  ForEachKeyBlock(block, [&](int64_t j, int64_t n) {
    Gemm(false, true, block.rows(), n, x.d, x.scale, q + block.Q(), x.q.row,
         k + block.K(j), x.k.row, false, s, kKeys);
    for (int64_t r = 0; r < block.rows(); ++r) {
      const int64_t i = block.begin + r;
      const int64_t seen = std::clamp<int64_t>(block.KeyEnd(i) - j, 0, n);
      T* row = s + r * kKeys;
      block.MaskRow(i, j, seen, row);
      const T decay = softmax[r].Add(seen, row);
      std::fill(row + seen, row + n, T(0));
      if (x.dropout_p > 0) {
        block.DropoutRow(i, j, seen, factor);
        for (int64_t l = 0; l < seen; ++l) row[l] *= factor[l];
      }
      if (j > 0 && decay != 1) {
        T* o = block_out + r * x.out.row;
        for (int64_t l = 0; l < x.dv; ++l) o[l] *= decay;
      }
    }
    Gemm(false, false, block.rows(), x.dv, n, T(1), s, kKeys, v + block.V(j),
         x.v.row, j > 0, block_out, x.out.row);
  });
  for (int64_t r = 0; r < block.rows(); ++r) {
    T* o = block_out + r * x.out.row;
    const auto [max, sum] = softmax[r];
    if (sum == 0) {
      std::fill_n(o, x.dv, T(0));
      lse[block.row(block.begin + r)] = -kInfinity<T>;
      continue;
    }
    const T scale = 1 / sum;
    for (int64_t l = 0; l < x.dv; ++l) o[l] *= scale;
    lse[block.row(block.begin + r)] = max + Log(sum);
  }
}

// delta_i = dout_i · out_i = sum_j p_ij dp_ij, from which softmax's gradient
// follows: ds_ij = p_ij (dp_ij - delta_i).
template <class T>
void BlockBackward(const QueryBlock<T>& block, const T* q, const T* k,
                   const T* v, const T* lse, const T* out, const T* dout, T* p,
                   T* dp, T* factor, T* dq, T* dk, T* dv) {
  const AttentionArgs<T>& x = block.x;
  const T* d_out = dout + block.Out(block.begin);
  T delta[kMaxQueries];
  for (int64_t r = 0; r < block.rows(); ++r) {
    const T *o = out + block.Out(block.begin + r), *d = d_out + r * x.out.row;
    delta[r] = BlockedSum<T>(x.dv, [=](int64_t l) { return o[l] * d[l]; });
  }
  ForEachKeyBlock(block, [&](int64_t j, int64_t n) {
    const int64_t rows = block.rows();
    Gemm(false, true, rows, n, x.d, x.scale, q + block.Q(), x.q.row,
         k + block.K(j), x.k.row, false, p, kKeys);
    Gemm(false, true, rows, n, x.dv, T(1), d_out, x.out.row, v + block.V(j),
         x.v.row, false, dp, kKeys);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t i = block.begin + r;
      T *weight = p + r * kKeys, *d = dp + r * kKeys;
      const T total = lse[block.row(i)];
      const int64_t seen = total == -kInfinity<T>
                               ? 0
                               : std::clamp<int64_t>(block.KeyEnd(i) - j, 0, n);
      block.MaskRow(i, j, seen, weight);
      ExpRow(seen, weight, total, weight);
      std::fill(weight + seen, weight + n, T(0));
      std::fill(d + seen, d + n, T(0));
      if (x.dropout_p > 0) {
        block.DropoutRow(i, j, seen, factor);
        for (int64_t l = 0; l < seen; ++l) {
          d[l] = weight[l] * (d[l] * factor[l] - delta[r]);
          weight[l] *= factor[l];
        }
      } else {
        for (int64_t l = 0; l < seen; ++l) {
          d[l] = weight[l] * (d[l] - delta[r]);
        }
      }
    }
    if (dv != nullptr) {
      Gemm(true, false, n, x.dv, rows, T(1), p, kKeys, d_out, x.out.row, true,
           dv + block.V(j), x.v.row);
    }
    if (dk != nullptr) {
      Gemm(true, false, n, x.d, rows, x.scale, dp, kKeys, q + block.Q(),
           x.q.row, true, dk + block.K(j), x.k.row);
    }
    if (dq != nullptr) {
      Gemm(false, false, rows, x.d, n, x.scale, dp, kKeys, k + block.K(j),
           x.k.row, true, dq + block.Q(), x.q.row);
    }
  });
}

// Zeros in elements [first, first + width) of the `rows` rows of batch entry b.
template <class T>
void Clear(int64_t b, AttentionStrides strides, int64_t rows, int64_t first,
           int64_t width, T* dx) {
  if (dx == nullptr) return;
  for (int64_t t = 0; t < rows; ++t) {
    std::fill_n(dx + b * strides.batch + t * strides.row + first, width, T(0));
  }
}

}  // namespace

template <class T>
void Attention(const AttentionArgs<T>& x, const T* q, const T* k, const T* v,
               T* out, T* lse) {
  if (FitsLanes(x)) return LanesAttention(x, q, k, v, out, lse);
  const int64_t queries = Queries(x.tq), blocks = CeilDiv(x.tq, queries);
  const int64_t flops = 2 * std::min(x.tq, queries) * x.tk * (x.d + x.dv + 16);
  ParallelFor(
      x.batch * x.heads * blocks,
      FlopGrainOf(x.batch * x.heads * blocks, flops),
      [&](int64_t begin, int64_t end) {
        const Scratch<T> scores(std::min(x.tq, queries) * kKeys), factor(kKeys);
        for (int64_t task = begin; task < end; ++task) {
          const int64_t head = task / blocks, i = task % blocks * queries;
          BlockForward<T>({x, head / x.heads, head % x.heads, i,
                           std::min(x.tq, i + queries)},
                          q, k, v, scores.data(), factor.data(), out, lse);
        }
      });
}

template <class T>
void AttentionGrad(const AttentionArgs<T>& x, const T* q, const T* k,
                   const T* v, const T* out, const T* lse, const T* dout,
                   bool accumulate_dq, T* dq, bool accumulate_dk, T* dk,
                   bool accumulate_dv, T* dv) {
  if (FitsLanes(x)) {
    return LanesAttentionGrad(x, q, k, v, out, lse, dout, accumulate_dq, dq,
                              accumulate_dk, dk, accumulate_dv, dv);
  }
  const int64_t queries = Queries(x.tq);
  const int64_t group = x.kv_heads > 0 ? x.heads / x.kv_heads : 0;
  const int64_t flops = 2 * group * x.tq * x.tk * (3 * x.d + 2 * x.dv + 32);
  // A task owns a key head: its dk and dv, and dq of the heads that read it.
  ParallelFor(
      x.batch * x.kv_heads, FlopGrainOf(x.batch * x.kv_heads, flops),
      [&](int64_t begin, int64_t end) {
        const int64_t rows = std::min(x.tq, queries);
        const Scratch<T> p(rows * kKeys), dp(rows * kKeys), factor(kKeys);
        for (int64_t task = begin; task < end; ++task) {
          const int64_t b = task / x.kv_heads, kv_head = task % x.kv_heads;
          const int64_t first = kv_head * group;
          if (!accumulate_dq) Clear(b, x.q, x.tq, first * x.d, group * x.d, dq);
          if (!accumulate_dk) Clear(b, x.k, x.tk, kv_head * x.d, x.d, dk);
          if (!accumulate_dv) Clear(b, x.v, x.tk, kv_head * x.dv, x.dv, dv);
          for (int64_t h = first; h < first + group; ++h) {
            for (int64_t i = 0; i < x.tq; i += queries) {
              BlockBackward<T>({x, b, h, i, std::min(x.tq, i + queries)}, q, k,
                               v, lse, out, dout, p.data(), dp.data(),
                               factor.data(), dq, dk, dv);
            }
          }
        }
      });
}

template void Attention(const AttentionArgs<float>&, const float*, const float*,
                        const float*, float*, float*);
template void AttentionGrad(const AttentionArgs<float>&, const float*,
                            const float*, const float*, const float*,
                            const float*, const float*, bool, float*, bool,
                            float*, bool, float*);
template void Attention(const AttentionArgs<double>&, const double*,
                        const double*, const double*, double*, double*);
template void AttentionGrad(const AttentionArgs<double>&, const double*,
                            const double*, const double*, const double*,
                            const double*, const double*, bool, double*, bool,
                            double*, bool, double*);

}  // namespace wengert::kernels
