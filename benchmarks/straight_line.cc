// As fast as plain loops over arrays of constant size go, with one help to the
// compiler: the sums of a product stand in vectors, which it keeps in registers
// where it would leave an array of floats in memory. Compiled so that a * b + c
// becomes one instruction.
#include "benchmarks/straight_line.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "autograd/kernels/loop.h"
#include "autograd/kernels/vecmath.h"

namespace wengert::benchmarks {
namespace {

using P = StraightLineToy::Parameters;
constexpr int kWidth = StraightLineToy::kWidth;
constexpr int kHidden = StraightLineToy::kHidden;
constexpr int kLength = StraightLineToy::kLength;
constexpr int kVocabulary = StraightLineToy::kVocabulary;
constexpr int kBatch = 9;
constexpr int kRows = kBatch * kLength;

// [rows, M]: one row for each word of the batch.
template <int M>
using Rows = float[kRows][M];

struct Data {
  int x[kRows], y[kRows];
};
constexpr Data kData = [] {  // "a is b" -> "A = B"
  Data d = {};
  for (int i = 0; i < kBatch; ++i) {
    const int a = i / 3, b = i % 3;
    d.x[3 * i] = a, d.x[3 * i + 1] = 3, d.x[3 * i + 2] = b;
    d.y[3 * i] = a + 4, d.y[3 * i + 1] = 7, d.y[3 * i + 2] = b + 4;
  }
  return d;
}();

// ---- Products ---------------------------------------------------------------

// M floats in vectors: of 8, and the last one of 4 where M is 12 or 36.
template <int M>
struct Vectors {
  static_assert(M % 4 == 0 && M >= 8);
  static constexpr int kWhole = M / 8, kRest = M % 8;
  typedef float Vector8 __attribute__((vector_size(32)));
  typedef float Vector4 __attribute__((vector_size(16)));
  Vector8 whole[kWhole];
  Vector4 rest;

  static Vectors Load(const float* p) {
    Vectors r = {};
#pragma GCC unroll 8
    for (int j = 0; j < kWhole; ++j) std::memcpy(&r.whole[j], p + 8 * j, 32);
    if (kRest) std::memcpy(&r.rest, p + 8 * kWhole, 16);
    return r;
  }
  void Store(float* p) const {
#pragma GCC unroll 8
    for (int j = 0; j < kWhole; ++j) std::memcpy(p + 8 * j, &whole[j], 32);
    if (kRest) std::memcpy(p + 8 * kWhole, &rest, 16);
  }
  void AddProduct(float a, const Vectors& b) {
#pragma GCC unroll 8
    for (int j = 0; j < kWhole; ++j) whole[j] += a * b.whole[j];
    if (kRest) rest += a * b.rest;
  }
};

// y[i] = start(i) + sum over k of a[i * a_row + k * a_step] b[k], for i < N. As
// many rows at a time as their sums fit in 16 registers.
template <int N, int K, int M, class Start>
void Products(const float* a, int a_row, int a_step, const float (&b)[K][M],
              const Start& start, float (&y)[N][M]) {
  const auto tile = [&]<int kTile>(int i) {
    Vectors<M> sums[kTile];
#pragma GCC unroll 8
    for (int t = 0; t < kTile; ++t) sums[t] = start(i + t);
    for (int k = 0; k < K; ++k) {
      const auto row = Vectors<M>::Load(b[k]);
#pragma GCC unroll 8
      for (int t = 0; t < kTile; ++t) {
        sums[t].AddProduct(a[(i + t) * a_row + k * a_step], row);
      }
    }
#pragma GCC unroll 8
    for (int t = 0; t < kTile; ++t) sums[t].Store(y[i + t]);
  };
  constexpr int kTile = M > 12 ? 2 : 6;
  int i = 0;
  for (; i + kTile <= N; i += kTile) tile.template operator()<kTile>(i);
  if constexpr (N % kTile > 0) tile.template operator()<N % kTile>(i);
}

// y = x w + bias
template <int K, int M>
void Affine(const Rows<K>& x, const float (&w)[K][M], const float (&bias)[M],
            Rows<M>& y) {
  const auto b = Vectors<M>::Load(bias);
  Products(
      x[0], K, 1, w, [&](int) { return b; }, y);
}

// y = x w
template <int K, int M>
void Multiply(const Rows<K>& x, const float (&w)[K][M], Rows<M>& y) {
  Products(
      x[0], K, 1, w, [](int) { return Vectors<M>{}; }, y);
}

// y += x w
template <int K, int M>
void AddMultiply(const Rows<K>& x, const float (&w)[K][M], Rows<M>& y) {
  Products(
      x[0], K, 1, w, [&](int i) { return Vectors<M>::Load(y[i]); }, y);
}

// dw = xᵀ dy
template <int K, int M>
void WeightGradient(const Rows<K>& x, const Rows<M>& dy, float (&dw)[K][M]) {
  Products(
      x[0], 1, K, dy, [](int) { return Vectors<M>{}; }, dw);
}

template <int M>
void SumRows(const Rows<M>& x, float (&sum)[M]) {
  float s[M] = {};
  for (int n = 0; n < kRows; ++n) {
    for (int j = 0; j < M; ++j) s[j] += x[n][j];
  }
  for (int j = 0; j < M; ++j) sum[j] = s[j];
}

template <int N, int M>
struct Transposed {
  float data[M][N];
  explicit Transposed(const float (&x)[N][M]) {
    for (int i = 0; i < N; ++i) {
      for (int j = 0; j < M; ++j) data[j][i] = x[i][j];
    }
  }
};

float Sum(const float (&x)[12]) {
  float s[4];
  for (int j = 0; j < 4; ++j) s[j] = x[j] + x[j + 4] + x[j + 8];
  return (s[0] + s[2]) + (s[1] + s[3]);
}

// ---- Layer norm -------------------------------------------------------------

struct LayerNorm {
  Rows<kWidth> normal;  // (x - mean) rstd
  float rstd[kRows];

