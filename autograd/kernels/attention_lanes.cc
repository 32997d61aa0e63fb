#include "autograd/kernels/attention_lanes.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "autograd/kernels/attention_block.h"
#include "autograd/kernels/gemm_tile.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/kernels/vecmath.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

using gemm::Load;
using gemm::MultiplyAdd;
using gemm::Store;
using gemm::Vector;

template <class T>
inline constexpr int kLanes = gemm::kWidth<T>;
constexpr int64_t kMaxKeys = 16, kMaxWidth = 16;
constexpr int64_t kQuad = 4;  // neighbours that are moved as one

// One number of every lane.
template <class T>
using Lanes = T[kLanes<T>];

// The sum over c < n of a[c] b[c].
template <class T>
Vector<T> Dot(int64_t n, const Lanes<T>* a, const Lanes<T>* b) {
  Vector<T> sum = {};
  for (int64_t c = 0; c < n; ++c) {
    sum = MultiplyAdd<T>(Load(a[c]), Load(b[c]), sum);
  }
  return sum;
}

// y[c] += a x[c] for c < n.
template <class T>
void AddScaled(int64_t n, Vector<T> a, const Lanes<T>* x, Lanes<T>* y) {
  for (int64_t c = 0; c < n; ++c) {
    Store(y[c], MultiplyAdd<T>(a, Load(x[c]), Load(y[c])));
  }
}

// fn(t, c, vector t * width + c) for every row t and every `step`-th column c.
template <class T, class Fn>
void ForEachStep(int64_t rows, int64_t width, int64_t step, const Fn& fn,
                 Lanes<T>* vectors) {
  for (int64_t t = 0; t < rows; ++t) {
    for (int64_t c = 0; c < width; c += step) fn(t, c, vectors + t * width + c);
  }
}

// Key heads [first, first + count) of all batch entries, one in each lane, and
// the query heads that read them, one after the other. Lanes without a problem
// repeat the last one.
template <class T>
class LaneGroup {
 public:
  using Heads = std::array<int64_t, kLanes<T>>;

  LaneGroup(const AttentionArgs<T>& x, int64_t first)
      : x_(x),
        group_(x.heads / x.kv_heads),
        count_(std::min<int64_t>(kLanes<T>, x.batch * x.kv_heads - first)) {
    int64_t b = first / x.kv_heads, head = first % x.kv_heads;
    for (int64_t l = 0; l < kLanes<T>; ++l) {
      batch_[l] = b;
      kv_heads_[l] = head;
      if (l < count_ - 1 && ++head == x.kv_heads) ++b, head = 0;
    }
  }

  int64_t count() const { return count_; }
  int64_t KeyEnd(int64_t i) const { return block(0, 0).KeyEnd(i); }
  // The head of each lane, and query head `member` of those that read it.
  const Heads& kv_heads() const { return kv_heads_; }
  Heads QueryHeads(int64_t member) const {
    Heads heads;
    for (int64_t l = 0; l < kLanes<T>; ++l) {
      heads[l] = kv_heads_[l] * group_ + member;
    }
    return heads;
  }
  // Where query 0 of each lane's head lies in lse.
  Heads LseRows(const Heads& heads) const {
    Heads rows;
    for (int64_t l = 0; l < kLanes<T>; ++l) {
      rows[l] = (batch_[l] * x_.heads + heads[l]) * x_.tq;
    }
    return rows;
  }

  // to[t * width + c] = element c of row t in each lane's head of `from`.
  void Gather(int64_t rows, int64_t width, const AttentionStrides& strides,
              const Heads& heads, const T* from, Lanes<T>* to) const {
    const int64_t row = strides.row;
    const T* x[kLanes<T>];
    for (int64_t l = 0; l < kLanes<T>; ++l) {
      x[l] = from + batch_[l] * strides.batch + heads[l] * width;
    }
    if (width % kQuad != 0) {
      ForEachStep<T>(
          rows, width, 1,
          [&](int64_t t, int64_t c, Lanes<T>* y) {
            for (int l = 0; l < kLanes<T>; ++l) y[0][l] = x[l][t * row + c];
          },
          to);
      return;
    }
    // First copied, then shuffled: a vector cannot be loaded from what was
    // just stored in parts.
    T quads[kMaxKeys * kMaxWidth / kQuad][kLanes<T>][kQuad];
    auto* quad = quads;
    ForEachStep<T>(
        rows, width, kQuad,
        [&](int64_t t, int64_t c, Lanes<T>*) {
          for (int l = 0; l < kLanes<T>; ++l) {
            std::memcpy((*quad)[l], x[l] + t * row + c, sizeof((*quad)[l]));
          }
          ++quad;
        },
        to);
    quad = quads;
    ForEachStep<T>(
        rows, width, kQuad,
        [&](int64_t, int64_t, Lanes<T>* y) {
          for (int l = 0; l < kLanes<T>; ++l) {
            for (int i = 0; i < kQuad; ++i) y[i][l] = (*quad)[l][i];
          }
          ++quad;
        },
        to);
  }

