// Operations that move elements: views, permutations, slices, rows by index.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "autograd/kernels/broadcast.h"
#include "autograd/kernels/copy.h"
#include "autograd/kernels/rearrange.h"
#include "autograd/kernels/rows.h"
#include "autograd/ops.h"
#include "autograd/ops/axis_util.h"

namespace wengert {
namespace {

// Gathers rows and records with the given rule.
template <class Rule>
Tensor GatherRows(const Tensor& table, const Tensor& ids, Rule rule) {
  if (!table.defined() || table.rank() < 1 || !IsFloat(table.dtype())) {
    Throw("Embedding", "the table is ", Describe(table),
          "; wanted float [n, ...]");
  }
  absl::InlinedVector<int64_t, 6> dims;
  WithIds("Embedding", ids, table.dim(0), [](auto*) {});
  dims.assign(ids.shape().dims().begin(), ids.shape().dims().end());
  dims.insert(dims.end(), table.shape().dims().begin() + 1,
              table.shape().dims().end());
  Tensor y = Tensor::Empty(Shape(dims), table.dtype());
  WithFloat(table.dtype(), [&](auto t) {
    using T = decltype(t);
    WithIds("Embedding", ids, table.dim(0), [&](auto* p) {
      kernels::GatherRows(ids.size(), ExtentsAt(table.shape(), 0).inner, p,
                          table.data<T>(), Out<T>(y));
    });
  });
  rule(y);
  return y;
}

}  // namespace

// y = x in another shape: dx = dy in x's shape
Tensor Reshape(const Tensor& x, const Shape& shape) {
  CheckDefined("Reshape", x);
  if (shape.size() != x.size()) {
    Throw("Reshape", Describe(x), " to ", shape.ToString(),
          "; wanted as many elements");
  }
  Tensor y = Tensor::Alias(x, 0, shape);
  Record("Reshape", y, {x}, Save(), [shape = x.shape()](GradientSink& g) {
    g.Add(0, Reshape(g.dy(), shape));
  });
  return y;
}

Tensor Reshape(const Tensor& x, absl::Span<const int64_t> dims) {
  CheckDefined("Reshape", x);
  absl::InlinedVector<int64_t, 6> full(dims.begin(), dims.end());
  const auto hole = std::find(full.begin(), full.end(), -1);
  if (hole != full.end()) {
    *hole = 1;
    const bool valid = std::all_of(full.begin(), full.end(),
                                   [](int64_t dim) { return dim >= 0; });
    const int64_t rest = valid ? Shape(full).size() : 0;
    if (rest == 0 || x.size() % rest != 0) {
      Throw("Reshape", Describe(x), " to [", absl::StrJoin(dims, ", "),
            "]; wanted at most one -1, with a whole size in its place");
    }
    *hole = x.size() / rest;
  }
  return Reshape(x, Shape(full));
}
Tensor Reshape(const Tensor& x, std::initializer_list<int64_t> dims) {
  return Reshape(x, absl::MakeConstSpan(dims.begin(), dims.size()));
}

// y = x with its axes in another order: dx = dy with them put back
Tensor Permute(const Tensor& x, absl::Span<const int> axes) {
  CheckDefined("Permute", x);
  absl::InlinedVector<int, 6> order, inverse(x.rank(), -1);
  absl::InlinedVector<int64_t, 6> dims;
  for (int axis : axes) {
    order.push_back(x.shape().CheckAxis("Permute", axis));
    if (inverse[order.back()] >= 0) order.clear();  // named twice
    if (order.empty()) break;
    inverse[order.back()] = static_cast<int>(order.size()) - 1;
    dims.push_back(x.shape()[order.back()]);
  }
  if (static_cast<int>(order.size()) != x.rank() ||
      static_cast<int>(axes.size()) != x.rank()) {
    Throw("Permute", "axes (", absl::StrJoin(axes, ", "), ") for ", Describe(x),
          "; wanted each of its axes once");
  }
  Tensor y = Tensor::Empty(Shape(dims), x.dtype());
  WithAny(x.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::Permute(x.shape().dims(), order, x.data<T>(), Out<T>(y));
  });
  Record("Permute", y, {x}, Save(),
         [inverse](GradientSink& g) { g.Add(0, Permute(g.dy(), inverse)); });
  return y;
}
Tensor Permute(const Tensor& x, std::initializer_list<int> axes) {
  return Permute(x, absl::MakeConstSpan(axes.begin(), axes.size()));
}