  void Forward(const Rows<kWidth>& x, const float (&gain)[kWidth],
               const float (&bias)[kWidth], Rows<kWidth>& y) {
    for (int n = 0; n < kRows; ++n) {
      float c[kWidth], square[kWidth];
      const float mean = Sum(x[n]) / kWidth;
      for (int j = 0; j < kWidth; ++j) c[j] = x[n][j] - mean;
      for (int j = 0; j < kWidth; ++j) square[j] = c[j] * c[j];
      const float r = 1 / std::sqrt(Sum(square) / kWidth + 1e-5f);
      rstd[n] = r;
      for (int j = 0; j < kWidth; ++j) {
        normal[n][j] = c[j] * r;
        y[n][j] = normal[n][j] * gain[j] + bias[j];
      }
    }
  }

  // Turns the gradient of y in `d` into that of x.
  void Backward(const float (&gain)[kWidth], Rows<kWidth>& d,
                float (&dgain)[kWidth], float (&dbias)[kWidth]) const {
    float sum_gain[kWidth] = {}, sum_bias[kWidth] = {};
    for (int n = 0; n < kRows; ++n) {
      float g[kWidth], gh[kWidth];
      for (int j = 0; j < kWidth; ++j) {
        sum_gain[j] += d[n][j] * normal[n][j];
        sum_bias[j] += d[n][j];
        g[j] = d[n][j] * gain[j];
        gh[j] = g[j] * normal[n][j];
      }
      const float mean_g = Sum(g) / kWidth, mean_gh = Sum(gh) / kWidth;
      for (int j = 0; j < kWidth; ++j) {
        d[n][j] = rstd[n] * (g[j] - mean_g - normal[n][j] * mean_gh);
      }
    }
    for (int j = 0; j < kWidth; ++j) dgain[j] = sum_gain[j];
    for (int j = 0; j < kWidth; ++j) dbias[j] = sum_bias[j];
  }
};

// ---- Attention --------------------------------------------------------------

// All pairs of a sentence and a head lie side by side, innermost, so that they
// go through the same vector instructions.
struct Attention {
  static constexpr int kHeads = 3, kHeadWidth = kWidth / kHeads;
  static constexpr int kPairs = 32;     // 9 x 3 in whole vectors
  static constexpr float kScale = 0.5;  // 1 / sqrt(kHeadWidth)
  using Heads = float[kLength][kHeadWidth][kPairs];
  using Weights = float[kLength][kLength][kPairs];

