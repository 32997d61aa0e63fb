// Functions of one argument. The first are primitives; the activations are
// fused, each with its composition.
#include "autograd/kernels/elementwise.h"

#include <cmath>
#include <numbers>

#include "autograd/kernels/piecewise.h"
#include "autograd/ops.h"
#include "autograd/ops/fused_unary.h"
#include "autograd/ops/op_util.h"

namespace wengert {
namespace {

using kernels::Piecewise;
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

// Sigmoid as a primitive, for derivatives of higher order.
Tensor PlainSigmoid(const Tensor& x) {
  Tensor y = Mapped("Sigmoid", Unary::kSigmoid, x);
  Record("Sigmoid", y, {x}, Save(x, y),
         [](GradientSink& g, const Tensor& x, const Tensor& y) {
           g.Add(0, g.dy() * y * Sigmoid(-x));
         });
  return y;
}

}  // namespace

// y = e^x: dx = dy y
Tensor Exp(const Tensor& x) {
  Tensor y = Mapped("Exp", Unary::kExp, x);
  Record("Exp", y, {x}, Save(y),
         [](GradientSink& g, const Tensor& y) { g.Add(0, g.dy() * y); });
  return y;
}

// y = ln x: dx = dy / x
Tensor Log(const Tensor& x) {
  Tensor y = Mapped("Log", Unary::kLog, x);
  Record("Log", y, {x}, Save(x),
         [](GradientSink& g, const Tensor& x) { g.Add(0, g.dy() / x); });
  return y;
}

// y = tanh x: dx = dy (1 - y²)
Tensor Tanh(const Tensor& x) {
  Tensor y = Mapped("Tanh", Unary::kTanh, x);
  Record("Tanh", y, {x}, Save(y), [](GradientSink& g, const Tensor& y) {
    g.Add(0, g.dy() * (1 - Square(y)));
  });
  return y;
}

// y = 1 / (1 + e^-x): dx = dy y (1 - y), where 1 - y is taken as sigmoid(-x),
// which loses nothing in the right tail
Tensor Sigmoid(const Tensor& x) {
  return FusedUnary("Sigmoid", Piecewise{Piecewise::kSigmoid}, x, PlainSigmoid);
}

// y = erf x: dx = dy 2/sqrt(pi) e^(-x²)
Tensor Erf(const Tensor& x) {
  Tensor y = Mapped("Erf", Unary::kErf, x);
  Record("Erf", y, {x}, Save(x), [](GradientSink& g, const Tensor& x) {
    g.Add(0, g.dy() * (kTwoOverSqrtPi * Exp(-Square(x))));
  });
  return y;
}

// y = 1 - erf x, accurate where it is small: dx = -dy 2/sqrt(pi) e^(-x²)
Tensor Erfc(const Tensor& x) {
  Tensor y = Mapped("Erfc", Unary::kErfc, x);
  Record("Erfc", y, {x}, Save(x), [](GradientSink& g, const Tensor& x) {
    g.Add(0, g.dy() * (-kTwoOverSqrtPi * Exp(-Square(x))));
  });
  return y;
}

// y = x²: dx = 2 dy x
Tensor Square(const Tensor& x) {
  return FusedUnary("Square", Piecewise{Piecewise::kSquare}, x,
                    [](const Tensor& x) { return x * x; });
}

// y = sqrt x: dx = dy / (2 y)
Tensor Sqrt(const Tensor& x) {
  Tensor y = Mapped("Sqrt", Unary::kSqrt, x);
  Record("Sqrt", y, {x}, Save(y),
         [](GradientSink& g, const Tensor& y) { g.Add(0, g.dy() / (2 * y)); });
  return y;
}

// y = 1 / sqrt x: dx = -dy y³ / 2
Tensor Rsqrt(const Tensor& x) {
  Tensor y = Mapped("Rsqrt", Unary::kRsqrt, x);
  Record("Rsqrt", y, {x}, Save(y), [](GradientSink& g, const Tensor& y) {
    g.Add(0, g.dy() * (-0.5 * Pow(y, 3)));
  });
  return y;
}

// y = e^x - 1: dx = dy e^x, since y + 1 would lose the left tail
Tensor Expm1(const Tensor& x) {
  Tensor y = Mapped("Expm1", Unary::kExpm1, x);
  Record("Expm1", y, {x}, Save(x),
         [](GradientSink& g, const Tensor& x) { g.Add(0, g.dy() * Exp(x)); });
  return y;
}

// y = ln(1 + x): dx = dy / (1 + x)
Tensor Log1p(const Tensor& x) {
  Tensor y = Mapped("Log1p", Unary::kLog1p, x);
  Record("Log1p", y, {x}, Save(x),
         [](GradientSink& g, const Tensor& x) { g.Add(0, g.dy() / (1 + x)); });
  return y;
}

// y = sin x: dx = dy cos x
Tensor Sin(const Tensor& x) {
  Tensor y = Mapped("Sin", Unary::kSin, x);
  Record("Sin", y, {x}, Save(x),
         [](GradientSink& g, const Tensor& x) { g.Add(0, g.dy() * Cos(x)); });
  return y;
}

// y = cos x: dx = -dy sin x
Tensor Cos(const Tensor& x) {
  Tensor y = Mapped("Cos", Unary::kCos, x);
  Record("Cos", y, {x}, Save(x),
         [](GradientSink& g, const Tensor& x) { g.Add(0, g.dy() * -Sin(x)); });
  return y;
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
