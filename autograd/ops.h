// The catalogue of differentiable operations.
//
// Each declaration gives the formula and the shapes. Unless it says otherwise:
// operands are float32 or float64 and of one dtype, broadcasting is NumPy's, an
// axis counts from the end when negative, and a shape, dtype or index that does
// not fit throws wengert::Error. Fused operations name their composition, the
// same value from primitives, which also gives derivatives of any order.
#ifndef WENGERT_AUTOGRAD_OPS_H_
#define WENGERT_AUTOGRAD_OPS_H_

#include <cstdint>
#include <initializer_list>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "autograd/activation.h"
#include "autograd/tape.h"
#include "autograd/tensor.h"

namespace wengert {

// ---- Arithmetic: ops/arithmetic.cc ------------------------------------------

Tensor Add(const Tensor& a, const Tensor& b);
Tensor Sub(const Tensor& a, const Tensor& b);
Tensor Mul(const Tensor& a, const Tensor& b);
Tensor Div(const Tensor& a, const Tensor& b);
// The larger one; a where they are equal, and its gradient goes to a.
Tensor Maximum(const Tensor& a, const Tensor& b);
Tensor Minimum(const Tensor& a, const Tensor& b);
// scale x + shift
Tensor Affine(const Tensor& x, double scale, double shift);
Tensor Neg(const Tensor& x);
// x^p with a constant p. The derivative p x^(p-1) is 0 where p is.
Tensor Pow(const Tensor& x, double p);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return Add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return Sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return Mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return Div(a, b); }
inline Tensor operator-(const Tensor& x) { return Neg(x); }
inline Tensor operator+(const Tensor& x, double c) { return Affine(x, 1, c); }
inline Tensor operator+(double c, const Tensor& x) { return Affine(x, 1, c); }
inline Tensor operator-(const Tensor& x, double c) { return Affine(x, 1, -c); }
inline Tensor operator-(double c, const Tensor& x) { return Affine(x, -1, c); }
inline Tensor operator*(const Tensor& x, double c) { return Affine(x, c, 0); }
inline Tensor operator*(double c, const Tensor& x) { return Affine(x, c, 0); }
// A true division: x / c, not x times the rounded 1 / c.
inline Tensor operator/(const Tensor& x, double c) {
  return Div(x, Tensor::Scalar(c, x.dtype()));
}

// Comparisons: bool results without gradients. Any one dtype.
Tensor Equal(const Tensor& a, const Tensor& b);
Tensor Less(const Tensor& a, const Tensor& b);
Tensor Greater(const Tensor& a, const Tensor& b);

// ---- Functions of one argument: ops/elementwise.cc --------------------------

Tensor Exp(const Tensor& x);
Tensor Log(const Tensor& x);
Tensor Tanh(const Tensor& x);
Tensor Sigmoid(const Tensor& x);
Tensor Erf(const Tensor& x);
Tensor Erfc(const Tensor& x);
Tensor Square(const Tensor& x);
Tensor Sqrt(const Tensor& x);
// 1 / sqrt(x)
Tensor Rsqrt(const Tensor& x);

// Fused activations. ReLU is max(0, x), with slope 0 at 0. GELU is x Phi(x)
// (Hendrycks, Gimpel 2016): the exact form x/2 erfc(-x / sqrt 2), and the tanh
// form x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3). SiLU is x sigmoid(x).
Tensor Relu(const Tensor& x);
Tensor Gelu(const Tensor& x);
Tensor GeluTanh(const Tensor& x);
Tensor Silu(const Tensor& x);
// The one that f names.
Tensor Activate(Activation f, const Tensor& x);
Tensor ActivateComposed(Activation f, const Tensor& x);

// ---- Reductions: ops/reduce.cc ----------------------------------------------
// Over `axes` (none listed: all of them). With keep_dims a reduced axis stays
// with size 1.

