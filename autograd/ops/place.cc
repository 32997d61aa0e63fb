// Operations that put elements in other places and fill what is left with a
// value. Each has a kernel, and another of these operations as its gradient.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "absl/strings/str_join.h"
#include "autograd/kernels/copy.h"
#include "autograd/kernels/rearrange.h"
#include "autograd/ops.h"
#include "autograd/ops/axis_util.h"

namespace wengert {
namespace {

// Elements of a contiguous array from one step of an axis to the next.
DimVector StridesOf(const Shape& shape) {
  DimVector strides(shape.rank(), 1);
  for (int i = shape.rank() - 2; i >= 0; --i) {
    strides[i] = strides[i + 1] * std::max<int64_t>(1, shape[i + 1]);
  }
  return strides;
}

template <class T>
void CopyStrided(const Shape& shape, const T* x, const DimVector& x_strides,
                 T* y, const DimVector& y_strides) {
  if (shape.size() > 0) {
    kernels::CopyStrided(shape.dims(), x, x_strides, y, y_strides);
  }
}

}  // namespace

// y = x with `value` around it: dx = dy without the border, and with 0 where x
// was cut off
Tensor Pad(const Tensor& x,
           absl::Span<const std::pair<int64_t, int64_t>> widths, double value) {
  CheckDefined("Pad", x);
  const auto fail = [&](const auto&... why) {
    Throw("Pad", Describe(x), " by (",
          absl::StrJoin(widths, "), (", absl::PairFormatter(", ")), ")",
          why...);
  };
  if (static_cast<int>(widths.size()) > x.rank()) {
    fail("; wanted a pair for each of its last axes, and no more");
  }
  DimVector dims = DimsOf(x.shape()), before(x.rank(), 0), after(x.rank(), 0);
  absl::InlinedVector<std::pair<int64_t, int64_t>, 6> back;
  for (size_t i = 0; i < widths.size(); ++i) {
    const size_t axis = x.rank() - widths.size() + i;
    const int64_t n = dims[axis];
    std::tie(before[axis], after[axis]) = widths[i];
    if (before[axis] < -n || after[axis] < -n ||
        before[axis] < -(n + std::min<int64_t>(0, after[axis]))) {
      fail(" cuts off more than the ", n, " of axis ", axis);
    }
    if (__builtin_add_overflow(n, before[axis], &dims[axis]) ||
        __builtin_add_overflow(dims[axis], after[axis], &dims[axis])) {
      fail(" is too large");
    }
    back.push_back({-before[axis], -after[axis]});
  }
  Tensor y = Tensor::Empty(ResultShape("Pad", dims), x.dtype());
  WithAny(x.dtype(), [&](auto t) {
    using T = decltype(t);
    if (!Holds<T>(value)) {
      fail(" with ", value, "; wanted a value of its dtype");
    }
    kernels::Pad<T>(x.shape().dims(), before, after, static_cast<T>(value),
                    x.data<T>(), Out<T>(y));
  });
  Record("Pad", y, {x}, Save(),
         [back](GradientSink& g) { g.Add(0, Pad(g.dy(), back)); });
  return y;
}
Tensor Pad(const Tensor& x,
           std::initializer_list<std::pair<int64_t, int64_t>> widths,
           double value) {
  return Pad(x, absl::MakeConstSpan(widths.begin(), widths.size()), value);
}

namespace {

using AxisFlags = absl::InlinedVector<bool, 6>;

// y[.., i, ..] = x[.., n - 1 - i, ..] along each axis that is flagged: dx is dy
// likewise
Tensor Flipped(const Tensor& x, const AxisFlags& flip) {
  const DimVector y_strides = StridesOf(x.shape());
  DimVector x_strides = y_strides;
  int64_t first = 0;
  for (int i = 0; i < x.rank(); ++i) {
    if (!flip[i]) continue;
    first += (x.shape()[i] - 1) * x_strides[i];
    x_strides[i] = -x_strides[i];
  }
  Tensor y = Tensor::Empty(x.shape(), x.dtype());
  WithAny(x.dtype(), [&](auto t) {
    using T = decltype(t);
    CopyStrided(x.shape(), x.data<T>() + first, x_strides, Out<T>(y),
                y_strides);
  });
  Record("Flip", y, {x}, Save(),
         [flip](GradientSink& g) { g.Add(0, Flipped(g.dy(), flip)); });
  return y;
}

}  // namespace

Tensor Flip(const Tensor& x, const Axes& axes) {
  CheckDefined("Flip", x);
  AxisFlags flip = Listed("Flip", x.shape(), axes.get());
  if (axes.get().empty()) flip.assign(x.rank(), true);
  return Flipped(x, flip);
}

// y[.., (i + shift) mod n, ..] = x[.., i, ..]: dx is dy, shifted back
Tensor Roll(const Tensor& x, int64_t shift, int axis) {
  CheckDefined("Roll", x);
  const int a = x.shape().CheckAxis("Roll", axis);
  const int64_t n = std::max<int64_t>(1, x.dim(a));
  const int64_t by = (shift % n + n) % n;
  const Extents s = ExtentsAt(x.shape(), a);
  const int64_t row = x.dim(a) * s.inner, tail = by * s.inner;
  Tensor y = Tensor::Empty(x.shape(), x.dtype());
  if (x.size() > 0) {
    WithAny(x.dtype(), [&](auto t) {
      using T = decltype(t);
      const T* in = x.data<T>();
      kernels::CopyBlocks(s.outer, row - tail, in, row, Out<T>(y) + tail, row);
      kernels::CopyBlocks(s.outer, tail, in + row - tail, row, Out<T>(y), row);
    });
  }
  Record("Roll", y, {x}, Save(),
         [by, a](GradientSink& g) { g.Add(0, Roll(g.dy(), -by, a)); });
  return y;
}

namespace {

// The mirror of Unfold: dy = windows of dx
Tensor Folded(const Tensor& y, const Shape& shape, int axis, int64_t step);

kernels::Windows WindowsOf(const Shape& shape, int axis, int64_t size,
                           int64_t step) {
  const Extents s = ExtentsAt(shape, axis);
  return {s.outer, shape[axis], s.inner, size, step};
}

Tensor Unfolded(const Tensor& x, int axis, int64_t size, int64_t step) {
  const kernels::Windows w = WindowsOf(x.shape(), axis, size, step);
  DimVector dims = DimsOf(x.shape());
  dims[axis] = w.count();
  dims.push_back(size);
  Tensor y = Tensor::Empty(ResultShape("Unfold", dims), x.dtype());
  WithAny(x.dtype(), [&](auto t) {
    using T = decltype(t);
    CopyStrided({w.outer, w.count(), w.inner, w.size}, x.data<T>(),
                {w.n * w.inner, w.step * w.inner, 1, w.inner}, Out<T>(y),
                {w.count() * w.inner * w.size, w.inner * w.size, w.size, 1});
  });
  Record("Unfold", y, {x}, Save(),
         [axis, step, shape = x.shape()](GradientSink& g) {
           g.Add(0, Folded(g.dy(), shape, axis, step));
         });
  return y;
}

Tensor Folded(const Tensor& y, const Shape& shape, int axis, int64_t step) {
  const kernels::Windows w = WindowsOf(shape, axis, y.dim(-1), step);
  Tensor x = Tensor::Empty(shape, y.dtype());
  WithFloat(y.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::Fold(w, y.data<T>(), Out<T>(x));
  });
  Record("Fold", x, {y}, Save(),
         [axis, step, size = y.dim(-1)](GradientSink& g) {
           g.Add(0, Unfolded(g.dy(), axis, size, step));
         });
  return x;
}

}  // namespace

