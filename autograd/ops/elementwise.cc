// Functions of one argument. The first are primitives; the activations are
// fused, each with its composition.
#include "autograd/kernels/elementwise.h"

#include <cmath>
#include <numbers>

#include "autograd/kernels/gradients.h"
#include "autograd/ops.h"
#include "autograd/ops/fused_unary.h"
#include "autograd/ops/op_util.h"

namespace wengert {
namespace {

using kernels::Unary;

constexpr double kTwoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;

Tensor Mapped(const char* op, Unary kind, const Tensor& x) {
  const DType dtype = CheckFloats(op, {x});
  Tensor y = Tensor::Empty(x.shape(), dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::Apply(kind, x.size(), x.data<T>(), Out<T>(y));
  });
  return y;
}

// x within [-bound, bound]: where a function is flat in all its derivatives, a
// power of x that they hold must not overflow to meet its 0.
Tensor Clamped(const Tensor& x, double bound) {
  return Maximum(Tensor::Scalar(-bound, x.dtype()),
                 Minimum(Tensor::Scalar(bound, x.dtype()), x));
}

// y = f(x): dx = rule(dy, x), or rule(dy, y) where the slope is taken from y.
// A pass that is not recorded has a kernel for it.
template <class Rule>
Tensor Primitive(const char* op, Unary f, const Tensor& x, Rule rule) {
  Tensor y = Mapped(op, f, x);
  Record(op, y, {x}, Save(kernels::SlopeIsOfResult(f) ? y : x),
         [f, rule](GradientSink& g, const Tensor& saved) {
           if (g.Recorded()) return g.Add(0, rule(g.dy(), saved));
           WithFloat(saved.dtype(), [&](auto t) {
             using T = decltype(t);
             auto dx = g.Into<T>(0);
             kernels::ApplyGrad(f, saved.size(), saved.data<T>(),
                                g.dy().data<T>(), dx.accumulate, dx.data);
           });
         });
  return y;
}

// A function whose slope is 0 wherever it has one.
Tensor Stepped(const char* op, Unary kind, const Tensor& x) {
  Tensor y = Mapped(op, kind, x);
  Record(op, y, {x}, Save(), [](GradientSink&) {});
  return y;
}

Tensor Activated(const char* op, Activation f, const Tensor& x) {
  return FusedUnary(op, f, x,
                    [f](const Tensor& x) { return ActivateComposed(f, x); });
}

}  // namespace

// y = e^x: dx = dy y
Tensor Exp(const Tensor& x) {
  return Primitive("Exp", Unary::kExp, x,
                   [](const Tensor& dy, const Tensor& y) { return dy * y; });
}

// y = ln x: dx = dy / x
Tensor Log(const Tensor& x) {
  return Primitive("Log", Unary::kLog, x,
                   [](const Tensor& dy, const Tensor& x) { return dy / x; });
}

// y = tanh x: dx = dy (1 - y²)
Tensor Tanh(const Tensor& x) {
  return Primitive(
      "Tanh", Unary::kTanh, x,
      [](const Tensor& dy, const Tensor& y) { return dy * (1 - Square(y)); });
}

// y = 1 / (1 + e^-x): dx = dy y (1 - y), where 1 - y is taken as sigmoid(-x),
// which loses nothing in the right tail
Tensor Sigmoid(const Tensor& x) {
  return Primitive("Sigmoid", Unary::kSigmoid, x,
                   [](const Tensor& dy, const Tensor& x) {
                     return dy * Sigmoid(x) * Sigmoid(-x);
                   });
}

// y = erf x: dx = dy 2/sqrt(pi) e^(-x²)
Tensor Erf(const Tensor& x) {
  return Primitive("Erf", Unary::kErf, x,
                   [](const Tensor& dy, const Tensor& x) {
                     return dy * (kTwoOverSqrtPi * Exp(-Square(x)));
                   });
}

// y = 1 - erf x, accurate where it is small: dx = -dy 2/sqrt(pi) e^(-x²)
Tensor Erfc(const Tensor& x) {
  return Primitive("Erfc", Unary::kErfc, x,
                   [](const Tensor& dy, const Tensor& x) {
                     return dy * (-kTwoOverSqrtPi * Exp(-Square(x)));
                   });
}

// y = x²: dx = 2 dy x
Tensor Square(const Tensor& x) {
  return Primitive(
      "Square", Unary::kSquare, x,
      [](const Tensor& dy, const Tensor& x) { return dy * (2 * x); });
}

// y = sqrt x: dx = dy / (2 y)
Tensor Sqrt(const Tensor& x) {
  return Primitive(
      "Sqrt", Unary::kSqrt, x,
      [](const Tensor& dy, const Tensor& y) { return dy / (2 * y); });
}