  Heads q = {}, k = {}, v = {};
  Weights p;

  // f(element of rows, element of heads); the heads of a row stand in its
  // columns from `column` on.
  template <class R, class H, class F>
  static void Match(R& rows, int column, H& heads, const F& f) {
    for (int b = 0; b < kBatch; ++b) {
      for (int h = 0; h < kHeads; ++h) {
        for (int t = 0; t < kLength; ++t) {
          for (int d = 0; d < kHeadWidth; ++d) {
            f(rows[b * kLength + t][column + h * kHeadWidth + d],
              heads[t][d][b * kHeads + h]);
          }
        }
      }
    }
  }
  static constexpr auto kGather = [](float row, float& head) { head = row; };
  static constexpr auto kScatter = [](float& row, float head) { row = head; };

  void Forward(const Rows<3 * kWidth>& qkv, Rows<kWidth>& y) {
    Match(qkv, 0, q, kGather);
    Match(qkv, kWidth, k, kGather);
    Match(qkv, 2 * kWidth, v, kGather);
    for (int t = 0; t < kLength; ++t) {
      for (int i = 0; i < kPairs; ++i) {
        float s[kLength] = {};
        for (int u = 0; u < kLength; ++u) {
          for (int d = 0; d < kHeadWidth; ++d) s[u] += q[t][d][i] * k[u][d][i];
        }
        float most = s[0] > s[1] ? s[0] : s[1];
        most = most > s[2] ? most : s[2];
        for (int u = 0; u < kLength; ++u) {
          s[u] = kernels::Exp(kScale * (s[u] - most));
        }
        const float inverse = 1 / (s[0] + s[1] + s[2]);
        for (int u = 0; u < kLength; ++u) p[t][u][i] = s[u] * inverse;
      }
    }
    Heads out;
    for (int t = 0; t < kLength; ++t) {
      for (int d = 0; d < kHeadWidth; ++d) {
        for (int i = 0; i < kPairs; ++i) {
          float sum = 0;
          for (int u = 0; u < kLength; ++u) sum += p[t][u][i] * v[u][d][i];
          out[t][d][i] = sum;
        }
      }
    }
    Match(y, 0, out, kScatter);
  }