Tensor Transpose(const Tensor& x) {
  CheckDefined("Transpose", x);
  if (x.rank() < 2) Throw("Transpose", Describe(x), "; wanted rank 2 or more");
  absl::InlinedVector<int, 6> axes;
  for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return Permute(x, axes);
}

namespace {

// dx of shape `shape` from dy, which is its part from `start` on along axis:
// once there is a gradient, the part alone is touched.
void AddPart(GradientSink& g, const Shape& shape, int axis, int64_t start) {
  const Tensor& dy = g.dy();
  const int64_t n = dy.dim(axis), left = shape[axis] - start - n;
  if (g.Recorded()) {
    absl::InlinedVector<std::pair<int64_t, int64_t>, 6> widths(
        shape.rank() - axis, {0, 0});
    widths[0] = {start, left};
    return g.Add(0, Pad(dy, widths));
  }
  const Extents s = ExtentsAt(shape, axis);
  WithFloat(dy.dtype(), [&](auto t) {
    using T = decltype(t);
    auto dx = g.Into<T>(0);
    if (dx.accumulate) {
      kernels::AddBlocks(s.outer, n * s.inner, dy.data<T>(), n * s.inner,
                         dx.data + start * s.inner, shape[axis] * s.inner);
    } else {
      kernels::Pad<T>({s.outer, n, s.inner}, {0, start, 0}, {0, left, 0}, 0,
                      dy.data<T>(), dx.data);
    }
  });
}

}  // namespace

// y = x[start : start + length] along axis: dx = dy there, 0 elsewhere
Tensor Slice(const Tensor& x, int axis, int64_t start, int64_t length) {
  CheckDefined("Slice", x);
  const int a = x.shape().CheckAxis("Slice", axis);
  if (start < 0 || length < 0 || length > x.dim(a) - start) {
    Throw("Slice", "[", start, ", ", start, " + ", length, ") along axis ", a,
          " lies outside ", Describe(x));
  }
  const Extents s = ExtentsAt(x.shape(), a);
  const Shape shape = WithDim(x.shape(), a, length);
  Tensor y = a == 0 ? Tensor::Alias(x, start * s.inner, shape)
                    : Tensor::Empty(shape, x.dtype());
  if (a != 0) {
    WithAny(x.dtype(), [&](auto t) {
      using T = decltype(t);
      kernels::CopyBlocks(s.outer, length * s.inner,
                          x.data<T>() + start * s.inner, x.dim(a) * s.inner,
                          Out<T>(y), length * s.inner);
    });
  }
  Record("Slice", y, {x}, Save(),
         [a, start, shape = x.shape()](GradientSink& g) {
           AddPart(g, shape, a, start);
         });
  return y;
}

namespace {

// The gradient of an input: a part of dy.
void TakePart(GradientSink& g, int input, int axis, int64_t start, int64_t n) {
  const Tensor& dy = g.dy();
  // Along the first axis a slice is no copy.
  if (g.Recorded() || axis == 0) {
    return g.Add(input, Slice(dy, axis, start, n));
  }
  const Extents s = ExtentsAt(dy.shape(), axis);
  WithFloat(dy.dtype(), [&](auto t) {
    using T = decltype(t);
    auto dx = g.Into<T>(input);
    const auto move =
        dx.accumulate ? kernels::AddBlocks<T> : kernels::CopyBlocks<T>;
    move(s.outer, n * s.inner, dy.data<T>() + start * s.inner,
         dy.dim(axis) * s.inner, dx.data, n * s.inner);
  });
}

}  // namespace