  // The way back: to[...] (=|+=) from[t * width + c].
  void Scatter(int64_t rows, int64_t width, const AttentionStrides& strides,
               const Heads& heads, Lanes<T>* from, bool accumulate,
               T* to) const {
    if (to == nullptr) return;
    const int64_t row = strides.row;
    T* y[kLanes<T>];
    for (int64_t l = 0; l < kLanes<T>; ++l) {
      y[l] = to + batch_[l] * strides.batch + heads[l] * width;
    }
    const auto write = [&](int64_t l, int64_t i, T value) {
      y[l][i] = accumulate ? y[l][i] + value : value;
    };
    if (width % kQuad != 0) {
      ForEachStep<T>(
          rows, width, 1,
          [&](int64_t t, int64_t c, Lanes<T>* x) {
            for (int64_t l = 0; l < count_; ++l) write(l, t * row + c, x[0][l]);
          },
          from);
      return;
    }
    T quads[kMaxKeys * kMaxWidth / kQuad][kLanes<T>][kQuad];
    auto* quad = quads;
    ForEachStep<T>(
        rows, width, kQuad,
        [&](int64_t, int64_t, Lanes<T>* x) {
          for (int l = 0; l < kLanes<T>; ++l) {
            for (int i = 0; i < kQuad; ++i) (*quad)[l][i] = x[i][l];
          }
          ++quad;
        },
        from);
    quad = quads;
    ForEachStep<T>(
        rows, width, kQuad,
        [&](int64_t t, int64_t c, Lanes<T>*) {
          for (int64_t l = 0; l < count_; ++l) {
            for (int i = 0; i < kQuad; ++i) {
              write(l, t * row + c + i, (*quad)[l][i]);
            }
          }
          ++quad;
        },
        from);
  }

  // s[j] = the masked score of query i, whose elements are q, and key j < n.
  void Scores(int64_t member, int64_t i, int64_t n, const Lanes<T>* q,
              const Lanes<T>* k, Lanes<T>* s) const {
    for (int64_t j = 0; j < n; ++j) {
      Store(s[j], x_.scale * Dot<T>(x_.d, q, k + j * x_.d));
    }
    if (x_.bias == nullptr && x_.mask == nullptr && x_.key_mask == nullptr) {
      return;
    }
    for (int64_t lane = 0; lane < count_; ++lane) {
      T row[kMaxKeys];
      for (int64_t j = 0; j < n; ++j) row[j] = s[j][lane];
      block(lane, member).MaskRow(i, 0, n, row);
      for (int64_t j = 0; j < n; ++j) s[j][lane] = row[j];
    }
  }

  // Multiplies what stands for query i and key j < n by the dropout factors.
  void Drop(int64_t member, int64_t i, int64_t n, Lanes<T>* s) const {
    if (x_.dropout_p == 0) return;
    for (int64_t lane = 0; lane < count_; ++lane) {
      T factor[kMaxKeys];
      block(lane, member).DropoutRow(i, 0, n, factor);
      for (int64_t j = 0; j < n; ++j) s[j][lane] *= factor[j];
    }
  }

  // Turns scores into exp(s - max), all 0 where all are masked.
  void Weights(int64_t n, Lanes<T>* s, T* max, T* sum) const {
    std::fill_n(max, kLanes<T>, -kInfinity<T>);
    std::fill_n(sum, kLanes<T>, T(0));
    for (int64_t j = 0; j < n; ++j) {
      for (int l = 0; l < kLanes<T>; ++l) {
        max[l] =
            Select((s[j][l] > max[l]) | (s[j][l] != s[j][l]), s[j][l], max[l]);
      }
    }
    for (int64_t j = 0; j < n; ++j) {
      for (int l = 0; l < kLanes<T>; ++l) {
        const T e = Exp(s[j][l] - max[l]);
        s[j][l] = Select(max[l] == -kInfinity<T>, T(0), e);
        sum[l] += s[j][l];
      }
    }
  }

