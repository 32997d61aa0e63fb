// Reading and writing along axes by index, and arrays that are rules.
#include "autograd/kernels/index.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "autograd/kernels/copy.h"
#include "autograd/kernels/rearrange.h"
#include "autograd/kernels/rows.h"
#include "autograd/ops.h"
#include "autograd/ops/axis_util.h"

namespace wengert {
namespace {

// Calls f with the ids, which were checked before, in their type.
template <class F>
void WithCheckedIds(const Tensor& ids, bool shared, F f) {
  if (ids.dtype() == DType::kInt32) {
    f(kernels::AxisIds<int32_t>{ids.data<int32_t>(), shared});
  } else {
    f(kernels::AxisIds<int64_t>{ids.data<int64_t>(), shared});
  }
}

// Which elements along an axis: one list [m] that is `shared`, or an array of
// them that is as large as what it takes.
struct AxisIndex {
  int axis;
  bool shared;
};

kernels::AxisSizes SizesOf(const Shape& x, const Tensor& ids, AxisIndex at) {
  const Extents s = ExtentsAt(x, at.axis);
  return {s.outer, x[at.axis], at.shared ? ids.size() : ids.dim(at.axis),
          s.inner};
}

// y = x (zeros where x is null; y may be x) plus src by index along an axis
template <class T>
void AddAlong(const Shape& shape, const Tensor& ids, AxisIndex at, const T* x,
              const T* src, T* y) {
  const kernels::AxisSizes s = SizesOf(shape, ids, at);
  WithCheckedIds(ids, at.shared, [&](auto list) {
    if constexpr (std::is_floating_point_v<T>) {
      constexpr int64_t kWideRow = 16;
      if (at.shared && s.outer == 1 && s.inner >= kWideRow) {
        return kernels::ScatterAddRows(s.m, s.inner, s.n, list.ids, -1, src, x,
                                       y);
      }
    }
    kernels::AddAlong(s, list, x, src, y);
  });
}

Tensor AddedAlong(const char* op, const Tensor& x, const Tensor& ids,
                  const Tensor& src, const Shape& shape, AxisIndex at);

// y = x by index along an axis: dx = dy added up there, on zeros
Tensor TakenAlong(const char* op, const Tensor& x, const Tensor& ids,
                  AxisIndex at) {
  const kernels::AxisSizes s = SizesOf(x.shape(), ids, at);
  Tensor y = Tensor::Empty(WithDim(x.shape(), at.axis, s.m), x.dtype());
  WithAny(x.dtype(), [&](auto t) {
    using T = decltype(t);
    WithCheckedIds(ids, at.shared, [&](auto list) {
      kernels::TakeAlong(s, list, x.data<T>(), Out<T>(y));
    });
  });
  Record(op, y, {x}, Save(ids),
         [op, at, shape = x.shape()](GradientSink& g, const Tensor& ids) {
           if (g.Recorded()) {
             return g.Add(0, AddedAlong(op, {}, ids, g.dy(), shape, at));
           }
           WithFloat(g.dy().dtype(), [&](auto t) {
             using T = decltype(t);
             auto dx = g.Into<T>(0);
             AddAlong(shape, ids, at, dx.accumulate ? dx.data : nullptr,
                      g.dy().data<T>(), dx.data);
           });
         });
  return y;
}

// y = x (zeros if x is undefined) plus src by index along an axis: dx = dy,
// dsrc = dy by index
Tensor AddedAlong(const char* op, const Tensor& x, const Tensor& ids,
                  const Tensor& src, const Shape& shape, AxisIndex at) {
  Tensor y = Tensor::Empty(shape, src.dtype());
  WithAny(src.dtype(), [&](auto t) {
    using T = decltype(t);
    AddAlong(shape, ids, at, x.defined() ? x.data<T>() : nullptr, src.data<T>(),
             Out<T>(y));
  });
  Record(op, y, {x, src}, Save(ids),
         [op, at](GradientSink& g, const Tensor& ids) {
           if (g.Needs(1)) g.Add(1, TakenAlong(op, g.dy(), ids, at));
           g.Add(0, g.dy());
         });
  return y;
}

}  // namespace

Tensor IndexSelect(const Tensor& x, int axis, const Tensor& ids) {
  CheckDefined("IndexSelect", x);
  const int a = x.shape().CheckAxis("IndexSelect", axis);
  WithIds("IndexSelect", ids, x.dim(a), [](auto*) {});
  if (ids.rank() != 1) {
    Throw("IndexSelect", "ids ", Describe(ids), " along axis ", a, " of ",
          Describe(x), "; wanted ids of rank 1");
  }
  return TakenAlong("IndexSelect", x, ids, {a, true});
}

Tensor TakeAlongAxis(const Tensor& x, const Tensor& ids, int axis) {
  CheckDefined("TakeAlongAxis", x);
  const int a = x.shape().CheckAxis("TakeAlongAxis", axis);
  WithIds("TakeAlongAxis", ids, x.dim(a), [](auto*) {});
  if (ids.rank() != x.rank()) {
    Throw("TakeAlongAxis", Describe(x), " by ids ", Describe(ids),
          " along axis ", a, "; wanted one rank");
  }
  const Shape others = Broadcast("TakeAlongAxis", WithDim(x.shape(), a, 1),
                                 WithDim(ids.shape(), a, 1));
  const auto whole = [&](const Tensor& t) {
    const Shape shape = WithDim(others, a, t.dim(a));
    return t.shape() == shape ? t : BroadcastTo(t, shape);
  };
  return TakenAlong("TakeAlongAxis", whole(x), whole(ids), {a, false});
}

Tensor ScatterAdd(const Tensor& x, int axis, const Tensor& ids,
                  const Tensor& src) {
  CheckDefined("ScatterAdd", x);
  const int a = x.shape().CheckAxis("ScatterAdd", axis);
  WithIds("ScatterAdd", ids, x.dim(a), [](auto*) {});
  if (!src.defined() || src.dtype() != x.dtype() ||
      src.shape() != ids.shape() || ids.rank() != x.rank() ||
      WithDim(ids.shape(), a, x.dim(a)) != x.shape()) {
    Throw("ScatterAdd", "to ", Describe(x), " along axis ", a, " by ids ",
          Describe(ids), " of ", Describe(src),
          "; wanted ids and src of one shape, x's but for the axis, and src of "
          "x's dtype");
  }
  return AddedAlong("ScatterAdd", x, ids, src, x.shape(), {a, false});
}

namespace {

// Whether each of the rows' numbers is the last of its equals.
Tensor LastOfEqual(const Tensor& rows, int64_t n_rows) {
  Tensor last = Tensor::Empty({rows.size(), 1}, DType::kBool);
  Tensor seen = Tensor::Zeros({n_rows}, DType::kBool);
  for (int64_t j = rows.size() - 1; j >= 0; --j) {
    bool& was = Out<bool>(seen)[rows.data<int64_t>()[j]];
    Out<bool>(last)[j] = !was;
    was = true;
  }
  return last;
}

// y = x [n, width] with y[rows[j]] = src[j], the last of equal rows: dx = dy
// where nothing was put, dsrc[j] = dy[rows[j]] of the last
Tensor PutRows(const Tensor& x, const Tensor& rows, const Tensor& src) {
  Tensor y = x.Clone();
  const int64_t width = x.dim(1);
  WithAny(x.dtype(), [&](auto t) {
    using T = decltype(t);
    for (int64_t j = 0; j < rows.size(); ++j) {
      std::copy_n(src.data<T>() + j * width, width,
                  Out<T>(y) + rows.data<int64_t>()[j] * width);
    }
  });
  Record("IndexPut", y, {x, src}, Save(rows),
         [](GradientSink& g, const Tensor& rows) {
           const Tensor& dy = g.dy();
           if (g.Needs(0)) {
             g.Add(0, PutRows(
                          dy, rows,
                          Tensor::Zeros({rows.size(), dy.dim(1)}, dy.dtype())));
           }
           if (g.Needs(1)) {
             g.Add(1, Where(LastOfEqual(rows, dy.dim(0)),
                            TakenAlong("IndexPut", dy, rows, {0, true}),
                            Tensor::Scalar(0, dy.dtype())));
           }
         });
  return y;
}

// The rows that the indices name, of an array whose first axes they count:
// int64 [m].
Tensor RowsOf(const Tensor& x, absl::Span<const Tensor> ids,
              const Shape& shape) {
  Tensor rows = Tensor::Zeros({shape.size()}, DType::kInt64);
  int64_t* const row = Out<int64_t>(rows);
  for (size_t k = 0; k < ids.size(); ++k) {
    const int64_t n = x.shape()[static_cast<int>(k)];
    const Tensor all = BroadcastTo(ids[k], shape);
    WithCheckedIds(all, true, [&](auto list) {
      for (int64_t j = 0; j < rows.size(); ++j) {
        row[j] = row[j] * n + list.ids[j];
      }
    });
  }
  return rows;
}

}  // namespace

Tensor IndexPut(const Tensor& x, absl::Span<const Tensor> ids,
                const Tensor& values, IndexPutOptions options) {
  CheckDefined("IndexPut", x);
  const int n_axes = static_cast<int>(ids.size());
  if (ids.empty() || n_axes > x.rank() || !values.defined() ||
      values.dtype() != x.dtype()) {
    Throw("IndexPut", n_axes, " arrays of ids and values ", Describe(values),
          " for ", Describe(x),
          "; wanted ids for one or more of its first axes, and values of its "
          "dtype");
  }
  Shape shape;
  DimVector matrix = {1, 1};  // x as rows
  for (int k = 0; k < n_axes; ++k) {
    WithIds(absl::StrCat("IndexPut, axis ", k).c_str(), ids[k], x.shape()[k],
            [](auto*) {});
    shape = Broadcast("IndexPut", shape, ids[k].shape());
    matrix[0] *= x.shape()[k];
  }
  DimVector put = DimsOf(shape);
  for (int k = n_axes; k < x.rank(); ++k) {
    put.push_back(x.shape()[k]);
    matrix[1] *= x.shape()[k];
  }
  if (!BroadcastsTo(values.shape(), Shape(put))) {
    Throw("IndexPut", "values ", Describe(values), " for ids ",
          shape.ToString(), " of ", Describe(x),
          "; wanted values that broadcast to ", Shape(put).ToString());
  }
  const Tensor rows = RowsOf(x, ids, shape);
  const Tensor to = Reshape(x, Shape(matrix));
  const Tensor from =
      Reshape(BroadcastTo(values, Shape(put)), {rows.size(), matrix[1]});
  const Tensor y = options.accumulate ? AddedAlong("IndexPut", to, rows, from,
                                                   to.shape(), {0, true})
                                      : PutRows(to, rows, from);
  return Reshape(y, x.shape());
}

Tensor OneHot(const Tensor& ids, int64_t n, DType dtype) {
  if (n < 0) Throw("OneHot", n, " classes; wanted 0 or more");
  WithIds("OneHot", ids, n, [](auto*) {});
  DimVector dims = DimsOf(ids.shape());
  dims.push_back(n);
  Tensor y = Tensor::Zeros(ResultShape("OneHot", dims), dtype);
  WithAny(dtype, [&](auto t) {
    using T = decltype(t);
    WithIds("OneHot", ids, n, [&](const auto* id) {
      for (int64_t i = 0; i < ids.size(); ++i) Out<T>(y)[i * n + id[i]] = T{1};
    });
  });
  return y;
}

Tensor Arange(double begin, double end, double step, DType dtype) {
  const auto fail = [&](const char* why) {
    Throw("Arange", "from ", begin, " to ", end, " by ", step, " of ",
          Name(dtype), why);
  };
  const auto at = [=](int64_t i) {
    return std::fma(static_cast<double>(i), step, begin);
  };
  if (!std::isfinite(begin) || !std::isfinite(end) || !std::isfinite(step) ||
      step == 0 || dtype == DType::kBool) {
    fail("; wanted finite numbers, a step that is not 0, and no bool");
  }
  const double count = std::ceil((end - begin) / step);
  if (!(count < 0x1p50)) fail(" has too many elements");
  // The division rounds: the last element may lie at the end, or one be left.
  int64_t n = count > 0 ? static_cast<int64_t>(count) : 0;
  const auto before = [=](double x) { return step > 0 ? x < end : x > end; };
  if (n > 0 && !before(at(n - 1))) {
    --n;
  } else if (before(at(n))) {
    ++n;
  }
  if (!IsFloat(dtype)) {
    const double bound = dtype == DType::kInt32 ? 0x1p31 : 0x1p53;
    if (begin != std::trunc(begin) || step != std::trunc(step) ||
        std::abs(begin) >= bound || (n > 0 && std::abs(at(n - 1)) >= bound)) {
      fail("; wanted whole numbers within the dtype");
    }
  }
  Tensor y = Tensor::Empty(ResultShape("Arange", {n}), dtype);
  WithAny(dtype, [&](auto t) {
    kernels::Steps(n, 0, begin, step, Out<decltype(t)>(y));
  });
  return y;
}

Tensor Linspace(double begin, double end, int64_t n, DType dtype) {
  if (!std::isfinite(begin) || !std::isfinite(end) || n < 0 ||
      !IsFloat(dtype)) {
    Throw("Linspace", n, " values from ", begin, " to ", end, " of ",
          Name(dtype), "; wanted finite ends, 0 <= n, and floats");
  }
  // Each half from its own end; without end - begin, which may overflow. One
  // gap has nothing inside.
  const double gaps = static_cast<double>(std::max<int64_t>(2, n - 1));
  const double step = end / gaps - begin / gaps;
  const int64_t half = n - n / 2;
  Tensor y = Tensor::Empty(ResultShape("Linspace", {n}), dtype);
  WithFloat(dtype, [&](auto t) {
    auto* const out = Out<decltype(t)>(y);
    kernels::Steps(half, 0, begin, step, out);
    kernels::Steps(n / 2, half - (n - 1), end, step, out + half);
  });
  return y;
}

Tensor Eye(int64_t n, int64_t m, DType dtype) {
  if (m == -1) m = n;
  if (n < 0 || m < 0) {
    Throw("Eye", "[", n, ", ", m, "]; wanted sizes >= 0");
  }
  Tensor y = Tensor::Zeros(ResultShape("Eye", {n, m}), dtype);
  WithAny(dtype, [&](auto t) {
    using T = decltype(t);
    for (int64_t i = 0; i < std::min(n, m); ++i) Out<T>(y)[i * m + i] = T{1};
  });
  return y;
}

}  // namespace wengert