// y = xs, one behind the other along axis: dx_i = its slice of dy
Tensor Concat(absl::Span<const Tensor> xs, int axis) {
  if (xs.empty()) Throw("Concat", "no tensors; wanted one or more");
  CheckDefined("Concat", xs[0]);
  const int a = xs[0].shape().CheckAxis("Concat", axis);
  int64_t total = 0;
  for (const Tensor& x : xs) {
    if (!x.defined() || x.dtype() != xs[0].dtype() ||
        x.rank() != xs[0].rank() ||
        WithDim(x.shape(), a, 0) != WithDim(xs[0].shape(), a, 0)) {
      Throw("Concat", Describe(xs[0]), " and ", Describe(x), " along axis ", a,
            "; wanted one dtype and the same sizes but for that axis");
    }
    total += x.dim(a);
  }
  Tensor y = Tensor::Empty(WithDim(xs[0].shape(), a, total), xs[0].dtype());
  const Extents s = ExtentsAt(y.shape(), a);
  WithAny(y.dtype(), [&](auto t) {
    using T = decltype(t);
    int64_t at = 0;
    for (const Tensor& x : xs) {
      const int64_t n = x.dim(a) * s.inner;
      kernels::CopyBlocks(s.outer, n, x.data<T>(), n, Out<T>(y) + at,
                          total * s.inner);
      at += n;
    }
  });
  absl::InlinedVector<TensorRef, 6> inputs(xs.begin(), xs.end());
  DimVector sizes;
  for (const Tensor& x : xs) sizes.push_back(x.dim(a));
  Record("Concat", y, absl::MakeConstSpan(inputs), Save(),
         [a, sizes](GradientSink& g) {
           int64_t at = 0;
           for (size_t i = 0; i < sizes.size(); ++i) {
             const int input = static_cast<int>(i);
             if (g.Needs(input)) TakePart(g, input, a, at, sizes[i]);
             at += sizes[i];
           }
         });
  return y;
}

// y_i = table[ids_i]: dtable[r] = sum of dy_i over the i with ids_i = r
Tensor Embedding(const Tensor& table, const Tensor& ids, int64_t padding_id) {
  const auto primitive = [padding_id](const Tensor& table, const Tensor& ids) {
    return GatherRows(table, ids, [&](Tensor& y) {
      Record(
          "Gather", y, {table}, Save(ids),
          [padding_id, n = table.dim(0)](GradientSink& g, const Tensor& ids) {
            g.Add(0, ScatterRows(g.dy(), ids, n, padding_id));
          });
    });
  };
  return GatherRows(table, ids, [&](Tensor& y) {
    Record(
        "Embedding", y, {table}, Save(table, ids),
        [padding_id](GradientSink& g, const Tensor& table, const Tensor& ids) {
          // Only the rows that were used are touched once there is a gradient.
          WithFloat(table.dtype(), [&](auto t) {
            using T = decltype(t);
            auto d = g.Into<T>(0);
            WithIds("Embedding", ids, table.dim(0), [&](auto* p) {
              kernels::ScatterAddRows(
                  ids.size(), ExtentsAt(table.shape(), 0).inner, table.dim(0),
                  p, padding_id, g.dy().data<T>(),
                  d.accumulate ? d.data : nullptr, d.data);
            });
          });
        },
        primitive);
  });
}