Tensor Unfold(const Tensor& x, int axis, int64_t size, int64_t step) {
  CheckDefined("Unfold", x);
  const int a = x.shape().CheckAxis("Unfold", axis);
  if (size < 1 || size > x.dim(a) || step < 1) {
    Throw("Unfold", "windows of ", size, ", ", step, " apart, along axis ", a,
          " of ", Describe(x), "; wanted 1 <= size <= ", x.dim(a),
          " and a step of 1 or more");
  }
  // From there on there is one window.
  return Unfolded(x, a, size, std::min(step, x.dim(a)));
}

namespace {

// x in a triangle and 0 elsewhere: dx = dy in the triangle
Tensor Triangle(const char* op, bool lower, const Tensor& x, int64_t k) {
  CheckDefined(op, x);
  if (x.rank() < 2) Throw(op, Describe(x), "; wanted rank 2 or more");
  const int64_t m = x.dim(-2), n = x.dim(-1);
  const Extents s = ExtentsAt(x.shape(), x.rank() - 2);
  Tensor y = Tensor::Empty(x.shape(), x.dtype());
  WithAny(x.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::Triangle(lower, k, s.outer, m, n, x.data<T>(), Out<T>(y));
  });
  Record(op, y, {x}, Save(), [op, lower, k](GradientSink& g) {
    g.Add(0, Triangle(op, lower, g.dy(), k));
  });
  return y;
}

}  // namespace

