// Fused functions of one argument with a bend or with parameters.
#include "autograd/kernels/piecewise.h"

#include <cmath>

#include "autograd/ops.h"
#include "autograd/ops/fused_unary.h"
#include "autograd/ops/op_util.h"

namespace wengert {
namespace {

using kernels::Piecewise;

Tensor Zero(const Tensor& x) { return Tensor::Scalar(0, x.dtype()); }

// The composition for a factor of either sign.
Tensor SoftplusBothWays(const Tensor& x, double beta) {
  // Each half sees an argument that cannot overflow, and the bound where x lies
  // in the other half.
  const Tensor z = x * beta;
  const Tensor left = Log1p(Exp(Minimum(z, Zero(z))));
  const Tensor right = z + Log1p(Exp(-Maximum(z, Zero(z))));
  return Where(Greater(z, Zero(z)), right, left) / beta;
}

void CheckBeta(double beta) {
  if (!(beta > 0) || !std::isfinite(beta)) {
    Throw("Softplus", "beta is ", beta, "; wanted a number above 0");
  }
}

void CheckSlope(const char* op, const char* name, double value) {
  if (!std::isfinite(value))
    Throw(op, name, " is ", value, "; wanted a number");
}

}  // namespace

// y = |x|: dx = dy sign x
Tensor Abs(const Tensor& x) {
  return FusedUnary("Abs", Piecewise{Piecewise::kAbs}, x,
                    [](const Tensor& x) { return x * Sign(x); });
}

// y = min(hi, max(lo, x)): dx = dy where lo < x < hi
Tensor Clamp(const Tensor& x, double lo, double hi) {
  if (!(lo <= hi)) {
    Throw("Clamp", "the bounds are ", lo, " and ", hi, "; wanted lo <= hi");
  }
  return FusedUnary("Clamp", Piecewise{Piecewise::kClamp, lo, hi}, x,
                    [lo, hi](const Tensor& x) {
                      return Minimum(Tensor::Scalar(hi, x.dtype()),
                                     Maximum(Tensor::Scalar(lo, x.dtype()), x));
                    });
}

// y = ln(1 + e^(beta x)) / beta: dx = dy sigmoid(beta x)
Tensor Softplus(const Tensor& x, double beta) {
  CheckBeta(beta);
  return FusedUnary(
      "Softplus", Piecewise{Piecewise::kSoftplus, beta}, x,
      [beta](const Tensor& x) { return SoftplusComposed(x, beta); });
}
Tensor SoftplusComposed(const Tensor& x, double beta) {
  CheckBeta(beta);
  return SoftplusBothWays(x, beta);
}

// y = -ln(1 + e^-x): dx = dy sigmoid(-x)
Tensor LogSigmoid(const Tensor& x) {
  return FusedUnary("LogSigmoid", Piecewise{Piecewise::kSoftplus, -1}, x,
                    LogSigmoidComposed);
}
Tensor LogSigmoidComposed(const Tensor& x) { return SoftplusBothWays(x, -1); }

// y = x where x > 0, slope x elsewhere: dx = dy, slope dy
Tensor LeakyRelu(const Tensor& x, double slope) {
  CheckSlope("LeakyRelu", "the slope", slope);
  return FusedUnary(
      "LeakyRelu", Piecewise{Piecewise::kLeakyRelu, slope}, x,
      [slope](const Tensor& x) { return LeakyReluComposed(x, slope); });
}
Tensor LeakyReluComposed(const Tensor& x, double slope) {
  return Where(Greater(x, Zero(x)), x, x * slope);
}

// y = x where x > 0, alpha (e^x - 1) elsewhere: dx = dy, alpha e^x dy
Tensor Elu(const Tensor& x, double alpha) {
  CheckSlope("Elu", "alpha", alpha);
  return FusedUnary("Elu", Piecewise{Piecewise::kElu, alpha}, x,
                    [alpha](const Tensor& x) { return EluComposed(x, alpha); });
}
Tensor EluComposed(const Tensor& x, double alpha) {
  return Where(Greater(x, Zero(x)), x, alpha * Expm1(Minimum(x, Zero(x))));
}

}  // namespace wengert
