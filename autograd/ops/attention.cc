// Scaled dot-product attention: fused, packed, and from primitives.
#include "autograd/kernels/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "autograd/ops.h"
#include "autograd/ops/dropout.h"
#include "autograd/ops/op_util.h"

namespace wengert {
namespace {

struct Sizes {
  int64_t b, h, hkv, tq, tk, d, dv;
};

// What is not a tensor in a call.
struct Settings {
  bool causal;
  double scale;
  DropoutDraw dropout;
};

Sizes CheckOperands(const char* op, const Tensor& q, const Tensor& k,
                    const Tensor& v) {
  CheckFloats(op, {q, k, v});
  const bool ranks = q.rank() == 4 && k.rank() == 4 && v.rank() == 4;
  if (!ranks || k.dim(0) != q.dim(0) || v.dim(0) != q.dim(0) ||
      v.dim(1) != k.dim(1) || k.dim(2) != v.dim(2) || k.dim(3) != q.dim(3) ||
      k.dim(2) == 0 || q.dim(2) % k.dim(2) != 0) {
    Throw(op, "q ", Describe(q), ", k ", Describe(k), ", v ", Describe(v),
          "; wanted q [B, Tq, H, D], k [B, Tk, Hkv, D], v [B, Tk, Hkv, Dv] "
          "with H a multiple of Hkv");
  }
  return {q.dim(0), q.dim(2), k.dim(2), q.dim(1), k.dim(1), q.dim(3), v.dim(3)};
}

void CheckMasks(const Sizes& s, DType dtype, const AttentionOptions& o) {
  const Shape scores{s.b, s.h, s.tq, s.tk};
  if (o.key_mask.defined() && (o.key_mask.dtype() != DType::kBool ||
                               o.key_mask.shape() != Shape{s.b, s.tk})) {
    Throw("Attention", "key_mask ", Describe(o.key_mask), "; wanted bool ",
          Shape{s.b, s.tk}.ToString());
  }
  if (o.mask.defined() && (o.mask.dtype() != DType::kBool ||
                           !BroadcastsTo(o.mask.shape(), scores))) {
    Throw("Attention", "mask ", Describe(o.mask),
          "; wanted bool that broadcasts to [B, H, Tq, Tk] = ",
          scores.ToString());
  }
  if (o.bias.defined() &&
      (o.bias.dtype() != dtype || !BroadcastsTo(o.bias.shape(), scores))) {
    Throw("Attention", "bias ", Describe(o.bias), "; wanted ", Name(dtype),
          " that broadcasts to [B, H, Tq, Tk] = ", scores.ToString());
  }
}

Settings SettingsOf(const Sizes& s, const AttentionOptions& o) {
  // Without features all scores are 0, which no scale may make NaN.
  const double features = static_cast<double>(std::max<int64_t>(1, s.d));
  const double scale = o.scale != 0 ? o.scale : 1 / std::sqrt(features);
  return {o.causal, scale, DrawDropout("Attention", o.dropout)};
}

std::array<int64_t, 4> BroadcastStrides(const Shape& shape) {
  std::array<int64_t, 4> strides = {};
  int64_t stride = 1;
  for (int i = 1; i <= shape.rank(); ++i) {
    const int64_t n = shape[shape.rank() - i];
    strides[4 - i] = n == 1 ? 0 : stride;
    stride *= n;
  }
  return strides;
}

// Strides are those of separate operands.
template <class T>
kernels::AttentionArgs<T> ArgsOf(const Sizes& s, const Settings& settings,
                                 const Tensor& key_mask, const Tensor& mask,
                                 const Tensor& bias) {
  kernels::AttentionArgs<T> args;
  args.batch = s.b, args.heads = s.h, args.kv_heads = s.hkv;
  args.tq = s.tq, args.tk = s.tk, args.d = s.d, args.dv = s.dv;
  args.q = {s.tq * s.h * s.d, s.h * s.d};
  args.k = {s.tk * s.hkv * s.d, s.hkv * s.d};
  args.v = {s.tk * s.hkv * s.dv, s.hkv * s.dv};
  args.out = {s.tq * s.h * s.dv, s.h * s.dv};
  args.scale = static_cast<T>(settings.scale);
  args.causal = settings.causal;
  args.dropout_p = settings.dropout.p;
  args.seed = settings.dropout.seed, args.offset = settings.dropout.offset;
  if (key_mask.defined()) args.key_mask = key_mask.data<bool>();
  if (mask.defined()) {
    args.mask = mask.data<bool>();
    args.mask_strides = BroadcastStrides(mask.shape());
  }
  if (bias.defined()) {
    args.bias = bias.data<T>();
    args.bias_strides = BroadcastStrides(bias.shape());
  }
  return args;
}

// The same for the parts of a packed array.
template <class T>
kernels::AttentionArgs<T> PackedArgs(const Sizes& s, const Settings& settings,
                                     const Tensor& key_mask, const Tensor& mask,
                                     const Tensor& bias) {
  auto args = ArgsOf<T>(s, settings, key_mask, mask, bias);
  args.q = args.k = args.v = {s.tq * 3 * s.h * s.d, 3 * s.h * s.d};
  return args;
}

// True where query i may see key j, [Tq, Tk].
Tensor CausalMask(int64_t tq, int64_t tk) {
  Tensor mask = Tensor::Empty({tq, tk}, DType::kBool);
  for (int64_t i = 0; i < tq; ++i) {
    for (int64_t j = 0; j < tk; ++j) {
      Out<bool>(mask)[i * tk + j] = j <= i + tk - tq;
    }
  }
  return mask;
}

// Repeats each key head for the query heads that share it: [B, T, H, D].
Tensor RepeatHeads(const Tensor& x, int64_t h) {
  const int64_t b = x.dim(0), t = x.dim(1), hkv = x.dim(2), d = x.dim(3);
  if (hkv == h) return x;
  const Tensor grouped = Reshape(x, {b, t, hkv, 1, d});
  return Reshape(BroadcastTo(grouped, Shape{b, t, hkv, h / hkv, d}),
                 {b, t, h, d});
}

// softmax(scale q kᵀ + bias, masked) v, written with primitives.
AttentionResult Composed(const Tensor& q, const Tensor& k, const Tensor& v,
                         const Settings& settings, const Tensor& key_mask,
                         const Tensor& mask, const Tensor& bias) {
  const double lowest = -std::numeric_limits<double>::infinity();
  const int64_t b = q.dim(0), h = q.dim(2), tq = q.dim(1), tk = k.dim(1);
  const auto heads_first = [&](const Tensor& x) {
    return Permute(RepeatHeads(x, h), {0, 2, 1, 3});
  };
  const auto hide = [&](const Tensor& scores, const Tensor& allowed) {
    return Where(allowed, scores, Tensor::Scalar(lowest, q.dtype()));
  };
  Tensor scores = MatMul(heads_first(q), heads_first(k), {.transpose_b = true});
  scores = scores * settings.scale;
  if (bias.defined()) scores = scores + bias;
  if (settings.causal) scores = hide(scores, CausalMask(tq, tk));
  if (mask.defined()) scores = hide(scores, mask);
  if (key_mask.defined()) {
    scores = hide(scores, Reshape(key_mask, {b, 1, 1, tk}));
  }
  const Tensor weights = SoftmaxComposed(scores);
  const Tensor dropped = DropoutWith(weights, settings.dropout);
  return {Permute(MatMul(dropped, heads_first(v)), {0, 2, 1, 3}), weights};
}

// The parts of a packed array as operands of their own.
std::array<Tensor, 3> Unpack(const Tensor& qkv) {
  const Shape part{qkv.dim(0), qkv.dim(1), qkv.dim(3), qkv.dim(4)};
  return {Reshape(Slice(qkv, 2, 0, 1), part),
          Reshape(Slice(qkv, 2, 1, 1), part),
          Reshape(Slice(qkv, 2, 2, 1), part)};
}

bool IsTracked(const Tensor& x) {
  return Tape::Current() && Tape::Current()->Tracks(x);
}

}  // namespace

AttentionResult AttentionWithWeights(const Tensor& q, const Tensor& k,
                                     const Tensor& v,
                                     const AttentionOptions& o) {
  const Sizes s = CheckOperands("Attention", q, k, v);
  CheckMasks(s, q.dtype(), o);
  return Composed(q, k, v, SettingsOf(s, o), o.key_mask, o.mask, o.bias);
}

// p = softmax(scale q kᵀ + bias, masked), y = p v. With e = dy vᵀ:
// dv = pᵀ dy, ds = p (e - sum p e), dq = scale ds k, dk = scale dsᵀ q
Tensor Attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& o) {
  // The kernels make no gradient of the bias; a trained one takes primitives.
  if (IsTracked(o.bias)) return AttentionWithWeights(q, k, v, o).out;
  const Sizes s = CheckOperands("Attention", q, k, v);
  CheckMasks(s, q.dtype(), o);
  const Settings settings = SettingsOf(s, o);
  Tensor y = Tensor::Empty({s.b, s.tq, s.h, s.dv}, q.dtype());
  Tensor lse = Tensor::Empty({s.b, s.h, s.tq}, q.dtype());
  WithFloat(q.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::Attention(ArgsOf<T>(s, settings, o.key_mask, o.mask, o.bias),
                       q.data<T>(), k.data<T>(), v.data<T>(), Out<T>(y),
                       Out<T>(lse));
  });
  Record(
      "Attention", y, {q, k, v},
      Save(q, k, v, y, lse, o.key_mask, o.mask, o.bias),
      [s, settings](GradientSink& g, const Tensor& q, const Tensor& k,
                    const Tensor& v, const Tensor& y, const Tensor& lse,
                    const Tensor& key_mask, const Tensor& mask,
                    const Tensor& bias) {
        WithFloat(q.dtype(), [&](auto t) {
          using T = decltype(t);
          GradientSink::Destination<T> d[3] = {};
          for (int i = 0; i < 3; ++i) {
            if (g.Needs(i)) d[i] = g.Into<T>(i);
          }
          kernels::AttentionGrad(ArgsOf<T>(s, settings, key_mask, mask, bias),
                                 q.data<T>(), k.data<T>(), v.data<T>(),
                                 y.data<T>(), lse.data<T>(), g.dy().data<T>(),
                                 d[0].accumulate, d[0].data, d[1].accumulate,
                                 d[1].data, d[2].accumulate, d[2].data);
        });
      },
      [settings](const Tensor& q, const Tensor& k, const Tensor& v,
                 const Tensor&, const Tensor&, const Tensor& key_mask,
                 const Tensor& mask, const Tensor& bias) {
        return Composed(q, k, v, settings, key_mask, mask, bias).out;
      });
  return y;
}