  void Backward(const Rows<kWidth>& dy, Rows<3 * kWidth>& dqkv) const {
    Heads dout = {}, dq, dk, dv;
    Weights ds;
    Match(dy, 0, dout, kGather);
    for (int t = 0; t < kLength; ++t) {
      for (int i = 0; i < kPairs; ++i) {
        float dp[kLength] = {}, mean = 0;
        for (int u = 0; u < kLength; ++u) {
          for (int d = 0; d < kHeadWidth; ++d) {
            dp[u] += dout[t][d][i] * v[u][d][i];
          }
          mean += p[t][u][i] * dp[u];
        }
        for (int u = 0; u < kLength; ++u) {
          ds[t][u][i] = kScale * p[t][u][i] * (dp[u] - mean);
        }
      }
    }
    for (int t = 0; t < kLength; ++t) {
      for (int d = 0; d < kHeadWidth; ++d) {
        for (int i = 0; i < kPairs; ++i) {
          float sum_q = 0, sum_k = 0, sum_v = 0;
          for (int u = 0; u < kLength; ++u) {
            sum_q += ds[t][u][i] * k[u][d][i];
            sum_k += ds[u][t][i] * q[u][d][i];
            sum_v += p[u][t][i] * dout[u][d][i];
          }
          dq[t][d][i] = sum_q, dk[t][d][i] = sum_k, dv[t][d][i] = sum_v;
        }
      }
    }
    Match(dqkv, 0, dq, kScatter);
    Match(dqkv, kWidth, dk, kScatter);
    Match(dqkv, 2 * kWidth, dv, kScatter);
  }
};

// ---- Loss and the rest ------------------------------------------------------

// Returns the mean loss of the rows and writes its gradient.
float CrossEntropy(const Rows<kVocabulary>& logits,
                   Rows<kVocabulary>& dlogits) {
  float loss = 0, sums[kRows];
  for (int n = 0; n < kRows; ++n) {
    const auto& l = logits[n];
    float m[4], e[kVocabulary];
    for (int j = 0; j < 4; ++j) {
      m[j] = std::max(std::max(l[j], l[j + 4]), l[j + 8]);
    }
    const float most = std::max(std::max(m[0], m[1]), std::max(m[2], m[3]));
    for (int j = 0; j < kVocabulary; ++j) e[j] = kernels::Exp(l[j] - most);
    sums[n] = Sum(e);
    const float scale = 1 / (sums[n] * kRows);
    for (int j = 0; j < kVocabulary; ++j) dlogits[n][j] = e[j] * scale;
    dlogits[n][kData.y[n]] -= 1.f / kRows;
    loss += most - l[kData.y[n]];
  }
  for (float& sum : sums) sum = kernels::Log(sum);
  for (float log_sum : sums) loss += log_sum;
  return loss / kRows;
}

// y += x
template <int M>
void Add(const Rows<M>& x, Rows<M>& y) {
  for (int n = 0; n < kRows; ++n) {
    for (int j = 0; j < M; ++j) y[n][j] += x[n][j];
  }
}

// y = y where x > 0, else 0: ReLU, of x itself or of its gradient.
void MaskPositive(const Rows<kHidden>& x, Rows<kHidden>& y) {
  for (int n = 0; n < kRows; ++n) {
    for (int j = 0; j < kHidden; ++j) y[n][j] = x[n][j] > 0 ? y[n][j] : 0;
  }
}

// The arrays of tensor_of(parameter's value).
template <class F>
P Read(const nn::ParameterStore& toy, const F& tensor_of) {
  P p = {};
  const auto vector = [&]<int N>(const char* name, float(&to)[N]) {
    std::copy_n(tensor_of(toy.Find(name)).template data<float>(), N, to);
  };
  const auto matrix = [&]<int N, int M>(const char* name, float(&to)[N][M],
                                        bool transposed) {
    const Tensor x = tensor_of(toy.Find(name));
    for (int i = 0; i < N; ++i) {
      for (int j = 0; j < M; ++j) {
        to[i][j] = x.data<float>()[transposed ? j * N + i : i * M + j];
      }
    }
  };
  matrix("wte.weight", p.words, false);
  matrix("wpe.weight", p.positions, false);
  matrix("layers.0.self_attn.in_proj_weight", p.qkv, true);
  vector("layers.0.self_attn.in_proj_bias", p.qkv_bias);
  matrix("layers.0.self_attn.out_proj.weight", p.proj, true);
  vector("layers.0.self_attn.out_proj.bias", p.proj_bias);
  matrix("layers.0.linear1.weight", p.up, true);
  vector("layers.0.linear1.bias", p.up_bias);
  matrix("layers.0.linear2.weight", p.down, false);
  vector("layers.0.linear2.bias", p.down_bias);
  vector("layers.0.norm1.weight", p.gain1);
  vector("layers.0.norm1.bias", p.bias1);
  vector("layers.0.norm2.weight", p.gain2);
  vector("layers.0.norm2.bias", p.bias2);
  matrix("out.weight", p.out, true);
  vector("out.bias", p.out_bias);
  return p;
}

}  // namespace

P StraightLineToy::Values(const nn::ParameterStore& toy) {
  return Read(toy, [](const Tensor& value) { return value; });
}

P StraightLineToy::Gradients(const nn::ParameterStore& toy) {
  return Read(toy, [](const Tensor& value) { return value.grad(); });
}

float StraightLineToy::Step() {
  const float loss = ForwardAndBackward();
  Adam();
  return loss;
}

float StraightLineToy::ForwardAndBackward() {
  const P& w = values_;
  P& g = gradients_;

  Rows<kWidth> x, attended, sum, y, h;
  for (int n = 0; n < kRows; ++n) {
    for (int j = 0; j < kWidth; ++j) {
      x[n][j] = w.words[kData.x[n]][j] + w.positions[n % kLength][j];
    }
  }
  Rows<3 * kWidth> qkv;
  Affine(x, w.qkv, w.qkv_bias, qkv);
  Attention attention;
  attention.Forward(qkv, attended);
  Affine(attended, w.proj, w.proj_bias, sum);
  Add(x, sum);
  LayerNorm norm1, norm2;
  norm1.Forward(sum, w.gain1, w.bias1, y);
  Rows<kHidden> hidden;
  Affine(y, w.up, w.up_bias, hidden);
  MaskPositive(hidden, hidden);
  Affine(hidden, Transposed(w.down).data, w.down_bias, sum);
  Add(y, sum);
  norm2.Forward(sum, w.gain2, w.bias2, h);
  Rows<kVocabulary> logits, dlogits;
  Affine(h, w.out, w.out_bias, logits);
  const float loss = CrossEntropy(logits, dlogits);

  Rows<kWidth> d;
  WeightGradient(h, dlogits, g.out);
  SumRows(dlogits, g.out_bias);
  Multiply(dlogits, Transposed(w.out).data, d);
  norm2.Backward(w.gain2, d, g.gain2, g.bias2);
  WeightGradient(d, hidden, g.down);
  SumRows(d, g.down_bias);
  Rows<kHidden> dhidden;
  Multiply(d, w.down, dhidden);
  MaskPositive(hidden, dhidden);
  WeightGradient(y, dhidden, g.up);
  SumRows(dhidden, g.up_bias);
  AddMultiply(dhidden, Transposed(w.up).data, d);
  norm1.Backward(w.gain1, d, g.gain1, g.bias1);
  WeightGradient(attended, d, g.proj);
  SumRows(d, g.proj_bias);
  Rows<kWidth> dattended;
  Multiply(d, Transposed(w.proj).data, dattended);
  Rows<3 * kWidth> dqkv;
  attention.Backward(dattended, dqkv);
  WeightGradient(x, dqkv, g.qkv);
  SumRows(dqkv, g.qkv_bias);
  AddMultiply(dqkv, Transposed(w.qkv).data, d);
  std::fill_n(g.words[0], kVocabulary * kWidth, 0.f);
  std::fill_n(g.positions[0], kLength * kWidth, 0.f);
  for (int n = 0; n < kRows; ++n) {
    for (int j = 0; j < kWidth; ++j) {
      g.words[kData.x[n]][j] += d[n][j];
      g.positions[n % kLength][j] += d[n][j];
    }
  }
  return loss;
}

void StraightLineToy::Adam() {
  constexpr double kLr = 1e-3, kBeta1 = 0.9, kBeta2 = 0.999;
  constexpr float kRest1 = 1 - kBeta1, kRest2 = 1 - kBeta2, kEps = 1e-8;
  ++n_steps_;
  const auto step_size =
      static_cast<float>(kLr / (1 - std::pow(kBeta1, n_steps_)));
  const auto root_scale =
      static_cast<float>(1 / std::sqrt(1 - std::pow(kBeta2, n_steps_)));
  // All parameters are one array to it.
  auto* w = reinterpret_cast<float*>(&values_);
  auto* m = reinterpret_cast<float*>(&m_);
  auto* v = reinterpret_cast<float*>(&v_);
  const auto* g = reinterpret_cast<const float*>(&gradients_);
  WENGERT_INDEPENDENT
  for (size_t i = 0; i < sizeof(P) / sizeof(float); ++i) {
    m[i] += kRest1 * (g[i] - m[i]);
    v[i] = static_cast<float>(kBeta2) * v[i] + kRest2 * g[i] * g[i];
    w[i] -= step_size * m[i] / (root_scale * std::sqrt(v[i]) + kEps);
  }
}

}  // namespace wengert::benchmarks