// y[ids_i] += x_i on zeros: dx_i = dy[ids_i], 0 where ids_i is padding
Tensor ScatterRows(const Tensor& x, const Tensor& ids, int64_t n_rows,
                   int64_t padding_id) {
  const DType dtype = CheckFloats("ScatterRows", {x});
  const int lead = ids.defined() ? ids.rank() : 0;
  if (!ids.defined() || x.rank() < lead ||
      Shape(x.shape().dims().first(lead)) != ids.shape()) {
    Throw("ScatterRows", "x ", Describe(x), " with ids ", Describe(ids),
          "; wanted x of shape ids.shape + row shape");
  }
  absl::InlinedVector<int64_t, 6> dims{n_rows};
  dims.insert(dims.end(), x.shape().dims().begin() + lead,
              x.shape().dims().end());
  Tensor y = Tensor::Empty(Shape(dims), dtype);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    WithIds("ScatterRows", ids, n_rows, [&](auto* p) {
      kernels::ScatterAddRows<T>(ids.size(), ExtentsAt(y.shape(), 0).inner,
                                 n_rows, p, padding_id, x.data<T>(), nullptr,
                                 Out<T>(y));
    });
  });
  Record("ScatterRows", y, {x}, Save(ids),
         [padding_id](GradientSink& g, const Tensor& ids) {
           Tensor dx = Embedding(g.dy(), ids);
           if (padding_id >= 0 && padding_id < g.dy().dim(0)) {
             const Tensor padding =
                 Equal(ids, Tensor::Full({}, static_cast<double>(padding_id),
                                         ids.dtype()));
             absl::InlinedVector<int64_t, 6> column(ids.shape().dims().begin(),
                                                    ids.shape().dims().end());
             column.resize(dx.rank(), 1);
             dx = MaskedFill(dx, Reshape(padding, Shape(column)), 0);
           }
           g.Add(0, dx);
         });
  return y;
}

// y = c ? a : b: da = dy where c, db = dy elsewhere
Tensor Where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  if (!condition.defined() || condition.dtype() != DType::kBool ||
      !a.defined() || !b.defined() || a.dtype() != b.dtype()) {
    Throw("Where", "condition ", Describe(condition), ", a ", Describe(a),
          ", b ", Describe(b), "; wanted bool, and a and b of one dtype");
  }
  const Shape shape = Broadcast("Where", condition.shape(),
                                Broadcast("Where", a.shape(), b.shape()));
  Tensor y = Tensor::Empty(shape, a.dtype());
  WithAny(a.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::Where(shape.dims(), condition.data<bool>(),
                   condition.shape().dims(), a.data<T>(), a.shape().dims(),
                   b.data<T>(), b.shape().dims(), Out<T>(y));
  });
  const bool a_whole = a.shape() == shape, b_whole = b.shape() == shape;
  Record("Where", y, {a, b}, Save(condition),
         [a_whole, b_whole](GradientSink& g, const Tensor& condition) {
           const Tensor& dy = g.dy();
           // What a kernel makes of all of dy at once.
           const bool whole = !g.Recorded() && condition.shape() == dy.shape();
           const bool a_now = whole && a_whole && g.Needs(0);
           const bool b_now = whole && b_whole && g.Needs(1);
           WithFloat(dy.dtype(), [&](auto t) {
             using T = decltype(t);
             GradientSink::Destination<T> da = {}, db = {};
             if (a_now) da = g.Into<T>(0);
             if (b_now) db = g.Into<T>(1);
             if (!a_now && !b_now) return;
             kernels::WhereGrad(dy.size(), condition.data<bool>(), dy.data<T>(),
                                da.data, da.accumulate, db.data, db.accumulate);
           });
           const Tensor zero = Tensor::Scalar(0, dy.dtype());
           if (g.Needs(0) && !a_now) g.Add(0, Where(condition, dy, zero));
           if (g.Needs(1) && !b_now) g.Add(1, Where(condition, zero, dy));
         });
  return y;
}

Tensor MaskedFill(const Tensor& x, const Tensor& mask, double value) {
  CheckDefined("MaskedFill", x);
  if (!mask.defined() || mask.dtype() != DType::kBool) {
    Throw("MaskedFill", "mask ", Describe(mask), " for ", Describe(x),
          "; wanted bool");
  }
  CheckFillValue("MaskedFill", value, x.dtype());
  return Where(mask, Tensor::Full({}, value, x.dtype()), x);
}

}  // namespace wengert