// As Attention, with k, v = k[:, :n_keys], v[:, :n_keys]
Tensor CachedAttention(const Tensor& q, const Tensor& k, const Tensor& v,
                       int64_t n_keys, const AttentionOptions& o) {
  Sizes s = CheckOperands("CachedAttention", q, k, v);
  if (n_keys < 0 || n_keys > s.tk) {
    Throw("CachedAttention", "n_keys ", n_keys, " of k ", Describe(k),
          "; wanted 0 to ", s.tk);
  }
  const Tape* tape = Tape::Current();
  if (tape && tape->recording() &&
      (IsTracked(q) || IsTracked(k) || IsTracked(v) || IsTracked(o.bias))) {
    Throw("CachedAttention",
          "a tape records, and cached keys have no gradients; decode without "
          "a tape or under Tape::Pause");
  }
  const int64_t capacity = std::exchange(s.tk, n_keys);
  CheckMasks(s, q.dtype(), o);
  const Settings settings = SettingsOf(s, o);
  Tensor y = Tensor::Empty({s.b, s.tq, s.h, s.dv}, q.dtype());
  Tensor lse = Tensor::Empty({s.b, s.h, s.tq}, q.dtype());
  WithFloat(q.dtype(), [&](auto t) {
    using T = decltype(t);
    auto args = ArgsOf<T>(s, settings, o.key_mask, o.mask, o.bias);
    args.k.batch = capacity * s.hkv * s.d;
    args.v.batch = capacity * s.hkv * s.dv;
    kernels::Attention(args, q.data<T>(), k.data<T>(), v.data<T>(), Out<T>(y),
                       Out<T>(lse));
  });
  return y;
}

