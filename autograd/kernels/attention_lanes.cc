#include "autograd/kernels/attention_lanes.h"

#include <algorithm>

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
constexpr int64_t kMaxKeys = 16;

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

// Key heads [first, first + count) of all batch entries, one in each lane, and
// the query heads that read them, one after the other.
template <class T>
class LaneGroup {
 public:
  LaneGroup(const AttentionArgs<T>& x, int64_t first)
      : x_(x),
        first_(first),
        count_(std::min<int64_t>(kLanes<T>, x.batch * x.kv_heads - first)) {}

  int64_t count() const { return count_; }
  // Query head `member` of the group that reads the lane's key head.
  QueryBlock<T> block(int64_t lane, int64_t member) const {
    const int64_t head = first_ + lane, group = x_.heads / x_.kv_heads;
    return {x_, head / x_.kv_heads, head % x_.kv_heads * group + member, 0,
            x_.tq};
  }

  // to[t * width + c] = from[at(lane) + t * row + c] of every lane. Lanes
  // without a problem repeat the first one.
  template <class At>
  void Gather(int64_t rows, int64_t width, int64_t row, const At& at,
              const T* from, Lanes<T>* to) const {
    int64_t begin[kLanes<T>];
    for (int64_t l = 0; l < kLanes<T>; ++l) begin[l] = at(l < count_ ? l : 0);
    for (int64_t t = 0; t < rows; ++t) {
      for (int64_t c = 0; c < width; ++c, ++to) {
        const T* x = from + t * row + c;
#pragma GCC unroll 16
        for (int l = 0; l < kLanes<T>; ++l) (*to)[l] = x[begin[l]];
      }
    }
  }
  template <class At>
  void Scatter(int64_t rows, int64_t width, int64_t row, const At& at,
               const Lanes<T>* from, bool accumulate, T* to) const {
    if (to == nullptr) return;
    int64_t begin[kLanes<T>];
    for (int64_t l = 0; l < count_; ++l) begin[l] = at(l);
    for (int64_t t = 0; t < rows; ++t) {
      for (int64_t c = 0; c < width; ++c, ++from) {
        T* y = to + t * row + c;
        for (int64_t l = 0; l < count_; ++l) {
          T& element = y[begin[l]];
          element = accumulate ? element + (*from)[l] : (*from)[l];
        }
      }
    }
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

  // The dropout factors of query i and key j < n.
  void DropoutFactors(int64_t member, int64_t i, int64_t n,
                      Lanes<T>* factor) const {
    for (int64_t j = 0; j < n; ++j) std::fill_n(factor[j], kLanes<T>, T(1));
    if (x_.dropout_p == 0) return;
    for (int64_t lane = 0; lane < count_; ++lane) {
      T row[kMaxKeys];
      block(lane, member).DropoutRow(i, 0, n, row);
      for (int64_t j = 0; j < n; ++j) factor[j][lane] = row[j];
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
  const AttentionArgs<T>& x_;
  const int64_t first_, count_;
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
  ParallelFor(n, FlopGrainOf(flops), [&](int64_t begin, int64_t end) {
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
    LaneArrays<T> arrays((x.tq + x.tk) * (x.d + x.dv) + 2 * x.tk);
    Lanes<T>* const qs = arrays.Take(x.tq * x.d);
    Lanes<T>* const ks = arrays.Take(x.tk * x.d);
    Lanes<T>* const vs = arrays.Take(x.tk * x.dv);
    Lanes<T>* const outs = arrays.Take(x.tq * x.dv);
    Lanes<T>* const s = arrays.Take(x.tk);
    Lanes<T>* const factor = arrays.Take(x.tk);
    const auto k_at = [&](int64_t l) { return group.block(l, 0).K(0); };
    const auto v_at = [&](int64_t l) { return group.block(l, 0).V(0); };
    group.Gather(x.tk, x.d, x.k.row, k_at, k, ks);
    group.Gather(x.tk, x.dv, x.v.row, v_at, v, vs);
    for (int64_t h = 0; h < heads; ++h) {
      const auto q_at = [&](int64_t l) { return group.block(l, h).Q(); };
      const auto out_at = [&](int64_t l) { return group.block(l, h).Out(0); };
      group.Gather(x.tq, x.d, x.q.row, q_at, q, qs);
      for (int64_t i = 0; i < x.tq; ++i) {
        const int64_t n = group.block(0, h).KeyEnd(i);
        Lanes<T> max, sum, inverse;
        group.Scores(h, i, n, qs + i * x.d, ks, s);
        group.Weights(n, s, max, sum);
        for (int l = 0; l < kLanes<T>; ++l) {
          inverse[l] = Select(sum[l] == 0, T(0), 1 / sum[l]);
        }
        group.DropoutFactors(h, i, n, factor);
        Lanes<T>* const out_i = outs + i * x.dv;
        std::fill_n(out_i[0], x.dv * kLanes<T>, T(0));
        for (int64_t j = 0; j < n; ++j) {
          AddScaled<T>(x.dv, Load(s[j]) * Load(factor[j]), vs + j * x.dv,
                       out_i);
        }
        for (int64_t c = 0; c < x.dv; ++c) {
          Store(out_i[c], Load(out_i[c]) * Load(inverse));
        }
        Lanes<T> log_sum;
        for (int l = 0; l < kLanes<T>; ++l) log_sum[l] = max[l] + Log(sum[l]);
        for (int64_t l = 0; l < group.count(); ++l) {
          lse[group.block(l, h).row(i)] =
              Select(sum[l] == 0, -kInfinity<T>, log_sum[l]);
        }
      }
      group.Scatter(x.tq, x.dv, x.out.row, out_at, outs, false, out);
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
    Lanes<T>* const factor = arrays.Take(x.tk);
    const auto k_at = [&](int64_t l) { return group.block(l, 0).K(0); };
    const auto v_at = [&](int64_t l) { return group.block(l, 0).V(0); };
    group.Gather(x.tk, x.d, x.k.row, k_at, k, ks);
    group.Gather(x.tk, x.dv, x.v.row, v_at, v, vs);
    std::fill_n(dks[0], x.tk * x.d * kLanes<T>, T(0));
    std::fill_n(dvs[0], x.tk * x.dv * kLanes<T>, T(0));
    for (int64_t h = 0; h < heads; ++h) {
      const auto q_at = [&](int64_t l) { return group.block(l, h).Q(); };
      const auto out_at = [&](int64_t l) { return group.block(l, h).Out(0); };
      group.Gather(x.tq, x.d, x.q.row, q_at, q, qs);
      group.Gather(x.tq, x.dv, x.out.row, out_at, dout, douts);
      group.Gather(x.tq, x.dv, x.out.row, out_at, out, outs);
      for (int64_t i = 0; i < x.tq; ++i) {
        const int64_t n = group.block(0, h).KeyEnd(i);
        const Lanes<T>*const qi = qs + i * x.d, *const di = douts + i * x.dv;
        Lanes<T>* const dqi = dqs + i * x.d;
        const Vector<T> delta = Dot<T>(x.dv, outs + i * x.dv, di);
        Lanes<T> total = {};
        for (int64_t l = 0; l < group.count(); ++l) {
          total[l] = lse[group.block(l, h).row(i)];
        }
        group.Scores(h, i, n, qi, ks, p);
        group.DropoutFactors(h, i, n, factor);
        for (int64_t j = 0; j < n; ++j) {
          Lanes<T> dp;
          Store(dp, Dot<T>(x.dv, di, vs + j * x.dv));
          for (int l = 0; l < kLanes<T>; ++l) {
            const T e = Exp(p[j][l] - total[l]);
            p[j][l] = Select(total[l] == -kInfinity<T>, T(0), e);
            ds[j][l] =
                Select(total[l] == -kInfinity<T>, T(0), dp[l] * factor[j][l]);
          }
        }
        std::fill_n(dqi[0], x.d * kLanes<T>, T(0));
        for (int64_t j = 0; j < n; ++j) {
          const Vector<T> dropped = Load(p[j]) * Load(factor[j]);
          const Vector<T> d = x.scale * (Load(p[j]) * (Load(ds[j]) - delta));
          AddScaled<T>(x.d, d, ks + j * x.d, dqi);
          AddScaled<T>(x.d, d, qi, dks + j * x.d);
          AddScaled<T>(x.dv, dropped, di, dvs + j * x.dv);
        }
      }
      group.Scatter(x.tq, x.d, x.q.row, q_at, dqs, accumulate_dq, dq);
    }
    group.Scatter(x.tk, x.d, x.k.row, k_at, dks, accumulate_dk, dk);
    group.Scatter(x.tk, x.dv, x.v.row, v_at, dvs, accumulate_dv, dv);
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