 private:
  // Query head `member` of those that read the lane's key head.
  QueryBlock<T> block(int64_t lane, int64_t member) const {
    return {x_, batch_[lane], kv_heads_[lane] * group_ + member, 0, x_.tq};
  }

  const AttentionArgs<T>& x_;
  const int64_t group_, count_;
  Heads batch_, kv_heads_;
};

// Arrays of `Lanes` in one piece of working memory.
template <class T>
class LaneArrays {
 public:
  explicit LaneArrays(int64_t n)
      : memory_(n * kLanes<T>), next_(memory_.data()) {}
  Lanes<T>* Take(int64_t n) {
    T* taken = next_;
    next_ += n * kLanes<T>;
    return reinterpret_cast<Lanes<T>*>(taken);
  }

 private:
  Scratch<T> memory_;
  T* next_;
};

// Calls fn(group) for all problems, some at a time.
template <class T, class Fn>
void ForEachGroup(const AttentionArgs<T>& x, int64_t products, const Fn& fn) {
  const int64_t n = CeilDiv(x.batch * x.kv_heads, kLanes<T>);
  const int64_t heads = x.kv_heads > 0 ? x.heads / x.kv_heads : 0;
  const int64_t flops =
      2 * kLanes<T> * heads * x.tq * x.tk * (products * (x.d + x.dv) + 16);
  ParallelFor(n, FlopGrainOf(n, flops), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      fn(LaneGroup<T>(x, i * kLanes<T>), heads);
    }
  });
}

}  // namespace

template <class T>
void LanesAttention(const AttentionArgs<T>& x, const T* q, const T* k,
                    const T* v, T* out, T* lse) {
  ForEachGroup(x, 1, [&](const LaneGroup<T>& group, int64_t heads) {
    LaneArrays<T> arrays((x.tq + x.tk) * (x.d + x.dv) + x.tk);
    Lanes<T>* const qs = arrays.Take(x.tq * x.d);
    Lanes<T>* const ks = arrays.Take(x.tk * x.d);
    Lanes<T>* const vs = arrays.Take(x.tk * x.dv);
    Lanes<T>* const outs = arrays.Take(x.tq * x.dv);
    Lanes<T>* const s = arrays.Take(x.tk);
    group.Gather(x.tk, x.d, x.k, group.kv_heads(), k, ks);
    group.Gather(x.tk, x.dv, x.v, group.kv_heads(), v, vs);
    for (int64_t h = 0; h < heads; ++h) {
      const auto query_heads = group.QueryHeads(h);
      const auto lse_at = group.LseRows(query_heads);
      group.Gather(x.tq, x.d, x.q, query_heads, q, qs);
      for (int64_t i = 0; i < x.tq; ++i) {
        const int64_t n = group.KeyEnd(i);
        Lanes<T> max, sum, inverse;
        group.Scores(h, i, n, qs + i * x.d, ks, s);
        group.Weights(n, s, max, sum);
        for (int l = 0; l < kLanes<T>; ++l) {
          inverse[l] = Select(sum[l] == 0, T(0), 1 / sum[l]);
        }
        group.Drop(h, i, n, s);
        Lanes<T>* const out_i = outs + i * x.dv;
        std::fill_n(out_i[0], x.dv * kLanes<T>, T(0));
        for (int64_t j = 0; j < n; ++j) {
          AddScaled<T>(x.dv, Load(s[j]), vs + j * x.dv, out_i);
        }
        for (int64_t c = 0; c < x.dv; ++c) {
          Store(out_i[c], Load(out_i[c]) * Load(inverse));
        }
        Lanes<T> log_sum;
        for (int l = 0; l < kLanes<T>; ++l) log_sum[l] = max[l] + Log(sum[l]);
        for (int64_t l = 0; l < group.count(); ++l) {
          lse[lse_at[l] + i] = Select(sum[l] == 0, -kInfinity<T>, log_sum[l]);
        }
      }
      group.Scatter(x.tq, x.dv, x.out, query_heads, outs, false, out);
    }
  });
}