Tensor Tril(const Tensor& x, int64_t k) { return Triangle("Tril", true, x, k); }
Tensor Triu(const Tensor& x, int64_t k) {
  return Triangle("Triu", false, x, k);
}

namespace {

// A diagonal within a larger array: where it begins, and the strides there of
// its own dimensions, the last of which runs along it.
struct DiagonalView {
  Shape shape;
  int64_t first;
  DimVector strides;
};

DiagonalView DiagonalOf(const Shape& shape, int64_t k, int axis1, int axis2) {
  const int64_t m = shape[axis1], n = shape[axis2];
  k = std::clamp(k, -m, n);
  const DimVector strides = StridesOf(shape);
  DiagonalView view;
  DimVector dims;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i == axis1 || i == axis2) continue;
    dims.push_back(shape[i]);
    view.strides.push_back(strides[i]);
  }
  dims.push_back(k >= 0 ? std::min(m, n - k) : std::min(m + k, n));
  view.strides.push_back(strides[axis1] + strides[axis2]);
  view.shape = Shape(dims);
  view.first = k >= 0 ? k * strides[axis2] : -k * strides[axis1];
  return view;
}

// x on a diagonal of zeros: dx = that diagonal of dy
Tensor OnDiagonal(const Tensor& x, const Shape& shape, int64_t k, int axis1,
                  int axis2);

// A diagonal of x: dx = dy on that diagonal of zeros
Tensor DiagonalFrom(const Tensor& x, int64_t k, int axis1, int axis2) {
  const DiagonalView view = DiagonalOf(x.shape(), k, axis1, axis2);
  Tensor y = Tensor::Empty(view.shape, x.dtype());
  WithAny(x.dtype(), [&](auto t) {
    using T = decltype(t);
    CopyStrided(view.shape, x.data<T>() + view.first, view.strides, Out<T>(y),
                StridesOf(view.shape));
  });
  Record("Diagonal", y, {x}, Save(),
         [k, axis1, axis2, shape = x.shape()](GradientSink& g) {
           g.Add(0, OnDiagonal(g.dy(), shape, k, axis1, axis2));
         });
  return y;
}

Tensor OnDiagonal(const Tensor& x, const Shape& shape, int64_t k, int axis1,
                  int axis2) {
  const DiagonalView view = DiagonalOf(shape, k, axis1, axis2);
  Tensor y = Tensor::Zeros(shape, x.dtype());
  WithAny(x.dtype(), [&](auto t) {
    using T = decltype(t);
    CopyStrided(view.shape, x.data<T>(), StridesOf(view.shape),
                Out<T>(y) + view.first, view.strides);
  });
  Record("DiagEmbed", y, {x}, Save(), [k, axis1, axis2](GradientSink& g) {
    g.Add(0, DiagonalFrom(g.dy(), k, axis1, axis2));
  });
  return y;
}

}  // namespace

Tensor Diagonal(const Tensor& x, int64_t k, int axis1, int axis2) {
  CheckDefined("Diagonal", x);
  const int a = x.shape().CheckAxis("Diagonal", axis1);
  const int b = x.shape().CheckAxis("Diagonal", axis2);
  if (a == b) {
    Throw("Diagonal", "axes ", axis1, " and ", axis2, " of ", Describe(x),
          " are one; wanted two");
  }
  return DiagonalFrom(x, k, a, b);
}

Tensor DiagEmbed(const Tensor& x, int64_t k) {
  CheckDefined("DiagEmbed", x);
  if (x.rank() < 1) Throw("DiagEmbed", Describe(x), "; wanted rank 1 or more");
  // -k of the smallest k does not fit, and neither does what follows.
  const int64_t away = k == std::numeric_limits<int64_t>::min()
                           ? std::numeric_limits<int64_t>::max()
                           : std::abs(k);
  DimVector dims = DimsOf(x.shape());
  if (__builtin_add_overflow(dims.back(), away, &dims.back())) {
    Throw("DiagEmbed", Describe(x), " on diagonal ", k, " is too large");
  }
  dims.push_back(dims.back());
  return OnDiagonal(x, ResultShape("DiagEmbed", dims), k, x.rank() - 1,
                    x.rank());
}

}  // namespace wengert
