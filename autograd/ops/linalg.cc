// Linear algebra of batches of matrices. The gradients are those of Murray
// 2016, "Differentiation of the Cholesky decomposition", and Giles 2008, "An
// extended collection of matrix derivative results".
#include "autograd/kernels/linalg.h"

#include <algorithm>
#include <limits>

#include "autograd/kernels/broadcast.h"
#include "autograd/ops.h"
#include "autograd/ops/axis_util.h"

namespace wengert {
namespace {

// OpenBLAS counts in 31 bits.
constexpr int64_t kMaxSize = std::numeric_limits<int>::max();

bool IsSquare(const Tensor& a) {
  return a.rank() >= 2 && a.dim(-1) == a.dim(-2) && a.dim(-1) <= kMaxSize;
}

Shape BatchOf(const Tensor& x) {
  return Shape(x.shape().dims().first(x.rank() - 2));
}

// Which matrix of the batch, of the shape that it has.
std::string PlaceOf(int64_t i, const Shape& batch) {
  DimVector index(batch.rank());
  for (int axis = batch.rank() - 1; axis >= 0; --axis) {
    index[axis] = i % batch[axis];
    i /= batch[axis];
  }
  return absl::StrCat("[", absl::StrJoin(index, ", "), "]");
}

// L Lᵀ = a: da = L⁻ᵀ S L⁻¹ / 2, where S is the lower triangle of Lᵀ dL mirrored
// at the diagonal (Murray, equation 10, doubled off the diagonal: symmetric)
Tensor LowerCholesky(const Tensor& a) {
  const DType dtype = CheckFloats("Cholesky", {a});
  if (!IsSquare(a)) Throw("Cholesky", Describe(a), "; wanted [..., n, n]");
  const Shape batch = BatchOf(a);
  Tensor l = a.Clone();
  Tensor minors = Tensor::Empty(batch, DType::kInt64);
  WithFloat(dtype, [&](auto t) {
    kernels::Cholesky(batch.size(), a.dim(-1), Out<decltype(t)>(l),
                      Out<int64_t>(minors));
  });
  for (int64_t i = 0; i < batch.size(); ++i) {
    const int64_t minor = minors.data<int64_t>()[i];
    if (minor == 0) continue;
    Throw("Cholesky", "matrix ", PlaceOf(i, batch), " of ", Describe(a),
          " is not positive definite: its leading minor of order ", minor,
          " is not positive");
  }
  Record("Cholesky", l, {a}, Save(l), [](GradientSink& g, const Tensor& l) {
    const Tensor p = MatMul(l, g.dy(), {.transpose_a = true});
    const Tensor s = Tril(p) + Transpose(Tril(p, -1));
    const Tensor left = SolveTriangular(l, s, {.transpose = true});
    g.Add(0, 0.5 * SolveTriangular(l, left, {.left = false}));
  });
  return l;
}

}  // namespace

Tensor Cholesky(const Tensor& a, CholeskyOptions options) {
  const Tensor l = LowerCholesky(a);
  return options.upper ? Transpose(l) : l;
}

// x of op(a) x = b: db = op(a)⁻ᵀ dx, d op(a) = -db xᵀ; of x op(a) = b: db = dx
// op(a)⁻ᵀ, d op(a) = -xᵀ db; both in the triangle alone
Tensor SolveTriangular(const Tensor& a, const Tensor& b,
                       SolveTriangularOptions options) {
  const DType dtype = CheckFloats("SolveTriangular", {a, b});
  if (!IsSquare(a) || b.rank() < 2 ||
      b.dim(options.left ? -2 : -1) != a.dim(-1) ||
      std::max(b.dim(-1), b.dim(-2)) > kMaxSize) {
    Throw("SolveTriangular", "a ", Describe(a), ", b ", Describe(b),
          "; wanted a [..., n, n] and b ",
          options.left ? "[..., n, k]" : "[..., k, n]");
  }
  const Shape batch = Broadcast("SolveTriangular", BatchOf(a), BatchOf(b));
  DimVector dims = DimsOf(batch);
  dims.insert(dims.end(), {b.dim(-2), b.dim(-1)});
  Tensor x = Tensor::Empty(Shape(dims), dtype);
  const auto a_at = MatrixOffsets(batch, a.shape());
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::BroadcastTo(x.shape().dims(), b.data<T>(), b.shape().dims(),
                         Out<T>(x));
    kernels::SolveTriangular(
        {options.upper, options.left, options.unitriangular, options.transpose},
        batch.size(), b.dim(-2), b.dim(-1), a.data<T>(), a_at.data(),
        Out<T>(x));
  });
  Record("SolveTriangular", x, {a, b}, Save(a, x),
         [options](GradientSink& g, const Tensor& a, const Tensor& x) {
           SolveTriangularOptions back = options;
           back.transpose = !options.transpose;
           const Tensor db = SolveTriangular(a, g.dy(), back);
           g.Add(1, db);
           if (!g.Needs(0)) return;
           // The two factors of the gradient of op(a), and of a.
           const Tensor& u = options.left == options.transpose ? x : db;
           const Tensor& v = options.left == options.transpose ? db : x;
           const Tensor da =
               -(options.left ? MatMul(u, v, {.transpose_b = true})
                              : MatMul(u, v, {.transpose_a = true}));
           const int64_t k = options.unitriangular ? 1 : 0;
           g.Add(0, options.upper ? Triu(da, k) : Tril(da, -k));
         });
  return x;
}

}  // namespace wengert
