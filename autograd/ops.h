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
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "autograd/activation.h"
#include "autograd/random.h"
#include "autograd/tape.h"
#include "autograd/tensor.h"

namespace wengert {

// ---- Arithmetic: ops/arithmetic.cc ------------------------------------------

// a + b, a - b, a b and a / b, elementwise: what the operators + - * / do. One
// side of those may be a number.
Tensor Add(const Tensor& a, const Tensor& b);
Tensor Sub(const Tensor& a, const Tensor& b);
Tensor Mul(const Tensor& a, const Tensor& b);
Tensor Div(const Tensor& a, const Tensor& b);
// The larger (smaller) one; a where they are equal, and the gradient goes to a.
Tensor Maximum(const Tensor& a, const Tensor& b);
Tensor Minimum(const Tensor& a, const Tensor& b);
// scale x + shift
Tensor Affine(const Tensor& x, double scale, double shift);
// -x
Tensor Neg(const Tensor& x);
// x^p with a constant p. The derivative p x^(p-1) is 0 where p is.
Tensor Pow(const Tensor& x, double p);
// x^p, elementwise, 1 where p is 0. dx = p x^(p-1), 0 where p is 0; dp = y ln
// x, 0 where x is 0 and p >= 0. A negative x with a p that is no whole number
// gives NaN, and every negative x does as the derivative by p.
Tensor Pow(const Tensor& x, const Tensor& p);
// The angle of the point (x, y) in [-pi, pi], signs of 0 as in C. Both
// gradients are 0 at (0, 0) and at infinity.
Tensor Atan2(const Tensor& y, const Tensor& x);
// a + weight (b - a); exactly b where weight is 1.
Tensor Lerp(const Tensor& a, const Tensor& b, double weight);
Tensor Lerp(const Tensor& a, const Tensor& b, const Tensor& weight);
// min(hi, max(lo, x)), constants first: the gradient is 0 at the bounds too.
// Either bound may be infinite. NaN stays NaN. Throws when lo > hi.
Tensor Clamp(const Tensor& x, double lo, double hi);

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

// c / x
inline Tensor operator/(double c, const Tensor& x) {
  return Div(Tensor::Scalar(c, x.dtype()), x);
}

// ---- Comparisons and logic: ops/compare.cc ----------------------------------

// Comparisons: bool results without gradients. Any one dtype. With NaN all are
// false but NotEqual.
Tensor Equal(const Tensor& a, const Tensor& b);
Tensor NotEqual(const Tensor& a, const Tensor& b);
Tensor Less(const Tensor& a, const Tensor& b);
Tensor LessEqual(const Tensor& a, const Tensor& b);
Tensor Greater(const Tensor& a, const Tensor& b);
Tensor GreaterEqual(const Tensor& a, const Tensor& b);
// Logic of bool arrays; bool results.
Tensor LogicalAnd(const Tensor& a, const Tensor& b);
Tensor LogicalOr(const Tensor& a, const Tensor& b);
Tensor LogicalXor(const Tensor& a, const Tensor& b);
Tensor LogicalNot(const Tensor& x);
// Whether each element is NaN, is +-infinity, is neither. Floats; bool results.
Tensor IsNan(const Tensor& x);
Tensor IsInf(const Tensor& x);
Tensor IsFinite(const Tensor& x);

// ---- Functions of one argument: ops/elementwise.cc, ops/piecewise.cc --------

// e^x
Tensor Exp(const Tensor& x);
// The natural logarithm: -inf of 0, NaN below.
Tensor Log(const Tensor& x);
// (e^x - e^-x) / (e^x + e^-x)
Tensor Tanh(const Tensor& x);
// 1 / (1 + e^-x)
Tensor Sigmoid(const Tensor& x);
// 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x, and 1 minus that,
// accurate where it is small.
Tensor Erf(const Tensor& x);
Tensor Erfc(const Tensor& x);
// x^2
Tensor Square(const Tensor& x);
// The square root; NaN below 0.
Tensor Sqrt(const Tensor& x);
// 1 / sqrt(x)
Tensor Rsqrt(const Tensor& x);
// e^x - 1 and ln(1 + x), accurate near 0.
Tensor Expm1(const Tensor& x);
Tensor Log1p(const Tensor& x);
// Of radians; NaN of infinity.
Tensor Sin(const Tensor& x);
Tensor Cos(const Tensor& x);
// |x|, with slope 0 at 0.
Tensor Abs(const Tensor& x);
// -1, 0 (of x's sign) or 1; NaN of NaN. Gradient 0.
Tensor Sign(const Tensor& x);
// Whole numbers, with gradient 0: the next below, the next above, towards 0,
// and the nearest (ties go to the even one).
Tensor Floor(const Tensor& x);
Tensor Ceil(const Tensor& x);
Tensor Trunc(const Tensor& x);
Tensor Round(const Tensor& x);

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
// Fused. ln(1 + e^(beta x)) / beta, beta > 0, without overflow.
Tensor Softplus(const Tensor& x, double beta = 1);
Tensor SoftplusComposed(const Tensor& x, double beta = 1);
// Fused. ln sigmoid(x) = -softplus(-x).
Tensor LogSigmoid(const Tensor& x);
Tensor LogSigmoidComposed(const Tensor& x);
// Fused. x where x > 0, slope x elsewhere (Maas et al. 2013).
Tensor LeakyRelu(const Tensor& x, double slope = 0.01);
Tensor LeakyReluComposed(const Tensor& x, double slope = 0.01);
// Fused. x where x > 0, alpha (e^x - 1) elsewhere (Clevert et al. 2016).
Tensor Elu(const Tensor& x, double alpha = 1);
Tensor EluComposed(const Tensor& x, double alpha = 1);

// ---- Reductions: ops/reduce.cc, ops/statistics.cc, ops/scan.cc -------------
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
// The sum, 0 of nothing; the sum divided by how many there are.
Tensor Sum(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
Tensor Mean(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
// The largest. The gradient goes to the first element that attains it.
Tensor Max(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
// The smallest. The gradient goes to the first element that attains it.
Tensor Min(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
// Fused. The product; 1 of nothing. Its gradient is the product of the others,
// also where some are 0.
Tensor Prod(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
Tensor ProdComposed(const Tensor& x, const Axes& axes = {},
                    ReduceOptions options = {});
struct VarOptions {
  double correction = 1;  // what is taken from the count n: 0 for all there is
  bool keep_dims = false;
};
// Fused. sum (x - mean)^2 / max(0, n - correction), in two passes: exactly 0 of
// equal elements; NaN where it is 0/0. The standard deviation is its square
// root, with gradient 0 where it is 0.
Tensor Var(const Tensor& x, const Axes& axes = {}, VarOptions options = {});
Tensor VarComposed(const Tensor& x, const Axes& axes = {},
                   VarOptions options = {});
Tensor Std(const Tensor& x, const Axes& axes = {}, VarOptions options = {});
Tensor StdComposed(const Tensor& x, const Axes& axes = {},
                   VarOptions options = {});
// Fused. (sum |x|^p)^(1/p) without overflow, p any number: inf gives the
// largest |x|, -inf the smallest, 0 how many x are not 0 (with gradient 0). Of
// nothing it is 0, or infinity for p < 0. The gradient is 0 where the norm or x
// is 0; among equals of p = +-inf the first takes it.
Tensor Norm(const Tensor& x, double p = 2, const Axes& axes = {},
            ReduceOptions options = {});
Tensor NormComposed(const Tensor& x, double p = 2, const Axes& axes = {},
                    ReduceOptions options = {});
// log sum exp(x), stable; -inf, with gradient 0, where all are -inf.
Tensor LogSumExp(const Tensor& x, const Axes& axes = {},
                 ReduceOptions options = {});
// Sums over what broadcasting `shape` to x's shape repeats: the gradient of
// BroadcastTo.
Tensor SumTo(const Tensor& x, const Shape& shape);
Tensor BroadcastTo(const Tensor& x, const Shape& shape);
// Index of the first largest (smallest) element: int64, no gradient. Over
// several axes it counts through them in row-major order. The first NaN counts
// as largest and as smallest. Throws where there are no elements.
Tensor ArgMax(const Tensor& x, const Axes& axes = {},
              ReduceOptions options = {});
Tensor ArgMin(const Tensor& x, const Axes& axes = {},
              ReduceOptions options = {});
// Whether any is true (of none: false); whether all are (of none: true). Any
// dtype, true where it is not 0; bool results.
Tensor Any(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
Tensor All(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});

// ---- Along one axis: ops/scan.cc, ops/sort.cc -------------------------------

// y[i] = x[0] + .. + x[i] along `axis`. A float32 result is rounded from a
// float64 one.
Tensor CumSum(const Tensor& x, int axis);
// Fused. y[i] = x[0] x[1] .. x[i] along `axis`, rounded likewise.
Tensor CumProd(const Tensor& x, int axis);
Tensor CumProdComposed(const Tensor& x, int axis);
struct Sorted {
  Tensor values;
  Tensor indices;  // int64, into the axis of x; no gradient
};
struct SortOptions {
  bool descending = false;
};
// In order along `axis`; equal elements keep their order, NaN counts as
// largest. Any dtype; gradients of `values` for floats.
Sorted Sort(const Tensor& x, int axis = -1, SortOptions options = {});
struct TopKOptions {
  bool largest = true;  // false: the smallest
};
// The first k of Sort (descending for the largest). Throws unless 0 <= k <= the
// axis' size.
Sorted TopK(const Tensor& x, int64_t k, int axis = -1,
            TopKOptions options = {});

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

// a [m] and b [n] -> a bᵀ [m, n].
Tensor Outer(const Tensor& a, const Tensor& b);
// sum a b of two arrays [n] -> [].
Tensor Dot(const Tensor& a, const Tensor& b);
// Einstein's sum, ops/einsum.cc: "bij,bjk->bik" with one letter for each axis.
// A letter that the result does not have is summed over; one that stands twice
// in an operand takes its diagonal; without "->" the result has the letters
// that stand once, in alphabetical order, capitals first. Spaces are skipped;
// there is no ellipsis, and a size of 1 does not repeat. Of several operands
// the two whose product is smallest are contracted first.
Tensor Einsum(const std::string& equation, absl::Span<const Tensor> operands);
Tensor Einsum(const std::string& equation,
              std::initializer_list<Tensor> operands);

// ---- Linear algebra: ops/linalg.cc ------------------------------------------
// By LAPACK and BLAS. Leading axes are a batch.

struct CholeskyOptions {
  bool upper = false;
};
// L with L Lᵀ = a (U with Uᵀ U = a), 0 beyond the triangle; a [..., n, n] is
// taken as symmetric, by its lower triangle alone. The gradient is symmetric
// (Murray 2016). Throws where a is not positive definite, or has a NaN there,
// naming the matrix and the minor.
Tensor Cholesky(const Tensor& a, CholeskyOptions options = {});
struct SolveTriangularOptions {
  bool upper = false;
  bool left = true;            // a x = b; otherwise x a = b
  bool unitriangular = false;  // ones on the diagonal, whatever a has there
  bool transpose = false;      // aᵀ in place of a
};
// x of a x = b with triangular a [..., n, n], of which the other triangle is
// not read and gets gradient 0; b [..., n, k] (left) or [..., k, n]. Leading
// dimensions broadcast. A 0 on the diagonal gives infinities and NaN.
Tensor SolveTriangular(const Tensor& a, const Tensor& b,
                       SolveTriangularOptions options = {});

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
// `value` where mask (bool) is true, x elsewhere. An integer array takes a
// whole value within its range.
Tensor MaskedFill(const Tensor& x, const Tensor& mask, double value);

// ---- More of shape and place: ops/rearrange.cc, ops/place.cc ----------------
// Any dtype; gradients for floats.

// Without the axes listed, which must have size 1 (none listed: all such).
Tensor Squeeze(const Tensor& x, const Axes& axes = {});
// With a new axis of size 1 before axis `axis`; -1 puts it last.
Tensor Unsqueeze(const Tensor& x, int axis);
// BroadcastTo, where a dimension of -1 keeps x's.
Tensor Expand(const Tensor& x, absl::Span<const int64_t> dims);
Tensor Expand(const Tensor& x, std::initializer_list<int64_t> dims);
// Arrays of one shape side by side on a new axis.
Tensor Stack(absl::Span<const Tensor> xs, int axis = 0);
Tensor Stack(std::initializer_list<Tensor> xs, int axis = 0);
// Parts of the sizes listed, which must sum to that of the axis; or all of
// `size`, the last perhaps smaller; of nothing one part. Backward is linear in
// the array, however many parts there are.
std::vector<Tensor> Split(const Tensor& x, absl::Span<const int64_t> sizes,
                          int axis = 0);
std::vector<Tensor> Split(const Tensor& x, int64_t size, int axis = 0);
// At most n parts of equal size, the last perhaps smaller.
std::vector<Tensor> Chunk(const Tensor& x, int64_t n, int axis = 0);
// `value` before and after the elements of each of the last axes: one pair for
// each, the last pair for the last axis. A negative number cuts off, no more
// than there is. An integer array takes a whole value within its range.
Tensor Pad(const Tensor& x,
           absl::Span<const std::pair<int64_t, int64_t>> widths,
           double value = 0);
Tensor Pad(const Tensor& x,
           std::initializer_list<std::pair<int64_t, int64_t>> widths,
           double value = 0);
// The other way round along each of the axes (none listed: all).
Tensor Flip(const Tensor& x, const Axes& axes = {});
// Element i goes to place i + shift, round the end, along `axis`.
Tensor Roll(const Tensor& x, int64_t shift, int axis);
// The whole array times[i] times along axis i; missing leading axes are added.
Tensor Tile(const Tensor& x, absl::Span<const int64_t> times);
Tensor Tile(const Tensor& x, std::initializer_list<int64_t> times);
// Each element `times` times in place: [1, 2] -> [1, 1, 2, 2].
Tensor Repeat(const Tensor& x, int64_t times, int axis);
// Windows of `size`, `step` apart: [.., n, ..] -> [.., 1 + (n - size) / step,
// .., size], the window as a new last axis.
Tensor Unfold(const Tensor& x, int axis, int64_t size, int64_t step);
// x below (above) and on diagonal k of the last two axes, 0 elsewhere; diagonal
// 1 lies above the main one. k may lie beyond the matrix.
Tensor Tril(const Tensor& x, int64_t k = 0);
Tensor Triu(const Tensor& x, int64_t k = 0);
// Diagonal k of two axes, as a new last axis.
Tensor Diagonal(const Tensor& x, int64_t k = 0, int axis1 = 0, int axis2 = 1);
// x [..., n] on diagonal k of zeros [..., n + |k|, n + |k|].
Tensor DiagEmbed(const Tensor& x, int64_t k = 0);

// ---- By index: ops/index.cc -------------------------------------------------
// Indices are int32 or int64, from 0; each operation names the first that does
// not fit. Values: any dtype; gradients for floats.

// x[.., ids[j], ..]: ids [m] -> axis of size m.
Tensor IndexSelect(const Tensor& x, int axis, const Tensor& ids);
// y[.., i, ..] = x[.., ids[.., i, ..], ..]; x and ids broadcast to each other
// in all axes but `axis`.
Tensor TakeAlongAxis(const Tensor& x, const Tensor& ids, int axis);
// y = x with y[.., ids[.., i, ..], ..] += src[.., i, ..]; ids and src have one
// shape, which is x's but for `axis`. Equal indices add up, floats in double,
// in the order in which they stand; integers wrap, of bool the or.
Tensor ScatterAdd(const Tensor& x, int axis, const Tensor& ids,
                  const Tensor& src);
struct IndexPutOptions {
  bool accumulate = false;  // add; otherwise the last of equal indices wins
};
// y = x with y[ids[0][j], ids[1][j], ...] = values[j]: the indices, which
// broadcast to one shape, count the first axes, and `values` broadcasts to that
// shape + the rest of x's. A value that does not win has gradient 0.
Tensor IndexPut(const Tensor& x, absl::Span<const Tensor> ids,
                const Tensor& values, IndexPutOptions options = {});
// 1 at [.., ids[..]], 0 elsewhere; [..] -> [.., n]. No gradient.
Tensor OneHot(const Tensor& ids, int64_t n, DType dtype = DType::kFloat32);
// begin, begin + step, ... before `end` (none if it lies the other way); each
// is begin + i step, in double with one rounding. Throws for a step of 0, for
// what is not finite, for bool, and where an integer dtype gets what is not
// whole.
Tensor Arange(double begin, double end, double step = 1,
              DType dtype = DType::kFloat32);
// n values from begin to end, both exact; of one, begin. Floats.
Tensor Linspace(double begin, double end, int64_t n,
                DType dtype = DType::kFloat32);
// Ones on the main diagonal of [n, m]; m = -1 means n.
Tensor Eye(int64_t n, int64_t m = -1, DType dtype = DType::kFloat32);

// ---- Softmax: ops/softmax.cc ------------------------------------------------

// Fused. exp(x) / sum exp(x) along one axis, stable; a slice that is all -inf
// gives zeros.
Tensor Softmax(const Tensor& x, int axis = -1);
Tensor SoftmaxComposed(const Tensor& x, int axis = -1);
// Fused. x - LogSumExp(x).
Tensor LogSoftmax(const Tensor& x, int axis = -1);
Tensor LogSoftmaxComposed(const Tensor& x, int axis = -1);

// ---- Layer norm: ops/layer_norm.cc ------------------------------------------

// Fused. (x - mean) / sqrt(variance + eps) * gain + bias over as many last axes
// as gain and bias have, which are undefined or have the shape of these axes;
// over the last one without both (Ba, Kiros, Hinton 2016). variance divides by
// the number of elements. eps >= 0, here and in the two norms below.
Tensor LayerNorm(const Tensor& x, const Tensor& gain = {},
                 const Tensor& bias = {}, double eps = 1e-5);
Tensor LayerNormComposed(const Tensor& x, const Tensor& gain = {},
                         const Tensor& bias = {}, double eps = 1e-5);

// ---- Other norms: ops/rms_norm.cc, ops/group_norm.cc ------------------------

// Fused. x / sqrt(mean(x^2) + eps) * gain over as many last axes as gain has,
// the last one without gain (Zhang, Sennrich 2019). eps is the dtype's epsilon
// when it is not given.
Tensor RmsNorm(const Tensor& x, const Tensor& gain = {},
               std::optional<double> eps = {});
Tensor RmsNormComposed(const Tensor& x, const Tensor& gain = {},
                       std::optional<double> eps = {});
// Fused. (x - mean) / sqrt(variance + eps) over each of `groups` groups of
// channels with all places, times gain plus bias of the channel; x [B, C, ...],
// gain and bias [C] or undefined (Wu, He 2018). groups must divide C.
Tensor GroupNorm(const Tensor& x, int64_t groups, const Tensor& gain = {},
                 const Tensor& bias = {}, double eps = 1e-5);
Tensor GroupNormComposed(const Tensor& x, int64_t groups,
                         const Tensor& gain = {}, const Tensor& bias = {},
                         double eps = 1e-5);

// ---- Rotary embedding: ops/rotary.cc ----------------------------------------

struct RotaryOptions {
  double base = 10000;
  int64_t offset = 0;  // position of the first row
  int64_t dims = 0;    // how many of the D features turn; 0 means all
  // Pairs (2i, 2i + 1), as in the paper; otherwise (i, i + dims / 2), as in
  // GPT-NeoX and Llama.
  bool interleaved = false;
};
// Fused. Turns pair i of the row at position t by the angle t base^(-2i/dims),
// computed in double (Su et al. 2021); x [B, T, H, D], dims even. A row's bits
// depend on its position alone, not on T or where the offset lies.
Tensor Rotary(const Tensor& x, RotaryOptions options = {});
Tensor RotaryComposed(const Tensor& x, RotaryOptions options = {});

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

// ---- Losses: ops/cross_entropy.cc, ops/losses.cc ----------------------------

enum class Reduction {
  kMean,  // divides by the number of losses, or by what it says; 0 of none
  kSum,
  kNone,  // one loss for each target
};
struct CrossEntropyOptions {
  Reduction reduction = Reduction::kMean;
  int64_t ignore_index = -100;
  double label_smoothing = 0;  // s in [0, 1]
  Tensor weight = {};          // [C], of the classes, constant; w = 1 without
  int class_axis = -1;         // of the logits; PyTorch has 1
};
// Fused. -(1 - s) w[target] log p[target] - s/C sum_c w[c] log p[c],
// p = softmax(logits); logits [..., C], targets int32 or int64 [...]. An
// ignored target has loss 0 and no gradient. The mean divides by the sum of
// w[target] over the others: by their number without weights; it is 0 when
// there are none. Float targets are probabilities, of the logits' shape and
// trained too if tracked: -sum_c w[c] ((1 - s) target[c] + s/C) log p[c], whose
// mean divides by the number of rows.
Tensor CrossEntropy(const Tensor& logits, const Tensor& targets,
                    const CrossEntropyOptions& options = {});
Tensor CrossEntropyComposed(const Tensor& logits, const Tensor& targets,
                            const CrossEntropyOptions& options = {});
struct NllOptions {
  Reduction reduction = Reduction::kMean;
  int64_t ignore_index = -100;
  Tensor weight = {};   // [C], constant
  int class_axis = -1;  // PyTorch has 1
};
// -w[target] log_probs[target]: CrossEntropy of logits that are normalised.
Tensor NllLoss(const Tensor& log_probs, const Tensor& targets,
               const NllOptions& options = {});
struct BinaryCrossEntropyOptions {
  Reduction reduction = Reduction::kMean;
  Tensor weight = {};      // of each loss, constant; broadcasts
  Tensor pos_weight = {};  // q, of the targets' share, likewise
};
// Fused. -q t log p - (1 - t) log(1 - p), p = sigmoid(logits), stable; targets
// t are probabilities of the logits' shape, trained too if tracked. The mean
// divides by the number of losses, whatever the weights.
Tensor BinaryCrossEntropyWithLogits(
    const Tensor& logits, const Tensor& targets,
    const BinaryCrossEntropyOptions& options = {});
Tensor BinaryCrossEntropyWithLogitsComposed(
    const Tensor& logits, const Tensor& targets,
    const BinaryCrossEntropyOptions& options = {});
// Fused. (a - b)^2; |a - b|, with slope 0 at 0. Shapes must be equal:
// broadcasting would hide a mistake.
Tensor MseLoss(const Tensor& a, const Tensor& b,
               Reduction reduction = Reduction::kMean);
Tensor L1Loss(const Tensor& a, const Tensor& b,
              Reduction reduction = Reduction::kMean);
// Fused. (a - b)^2 / 2 where |a - b| <= delta, delta (|a - b| - delta / 2)
// elsewhere (Huber 1964); delta > 0; equal shapes.
Tensor HuberLoss(const Tensor& a, const Tensor& b, double delta = 1,
                 Reduction reduction = Reduction::kMean);
struct KlDivOptions {
  Reduction reduction = Reduction::kMean;
  bool log_target = false;  // targets are logarithms too
  // With kMean, divides by dim 0 instead: the true mean divergence.
  bool batch_mean = false;
};
// t (log t - log_probs); equal shapes. Where t is 0 it is 0, with gradient 0,
// whatever log_probs is.
Tensor KlDivLoss(const Tensor& log_probs, const Tensor& targets,
                 KlDivOptions options = {});
// a . b / (max(|a|, eps) max(|b|, eps)) along `axis`; shapes broadcast first.
// eps > 0. An a of zeros gives 0.
Tensor CosineSimilarity(const Tensor& a, const Tensor& b, int axis = -1,
                        double eps = 1e-8);

// ---- Random arrays: ops/random.cc -------------------------------------------
// Each takes one offset of the generator, unless it throws. The values depend
// on seed, offset and place alone. No gradients.

// In [lo, hi), in float32 too.
Tensor RandomUniform(const Shape& shape, Generator& generator, double lo = 0,
                     double hi = 1, DType dtype = DType::kFloat32);
Tensor RandomNormal(const Shape& shape, Generator& generator, double mean = 0,
                    double stddev = 1, DType dtype = DType::kFloat32);
// Normal, drawn from what lies in [lo, hi], by the inverse of the distribution:
// exact in far tails. Throws unless more than 1e-300 of it lies there.
Tensor RandomTruncatedNormal(const Shape& shape, Generator& generator,
                             double mean = 0, double stddev = 1, double lo = -2,
                             double hi = 2, DType dtype = DType::kFloat32);
// 1 with the probability that x gives, 0 otherwise; x's shape and dtype. Throws
// for one outside [0, 1].
Tensor RandomBernoulli(const Tensor& probabilities, Generator& generator);
// n draws, with replacement, of the classes of each row of logits [..., C]
// (unnormalised logarithms) -> int64 [..., n], by the inverse of the
// distribution. A class of -inf is never drawn; a row that is -inf everywhere,
// or holds NaN or +inf, throws.
Tensor RandomCategorical(const Tensor& logits, int64_t n, Generator& generator);
// 0 .. n - 1 in random order: int64 [n].
Tensor RandomPermutation(int64_t n, Generator& generator);

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_OPS_H_
