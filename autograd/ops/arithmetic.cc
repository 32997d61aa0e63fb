// Arithmetic with broadcasting, powers and angles. A rule hands over the
// gradient of the broadcast operand; the sink sums it back to the operand's own
// shape.

#include "autograd/kernels/broadcast.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/gradients.h"
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

// Writes da and db of y = a op b by one kernel and returns true, unless the
// pass is recorded or an operand is broadcast.
bool GradientsWritten(GradientSink& g, Binary op, const Tensor& a,
                      const Tensor& b, const Tensor& y = {}) {
  if (g.Recorded() || a.shape() != b.shape()) return false;
  WithFloat(a.dtype(), [&](auto t) {
    using T = decltype(t);
    GradientSink::Destination<T> da{}, db{};
    if (g.Needs(0)) da = g.Into<T>(0);
    if (g.Needs(1)) db = g.Into<T>(1);
    kernels::ApplyGrad(op, a.size(), a.data<T>(), b.data<T>(),
                       y.defined() ? y.data<T>() : nullptr, g.dy().data<T>(),
                       da.accumulate, da.data, db.accumulate, db.data);
  });
  return true;
}

// r = a / (a² + b²), the real part of 1 / (a + ib), whose derivative is
// -1 / (a + ib)². With i = b / (a² + b²): da = dy (i² - r²), db = -2 dy r i.
Tensor ReciprocalReal(const Tensor& a, const Tensor& b) {
  Tensor r = Broadcasted("ReciprocalReal", Binary::kReciprocalReal, a, b);
  Record(
      "ReciprocalReal", r, {a, b}, Save(a, b, r),
      [](GradientSink& g, const Tensor& a, const Tensor& b, const Tensor& r) {
        const Tensor i = ReciprocalReal(b, a);
        if (g.Needs(0)) g.Add(0, g.dy() * ((i - r) * (i + r)));
        if (g.Needs(1)) g.Add(1, g.dy() * (-2 * (r * i)));
      });
  return r;
}

}  // namespace

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
           if (GradientsWritten(g, Binary::kMul, a, b)) return;
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
           if (GradientsWritten(g, Binary::kDiv, a, b)) return;
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
           if (GradientsWritten(g, Binary::kMax, a, b)) return;
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
           if (GradientsWritten(g, Binary::kMin, a, b)) return;
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
Tensor Neg(const Tensor& x) {
  CheckFloats("Neg", {x});
  return Affine(x, -1, 0);
}

// y = x^p: dx = dy p x^(p-1)
Tensor Pow(const Tensor& x, double p) {
  const DType dtype = CheckFloats("Pow", {x});
  Tensor y = Tensor::Empty(x.shape(), dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::PowScalar(x.size(), x.data<T>(), p, Out<T>(y));
  });
  Record("Pow", y, {x}, Save(x), [p](GradientSink& g, const Tensor& x) {
    if (g.Recorded()) {
      // For p = 0 the slope is 0 even where x^(p-1) is infinite.
      return g.Add(0, p == 0 ? Tensor::Zeros(x.shape(), x.dtype())
                             : g.dy() * Affine(Pow(x, p - 1), p, 0));
    }
    WithFloat(x.dtype(), [&](auto t) {
      using T = decltype(t);
      auto dx = g.Into<T>(0);
      kernels::PowScalarGrad(x.size(), x.data<T>(), p, g.dy().data<T>(),
                             dx.accumulate, dx.data);
    });
  });
  return y;
}

// y = x^p: dx = dy p x^(p-1), dp = dy y ln x
Tensor Pow(const Tensor& x, const Tensor& p) {
  Tensor y = Broadcasted("Pow", Binary::kPow, x, p);
  Record(
      "Pow", y, {x, p}, Save(x, p, y),
      [](GradientSink& g, const Tensor& x, const Tensor& p, const Tensor& y) {
        if (GradientsWritten(g, Binary::kPow, x, p, y)) return;
        // Where a factor of 0 meets what is infinite or NaN, x is taken as 1
        // and the product as 0, in derivatives of any order.
        const Tensor zero = Tensor::Scalar(0, x.dtype()), one = zero + 1;
        const Tensor x_is_zero = Equal(x, zero);
        if (g.Needs(0)) {
          const Tensor flat =
              LogicalAnd(Equal(p, zero), LogicalNot(IsFinite(Pow(x, -1))));
          const Tensor slope = p * Pow(Where(flat, one, x), p - 1);
          g.Add(0, g.dy() * Where(flat, zero, slope));
        }
        if (g.Needs(1)) {
          const Tensor flat = LogicalAnd(x_is_zero, GreaterEqual(p, zero));
          g.Add(1, g.dy() * (y * Log(Where(flat, one, x))));
        }
      });
  return y;
}

// The angle of (x, y): dx = -dy y / (x² + y²), dy = dy x / (x² + y²)
Tensor Atan2(const Tensor& y, const Tensor& x) {
  Tensor angle = Broadcasted("Atan2", Binary::kAtan2, y, x);
  Record("Atan2", angle, {y, x}, Save(y, x),
         [](GradientSink& g, const Tensor& y, const Tensor& x) {
           if (GradientsWritten(g, Binary::kAtan2, y, x)) return;
           if (g.Needs(0)) g.Add(0, g.dy() * ReciprocalReal(x, y));
           if (g.Needs(1)) g.Add(1, -(g.dy() * ReciprocalReal(y, x)));
         });
  return angle;
}

// y = a + w (b - a): da = dy (1 - w), db = dy w, dw = dy (b - a)
Tensor Lerp(const Tensor& a, const Tensor& b, const Tensor& weight) {
  const DType dtype = CheckFloats("Lerp", {a, b, weight});
  const Shape shape = Broadcast("Lerp", Broadcast("Lerp", a.shape(), b.shape()),
                                weight.shape());
  Tensor y = Tensor::Empty(shape, dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::Lerp<T>(shape.dims(), a.data<T>(), a.shape().dims(), b.data<T>(),
                     b.shape().dims(), weight.data<T>(), weight.shape().dims(),
                     Out<T>(y));
  });
  Record("Lerp", y, {a, b, weight}, Save(a, b, weight),
         [](GradientSink& g, const Tensor& a, const Tensor& b,
            const Tensor& weight) {
           if (g.Needs(0)) g.Add(0, g.dy() * (1 - weight));
           if (g.Needs(1)) g.Add(1, g.dy() * weight);
           if (g.Needs(2)) g.Add(2, g.dy() * (b - a));
         });
  return y;
}
Tensor Lerp(const Tensor& a, const Tensor& b, double weight) {
  CheckFloats("Lerp", {a, b});
  return Lerp(a, b, Tensor::Scalar(weight, a.dtype()));
}

}  // namespace wengert
