// Arithmetic with broadcasting. A rule hands over the gradient of the
// broadcast operand; the sink sums it back to the operand's own shape.

#include "autograd/kernels/broadcast.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/ops.h"
#include "autograd/ops/op_util.h"

namespace wengert {
namespace {

using kernels::Binary;

Tensor Broadcasted(const char* op, Binary kind, const Tensor& a,
                   const Tensor& b) {
  const DType dtype = CheckFloats(op, {a, b});
  Tensor y = Tensor::Empty(Broadcast(op, a.shape(), b.shape()), dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::Apply<T>(kind, y.shape().dims(), a.data<T>(), a.shape().dims(),
                      b.data<T>(), b.shape().dims(), Out<T>(y));
  });
  return y;
}

Tensor Compared(const char* op, kernels::Compare kind, const Tensor& a,
                const Tensor& b) {
  if (!a.defined() || !b.defined() || a.dtype() != b.dtype()) {
    Throw(op, "got ", Describe(a), " and ", Describe(b),
          "; wanted operands of one dtype");
  }
  Tensor y = Tensor::Empty(Broadcast(op, a.shape(), b.shape()), DType::kBool);
  WithAny(a.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::Apply(kind, y.shape().dims(), a.data<T>(), a.shape().dims(),
                   b.data<T>(), b.shape().dims(), Out<bool>(y));
  });
  return y;
}

}  // namespace

Tensor Equal(const Tensor& a, const Tensor& b) {
  return Compared("Equal", kernels::Compare::kEq, a, b);
}
Tensor Less(const Tensor& a, const Tensor& b) {
  return Compared("Less", kernels::Compare::kLt, a, b);
}
Tensor Greater(const Tensor& a, const Tensor& b) {
  return Compared("Greater", kernels::Compare::kGt, a, b);
}

// y = a + b: da = dy, db = dy
Tensor Add(const Tensor& a, const Tensor& b) {
  Tensor y = Broadcasted("Add", Binary::kAdd, a, b);
  Record("Add", y, {a, b}, Save(), [](GradientSink& g) {
    g.Add(0, g.dy());
    g.Add(1, g.dy());
  });
  return y;
}

// y = a - b: da = dy, db = -dy
Tensor Sub(const Tensor& a, const Tensor& b) {
  Tensor y = Broadcasted("Sub", Binary::kSub, a, b);
  Record("Sub", y, {a, b}, Save(), [](GradientSink& g) {
    g.Add(0, g.dy());
    if (g.Needs(1)) g.Add(1, -g.dy());
  });
  return y;
}

// y = a b: da = dy b, db = dy a
Tensor Mul(const Tensor& a, const Tensor& b) {
  Tensor y = Broadcasted("Mul", Binary::kMul, a, b);
  Record("Mul", y, {a, b}, Save(a, b),
         [](GradientSink& g, const Tensor& a, const Tensor& b) {
           if (g.Needs(0)) g.Add(0, g.dy() * b);
           if (g.Needs(1)) g.Add(1, g.dy() * a);
         });
  return y;
}

// y = a / b: da = dy / b, db = -dy a / b²
Tensor Div(const Tensor& a, const Tensor& b) {
  Tensor y = Broadcasted("Div", Binary::kDiv, a, b);
  Record("Div", y, {a, b}, Save(a, b),
         [](GradientSink& g, const Tensor& a, const Tensor& b) {
           const Tensor da = g.dy() / b;
           g.Add(0, da);
           if (g.Needs(1)) g.Add(1, -(da * (a / b)));
         });
  return y;
}

// y = max(a, b): da = dy where a >= b, db = dy elsewhere
Tensor Maximum(const Tensor& a, const Tensor& b) {
  Tensor y = Broadcasted("Maximum", Binary::kMax, a, b);
  Record("Maximum", y, {a, b}, Save(a, b),
         [](GradientSink& g, const Tensor& a, const Tensor& b) {
           const Tensor to_b = Less(a, b);
           if (g.Needs(0)) g.Add(0, MaskedFill(g.dy(), to_b, 0));
           if (g.Needs(1)) {
             g.Add(1, Where(to_b, g.dy(), Tensor::Scalar(0, b.dtype())));
           }
         });
  return y;
}

// y = min(a, b): da = dy where a <= b, db = dy elsewhere
Tensor Minimum(const Tensor& a, const Tensor& b) {
  Tensor y = Broadcasted("Minimum", Binary::kMin, a, b);
  Record("Minimum", y, {a, b}, Save(a, b),
         [](GradientSink& g, const Tensor& a, const Tensor& b) {
           const Tensor to_b = Greater(a, b);
           if (g.Needs(0)) g.Add(0, MaskedFill(g.dy(), to_b, 0));
           if (g.Needs(1)) {
             g.Add(1, Where(to_b, g.dy(), Tensor::Scalar(0, b.dtype())));
           }
         });
  return y;
}

// y = scale x + shift: dx = scale dy
Tensor Affine(const Tensor& x, double scale, double shift) {
  const DType dtype = CheckFloats("Affine", {x});
  Tensor y = Tensor::Empty(x.shape(), dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::Affine<T>(x.size(), static_cast<T>(scale), static_cast<T>(shift),
                       x.data<T>(), Out<T>(y));
  });
  Record("Affine", y, {x}, Save(),
         [scale](GradientSink& g) { g.Add(0, Affine(g.dy(), scale, 0)); });
  return y;
}

// y = -x: dx = -dy
Tensor Neg(const Tensor& x) { return Affine(x, -1, 0); }

// y = x^p: dx = dy p x^(p-1)
Tensor Pow(const Tensor& x, double p) {
  const DType dtype = CheckFloats("Pow", {x});
  Tensor y = Tensor::Empty(x.shape(), dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::PowScalar(x.size(), x.data<T>(), p, Out<T>(y));
  });
  Record("Pow", y, {x}, Save(x), [p](GradientSink& g, const Tensor& x) {
    // For p = 0 the slope is 0 even where x^(p-1) is infinite.
    g.Add(0, p == 0 ? Tensor::Zeros(x.shape(), x.dtype())
                    : g.dy() * Affine(Pow(x, p - 1), p, 0));
  });
  return y;
}

}  // namespace wengert