// A list of axes: Sum(x), Sum(x, -1), Sum(x, {0, 2}). None means all.
class Axes {
 public:
  Axes() = default;
  Axes(int axis) : axes_{axis} {}
  Axes(std::initializer_list<int> axes) : axes_(axes) {}
  absl::Span<const int> get() const { return axes_; }

 private:
  absl::InlinedVector<int, 6> axes_;
};
struct ReduceOptions {
  bool keep_dims = false;
};
Tensor Sum(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
Tensor Mean(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
// The gradient goes to the first element that attains the maximum.
Tensor Max(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
// log sum exp(x), stable; -inf, with gradient 0, where all are -inf.
Tensor LogSumExp(const Tensor& x, const Axes& axes = {},
                 ReduceOptions options = {});
// Sums over what broadcasting `shape` to x's shape repeats: the gradient of
// BroadcastTo.
Tensor SumTo(const Tensor& x, const Shape& shape);
Tensor BroadcastTo(const Tensor& x, const Shape& shape);
// Index of the first largest element along one axis: int64, no gradient.
Tensor ArgMax(const Tensor& x, int axis);

// ---- Products: ops/matmul.cc ------------------------------------------------

struct MatMulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};
// op(a) op(b) over the last two axes; [..., m, k] x [..., k, n] -> [..., m, n].
// Leading dimensions broadcast.
Tensor MatMul(const Tensor& a, const Tensor& b, MatMulOptions options = {});
// Fused: x Wᵀ + b; x [..., in], W [out, in], b [out] or undefined.
Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
Tensor LinearComposed(const Tensor& x, const Tensor& weight,
                      const Tensor& bias = {});
// Fused: Linear(Activate(f, x), weight, bias), which keeps x alone for
// backward, where f(x) is computed again.
Tensor ActivatedLinear(Activation f, const Tensor& x, const Tensor& weight,
                       const Tensor& bias = {});

// ---- Shape and place: ops/move.cc -------------------------------------------
// Any dtype; gradients for floats.

// The same elements in another shape, sharing memory. One dimension may be -1.
Tensor Reshape(const Tensor& x, absl::Span<const int64_t> dims);
Tensor Reshape(const Tensor& x, std::initializer_list<int64_t> dims);
Tensor Reshape(const Tensor& x, const Shape& shape);
// Dimension i of the result is dimension axes[i] of x.
Tensor Permute(const Tensor& x, absl::Span<const int> axes);
Tensor Permute(const Tensor& x, std::initializer_list<int> axes);
// Swaps the last two axes.
Tensor Transpose(const Tensor& x);
// x[.., start : start + length, ..] along `axis`. Shares memory when `axis` is
// the first.
Tensor Slice(const Tensor& x, int axis, int64_t start, int64_t length);
Tensor Concat(absl::Span<const Tensor> xs, int axis);
// table[ids], rows of any table [n, ...]; ids int32 or int64 of any shape ->
// ids.shape + table.shape[1:]. The row `padding_id` (>= 0) gets no gradient.
Tensor Embedding(const Tensor& table, const Tensor& ids,
                 int64_t padding_id = -1);
// rows[ids[i]] += x[i] on zeros [n_rows, ...]: the gradient of Embedding.
Tensor ScatterRows(const Tensor& x, const Tensor& ids, int64_t n_rows,
                   int64_t padding_id = -1);
// condition ? a : b; condition is bool.
Tensor Where(const Tensor& condition, const Tensor& a, const Tensor& b);
// `value` where mask (bool) is true, x elsewhere.
Tensor MaskedFill(const Tensor& x, const Tensor& mask, double value);

// ---- Softmax: ops/softmax.cc ------------------------------------------------

// Fused. exp(x) / sum exp(x) along one axis, stable; a slice that is all -inf
// gives zeros.
Tensor Softmax(const Tensor& x, int axis = -1);
Tensor SoftmaxComposed(const Tensor& x, int axis = -1);
// Fused. x - LogSumExp(x).
Tensor LogSoftmax(const Tensor& x, int axis = -1);
Tensor LogSoftmaxComposed(const Tensor& x, int axis = -1);

// ---- Layer norm: ops/layer_norm.cc ------------------------------------------

// Fused. (x - mean) / sqrt(variance + eps) * gain + bias over the last axis
// (Ba, Kiros, Hinton 2016); variance divides by the width. gain and bias are
// [width] or undefined.
Tensor LayerNorm(const Tensor& x, const Tensor& gain = {},
                 const Tensor& bias = {}, double eps = 1e-5);
Tensor LayerNormComposed(const Tensor& x, const Tensor& gain = {},
                         const Tensor& bias = {}, double eps = 1e-5);

// ---- Dropout: ops/dropout.cc ------------------------------------------------

// Under a training tape, each element is 0 with probability p in [0, 1] and
// x / (1 - p) otherwise (Srivastava et al. 2014). Under Tape::kEval, without a
// tape, or with p = 0: x. Under a tape without a generator p > 0 throws.
Tensor Dropout(const Tensor& x, double p);

// ---- Attention: ops/attention.cc --------------------------------------------

struct AttentionOptions {
  // Query i sees key j only if j <= i + Tk - Tq: the last query is aligned with
  // the last key.
  bool causal = false;
  Tensor key_mask = {};  // bool [B, Tk], true = attend (key padding)
  Tensor mask = {};      // bool, broadcasts to [B, H, Tq, Tk], true = attend
  Tensor bias = {};      // float, broadcasts to [B, H, Tq, Tk], is added
  double dropout = 0;    // of the weights, under a training tape
  double scale = 0;      // 0 means 1 / sqrt(D)
};
// Fused. softmax(scale q kᵀ + bias, masked) v (Vaswani et al. 2017);
// q [B, Tq, H, D], k [B, Tk, Hkv, D], v [B, Tk, Hkv, Dv] -> [B, Tq, H, Dv].
// Query head h reads key head h / (H / Hkv). A query that may attend to nothing
// gives zeros.
Tensor Attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options = {});
// The same on one packed array qkv [B, T, 3, H, D], without copies.
Tensor PackedAttention(const Tensor& qkv, const AttentionOptions& options = {});
// Attention to the first n_keys rows of k and v [B, capacity, Hkv, D], in
// place: for the keys and values of a cache that has room for more (masks have
// n_keys for Tk). Throws where a tape would record it: it has no gradients.
Tensor CachedAttention(const Tensor& q, const Tensor& k, const Tensor& v,
                       int64_t n_keys, const AttentionOptions& options = {});
struct AttentionResult {
  Tensor out;      // [B, Tq, H, Dv]
  Tensor weights;  // [B, H, Tq, Tk], before dropout
};
// From primitives, and with its weights.
AttentionResult AttentionWithWeights(const Tensor& q, const Tensor& k,
                                     const Tensor& v,
                                     const AttentionOptions& options = {});

// ---- Losses: ops/cross_entropy.cc -------------------------------------------

enum class Reduction {
  kMean,  // divides by the number of targets that are not ignored (0 if none)
  kSum,
  kNone,  // one loss for each target
};
struct CrossEntropyOptions {
  Reduction reduction = Reduction::kMean;
  int64_t ignore_index = -100;
  double label_smoothing = 0;  // s in [0, 1]
};
// Fused. -(1 - s) log p[target] - s/C sum_c log p[c], p = softmax(logits);
// logits [..., C], targets int32 or int64 [...]. An ignored target has loss 0
// and no gradient.
Tensor CrossEntropy(const Tensor& logits, const Tensor& targets,
                    CrossEntropyOptions options = {});
Tensor CrossEntropyComposed(const Tensor& logits, const Tensor& targets,
                            CrossEntropyOptions options = {});

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_OPS_H_