// y = 1 / sqrt x: dx = -dy y³ / 2
Tensor Rsqrt(const Tensor& x) {
  return Primitive("Rsqrt", Unary::kRsqrt, x,
                   [](const Tensor& dy, const Tensor& y) {
                     return dy * (-0.5 * Pow(y, 3));
                   });
}

// y = e^x - 1: dx = dy e^x, since y + 1 would lose the left tail
Tensor Expm1(const Tensor& x) {
  return Primitive(
      "Expm1", Unary::kExpm1, x,
      [](const Tensor& dy, const Tensor& x) { return dy * Exp(x); });
}

// y = ln(1 + x): dx = dy / (1 + x)
Tensor Log1p(const Tensor& x) {
  return Primitive(
      "Log1p", Unary::kLog1p, x,
      [](const Tensor& dy, const Tensor& x) { return dy / (1 + x); });
}

// y = sin x: dx = dy cos x
Tensor Sin(const Tensor& x) {
  return Primitive(
      "Sin", Unary::kSin, x,
      [](const Tensor& dy, const Tensor& x) { return dy * Cos(x); });
}

// y = cos x: dx = -dy sin x
Tensor Cos(const Tensor& x) {
  return Primitive(
      "Cos", Unary::kCos, x,
      [](const Tensor& dy, const Tensor& x) { return dy * -Sin(x); });
}

Tensor Sign(const Tensor& x) { return Stepped("Sign", Unary::kSign, x); }
Tensor Floor(const Tensor& x) { return Stepped("Floor", Unary::kFloor, x); }
Tensor Ceil(const Tensor& x) { return Stepped("Ceil", Unary::kCeil, x); }
Tensor Trunc(const Tensor& x) { return Stepped("Trunc", Unary::kTrunc, x); }
Tensor Round(const Tensor& x) { return Stepped("Round", Unary::kRound, x); }

// y = max(0, x): dx = dy where x > 0
Tensor Relu(const Tensor& x) { return Activated("Relu", Activation::kRelu, x); }

// y = x/2 erfc(-x / sqrt 2): dx = dy (y/x + x e^(-x²/2) / sqrt(2 pi))
Tensor Gelu(const Tensor& x) { return Activated("Gelu", Activation::kGelu, x); }

// y = x s, s = sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x³):
// dx = dy s (1 + 2x (1 - s) du/dx)
Tensor GeluTanh(const Tensor& x) {
  return Activated("GeluTanh", Activation::kGeluTanh, x);
}

// y = x s, s = sigmoid(x): dx = dy s (1 + x (1 - s))
Tensor Silu(const Tensor& x) { return Activated("Silu", Activation::kSilu, x); }

Tensor Activate(Activation f, const Tensor& x) {
  switch (f) {
    case Activation::kRelu:
      return Relu(x);
    case Activation::kGelu:
      return Gelu(x);
    case Activation::kGeluTanh:
      return GeluTanh(x);
    case Activation::kSilu:
      return Silu(x);
  }
  Throw("Activate", "there is no activation ", static_cast<int>(f));
}

Tensor ActivateComposed(Activation f, const Tensor& x) {
  switch (f) {
    case Activation::kRelu:
      return Maximum(Tensor::Scalar(0, x.dtype()), x);
    case Activation::kGelu:
      // Beyond 40 the normal density is 0 in double too.
      return x *
             Affine(Erfc(Clamped(x, 40) * -std::numbers::sqrt2 / 2), 0.5, 0);
    case Activation::kGeluTanh: {
      // Beyond 30 the sigmoid is 0 or 1 in double too.
      const Tensor c = Clamped(x, 30);
      const double k = 2 * std::sqrt(2 / std::numbers::pi);
      return x * Sigmoid(k * c * Affine(Square(c), 0.044715, 1));
    }
    case Activation::kSilu:
      return x * Sigmoid(x);
  }
  Throw("Activate", "there is no activation ", static_cast<int>(f));
}

// y = x in another dtype: dx = dy converted back
Tensor Tensor::To(DType dtype) const {
  if (dtype == this->dtype()) return *this;
  Tensor y = Empty(shape(), dtype);
  WithAny(this->dtype(), [&](auto from) {
    using From = decltype(from);
    WithAny(dtype, [&](auto to) {
      using To = decltype(to);
      kernels::Convert<From, To>(size(), data<From>(), Out<To>(y));
    });
  });
  Record("To", y, {*this}, Save(), [back = this->dtype()](GradientSink& g) {
    g.Add(0, g.dy().To(back));
  });
  return y;
}

}  // namespace wengert
