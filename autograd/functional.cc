#include "autograd/functional.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/tape.h"

namespace wengert {
namespace {

// A value of its own that the tape watches.
Tensor Leaf(Tape& tape, const char* op, const Tensor& x) {
  if (!x.defined() || !IsFloat(x.dtype())) {
    throw Error(absl::StrCat(op, ": x ", Describe(x), "; wanted a float"));
  }
  const Tensor leaf = x.Detach();
  tape.Watch(leaf);
  return leaf;
}

void CheckSingle(const char* op, const Tensor& y) {
  if (y.size() == 1) return;
  throw Error(absl::StrCat(op, ": f(x) ", Describe(y), "; wanted one element"));
}

void CheckLike(const char* op, const char* name, const Tensor& v,
               const char* like_name, const Tensor& like) {
  if (v.defined() && v.shape() == like.shape() && v.dtype() == like.dtype()) {
    return;
  }
  throw Error(absl::StrCat(op, ": ", name, " ", Describe(v), "; wanted ",
                           like_name, "'s ", Describe(like)));
}

// dy/dx with a cotangent; zeros where y is no function of x.
Tensor Derivative(Tape& tape, const Tensor& y, const Tensor& x,
                  GradientOptions options) {
  if (!tape.Tracks(y)) return Tensor::Zeros(x.shape(), x.dtype());
  return tape.Gradient(y, x, std::move(options));
}

// A row of derivatives for each element of y: y's shape, then x's.
Tensor Rows(Tape& tape, const Tensor& y, const Tensor& x) {
  absl::InlinedVector<int64_t, 6> dims;
  for (int i = 0; i < y.rank(); ++i) dims.push_back(y.dim(i));
  for (int i = 0; i < x.rank(); ++i) dims.push_back(x.dim(i));
  Tensor rows = Tensor::Zeros(Shape(dims), x.dtype());
  if (!tape.Tracks(y) || rows.size() == 0) return rows;
  const int64_t row_bytes = x.size() * ByteSize(x.dtype());
  for (int64_t i = 0; i < y.size(); ++i) {
    Tensor one = Tensor::Zeros(y.shape(), y.dtype());
    WithFloat(y.dtype(), [&]<class T>(T) { one.mutable_data<T>()[i] = 1; });
    const Tensor row =
        tape.Gradient(y, x, {.retain = true, .cotangent = std::move(one)});
    WithFloat(x.dtype(), [&]<class T>(T) {
      std::memcpy(rows.mutable_data<T>() + i * x.size(), row.data<T>(),
                  row_bytes);
    });
  }
  return rows;
}

}  // namespace

ValueAndGradient ValueAndGrad(Function f, const Tensor& x) {
  ValueAndGradients result =
      ValueAndGrad([&](absl::Span<const Tensor> xs) { return f(xs[0]); }, {x});
  return {std::move(result.value), std::move(result.gradients[0])};
}

ValueAndGradients ValueAndGrad(FunctionOfSeveral f,
                               absl::Span<const Tensor> xs) {
  Tape tape;
  std::vector<Tensor> leaves;
  for (const Tensor& x : xs) leaves.push_back(Leaf(tape, "ValueAndGrad", x));
  const Tensor y = f(leaves);
  CheckSingle("ValueAndGrad", y);
  if (tape.Tracks(y)) return {y.Detach(), tape.Gradient(y, leaves)};
  std::vector<Tensor> zeros;
  for (const Tensor& x : xs) {
    zeros.push_back(Tensor::Zeros(x.shape(), x.dtype()));
  }
  return {y.Detach(), std::move(zeros)};
}

ValueAndGradient VectorJacobianProduct(Function f, const Tensor& x,
                                       const Tensor& u) {
  Tape tape;
  const Tensor leaf = Leaf(tape, "VectorJacobianProduct", x);
  const Tensor y = f(leaf);
  CheckLike("VectorJacobianProduct", "u", u, "f(x)", y);
  return {y.Detach(), Derivative(tape, y, leaf, {.cotangent = u})};
}

ValueAndGradient JacobianVectorProduct(Function f, const Tensor& x,
                                       const Tensor& v) {
  CheckLike("JacobianVectorProduct", "v", v, "x", x);
  Tape tape;
  const Tensor leaf = Leaf(tape, "JacobianVectorProduct", x);
  const Tensor y = f(leaf);
  const Tensor u = Tensor::Zeros(y.shape(), y.dtype());
  tape.Watch(u);
  const Tensor g =
      Derivative(tape, y, leaf, {.create_graph = true, .cotangent = u});
  return {y.Detach(), Derivative(tape, g, u, {.cotangent = v})};
}

Tensor Jacobian(Function f, const Tensor& x) {
  Tape tape;
  const Tensor leaf = Leaf(tape, "Jacobian", x);
  return Rows(tape, f(leaf), leaf);
}

Tensor Hessian(Function f, const Tensor& x) {
  Tape tape;
  const Tensor leaf = Leaf(tape, "Hessian", x);
  const Tensor y = f(leaf);
  CheckSingle("Hessian", y);
  return Rows(tape, Derivative(tape, y, leaf, {.create_graph = true}), leaf);
}

Tensor HessianVectorProduct(Function f, const Tensor& x, const Tensor& v) {
  CheckLike("HessianVectorProduct", "v", v, "x", x);
  Tape tape;
  const Tensor leaf = Leaf(tape, "HessianVectorProduct", x);
  const Tensor y = f(leaf);
  CheckSingle("HessianVectorProduct", y);
  const Tensor g = Derivative(tape, y, leaf, {.create_graph = true});
  return Derivative(tape, g, leaf, {.cotangent = v});
}

}  // namespace wengert
