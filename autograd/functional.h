// Derivatives of functions, for those who would rather not hold a tape.
//
//   const auto [value, gradient] = ValueAndGrad(f, x);
//   Tensor h = Hessian(f, x);
//
// A function takes a float tensor and computes with the catalogue's operations
// (ops.h). It is run on a tape of its own, with no randomness: what it reads
// besides x is a constant, and so are the results to a tape outside.
#ifndef WENGERT_AUTOGRAD_FUNCTIONAL_H_
#define WENGERT_AUTOGRAD_FUNCTIONAL_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "autograd/tensor.h"

namespace wengert {

using Function = absl::FunctionRef<Tensor(const Tensor& x)>;
using FunctionOfSeveral =
    absl::FunctionRef<Tensor(absl::Span<const Tensor> xs)>;

struct ValueAndGradient {
  Tensor value;
  Tensor gradient;
};
struct ValueAndGradients {
  Tensor value;
  std::vector<Tensor> gradients;
};

// y = f(x), which has one element, and dy/dx, of x's shape.
ValueAndGradient ValueAndGrad(Function f, const Tensor& x);
// The same for each of several arguments.
ValueAndGradients ValueAndGrad(FunctionOfSeveral f,
                               absl::Span<const Tensor> xs);

// f(x) and the product of a vector of f(x)'s shape with the Jacobian,
// u^T dy/dx, of x's shape: one backward pass.
ValueAndGradient VectorJacobianProduct(Function f, const Tensor& x,
                                       const Tensor& u);
// f(x) and the derivative along v, of x's shape: (dy/dx) v, of f(x)'s shape.
// Two backward passes: u^T (dy/dx) is linear in u, with the derivative wanted.
ValueAndGradient JacobianVectorProduct(Function f, const Tensor& x,
                                       const Tensor& v);

// dy_i / dx_j, of f(x)'s shape followed by x's: a backward pass for each
// element of f(x).
Tensor Jacobian(Function f, const Tensor& x);
// d²y / dx_i dx_j of a y = f(x) with one element, of x's shape twice: a
// backward pass for each element of x.
Tensor Hessian(Function f, const Tensor& x);
// The Hessian times v, of x's shape, without the Hessian: two backward passes.
Tensor HessianVectorProduct(Function f, const Tensor& x, const Tensor& v);

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_FUNCTIONAL_H_