// delta = out · dout, as in attention.cc.
template <class T>
void LanesAttentionGrad(const AttentionArgs<T>& x, const T* q, const T* k,
                        const T* v, const T* out, const T* lse, const T* dout,
                        bool accumulate_dq, T* dq, bool accumulate_dk, T* dk,
                        bool accumulate_dv, T* dv) {
  ForEachGroup(x, 2, [&](const LaneGroup<T>& group, int64_t heads) {
    LaneArrays<T> arrays(2 * (x.tq + x.tk) * (x.d + x.dv) + 3 * x.tk);
    Lanes<T>* const qs = arrays.Take(x.tq * x.d);
    Lanes<T>* const ks = arrays.Take(x.tk * x.d);
    Lanes<T>* const vs = arrays.Take(x.tk * x.dv);
    Lanes<T>* const douts = arrays.Take(x.tq * x.dv);
    Lanes<T>* const outs = arrays.Take(x.tq * x.dv);
    Lanes<T>* const dqs = arrays.Take(x.tq * x.d);
    Lanes<T>* const dks = arrays.Take(x.tk * x.d);
    Lanes<T>* const dvs = arrays.Take(x.tk * x.dv);
    Lanes<T>* const p = arrays.Take(x.tk);
    Lanes<T>* const ds = arrays.Take(x.tk);
    Lanes<T>* const dropped = arrays.Take(x.tk);
    group.Gather(x.tk, x.d, x.k, group.kv_heads(), k, ks);
    group.Gather(x.tk, x.dv, x.v, group.kv_heads(), v, vs);
    std::fill_n(dks[0], x.tk * x.d * kLanes<T>, T(0));
    std::fill_n(dvs[0], x.tk * x.dv * kLanes<T>, T(0));
    for (int64_t h = 0; h < heads; ++h) {
      const auto query_heads = group.QueryHeads(h);
      const auto lse_at = group.LseRows(query_heads);
      group.Gather(x.tq, x.d, x.q, query_heads, q, qs);
      group.Gather(x.tq, x.dv, x.out, query_heads, dout, douts);
      group.Gather(x.tq, x.dv, x.out, query_heads, out, outs);
      for (int64_t i = 0; i < x.tq; ++i) {
        const int64_t n = group.KeyEnd(i);
        const Lanes<T>*const qi = qs + i * x.d, *const di = douts + i * x.dv;
        Lanes<T>* const dqi = dqs + i * x.d;
        const Vector<T> delta = Dot<T>(x.dv, outs + i * x.dv, di);
        Lanes<T> total = {};
        for (int64_t l = 0; l < group.count(); ++l) {
          total[l] = lse[lse_at[l] + i];
        }
        group.Scores(h, i, n, qi, ks, p);
        for (int64_t j = 0; j < n; ++j) {
          Store(ds[j], Dot<T>(x.dv, di, vs + j * x.dv));
          for (int l = 0; l < kLanes<T>; ++l) {
            const T e = Exp(p[j][l] - total[l]);
            p[j][l] = Select(total[l] == -kInfinity<T>, T(0), e);
            ds[j][l] = Select(total[l] == -kInfinity<T>, T(0), ds[j][l]);
          }
        }
        // With dropout, out holds dropped weights, and dp their factors.
        const Lanes<T>* weights = p;
        if (x.dropout_p > 0) {
          std::copy_n(p[0], n * kLanes<T>, dropped[0]);
          group.Drop(h, i, n, dropped);
          group.Drop(h, i, n, ds);
          weights = dropped;
        }
        std::fill_n(dqi[0], x.d * kLanes<T>, T(0));
        for (int64_t j = 0; j < n; ++j) {
          const Vector<T> d = x.scale * (Load(p[j]) * (Load(ds[j]) - delta));
          AddScaled<T>(x.d, d, ks + j * x.d, dqi);
          AddScaled<T>(x.d, d, qi, dks + j * x.d);
          AddScaled<T>(x.dv, Load(weights[j]), di, dvs + j * x.dv);
        }
      }
      group.Scatter(x.tq, x.d, x.q, query_heads, dqs, accumulate_dq, dq);
    }
    group.Scatter(x.tk, x.d, x.k, group.kv_heads(), dks, accumulate_dk, dk);
    group.Scatter(x.tk, x.dv, x.v, group.kv_heads(), dvs, accumulate_dv, dv);
  });
}

template void LanesAttention(const AttentionArgs<float>&, const float*,
                             const float*, const float*, float*, float*);
template void LanesAttentionGrad(const AttentionArgs<float>&, const float*,
                                 const float*, const float*, const float*,
                                 const float*, const float*, bool, float*, bool,
                                 float*, bool, float*);
template void LanesAttention(const AttentionArgs<double>&, const double*,
                             const double*, const double*, double*, double*);
template void LanesAttentionGrad(const AttentionArgs<double>&, const double*,
                                 const double*, const double*, const double*,
                                 const double*, const double*, bool, double*,
                                 bool, double*, bool, double*);

}  // namespace wengert::kernels