// As Attention, with q, k, v = qkv[:, :, 0], [:, :, 1], [:, :, 2]
Tensor PackedAttention(const Tensor& qkv, const AttentionOptions& o) {
  CheckFloats("PackedAttention", {qkv});
  if (qkv.rank() != 5 || qkv.dim(2) != 3) {
    Throw("PackedAttention", "qkv ", Describe(qkv), "; wanted [B, T, 3, H, D]");
  }
  if (IsTracked(o.bias)) {
    const auto [q, k, v] = Unpack(qkv);
    return AttentionWithWeights(q, k, v, o).out;
  }
  const int64_t t = qkv.dim(1), h = qkv.dim(3), d = qkv.dim(4);
  const Sizes s{qkv.dim(0), h, h, t, t, d, d};
  CheckMasks(s, qkv.dtype(), o);
  const Settings settings = SettingsOf(s, o);
  Tensor y = Tensor::Empty({s.b, t, h, d}, qkv.dtype());
  Tensor lse = Tensor::Empty({s.b, h, t}, qkv.dtype());
  WithFloat(qkv.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* q = qkv.data<T>();
    kernels::Attention(PackedArgs<T>(s, settings, o.key_mask, o.mask, o.bias),
                       q, q + h * d, q + 2 * h * d, Out<T>(y), Out<T>(lse));
  });
  Record(
      "PackedAttention", y, {qkv},
      Save(qkv, y, lse, o.key_mask, o.mask, o.bias),
      [s, settings](GradientSink& g, const Tensor& qkv, const Tensor& y,
                    const Tensor& lse, const Tensor& key_mask,
                    const Tensor& mask, const Tensor& bias) {
        WithFloat(qkv.dtype(), [&](auto tag) {
          using T = decltype(tag);
          const int64_t part = s.h * s.d;
          const T* q = qkv.data<T>();
          const auto [dq, add] = g.Into<T>(0);
          kernels::AttentionGrad(
              PackedArgs<T>(s, settings, key_mask, mask, bias), q, q + part,
              q + 2 * part, y.data<T>(), lse.data<T>(), g.dy().data<T>(), add,
              dq, add, dq + part, add, dq + 2 * part);
        });
      },
      [settings](const Tensor& qkv, const Tensor&, const Tensor&,
                 const Tensor& key_mask, const Tensor& mask,
                 const Tensor& bias) {
        const auto [q, k, v] = Unpack(qkv);
        return Composed(q, k, v, settings, key_mask, mask, bias).out;
      });
  return y;
}

}  // namespace wengert
