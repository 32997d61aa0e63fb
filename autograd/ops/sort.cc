// Sorting along one axis, and the first few of the order.
#include "autograd/kernels/sort.h"

#include "autograd/ops.h"
#include "autograd/ops/op_util.h"
#include "autograd/ops/reduce_plan.h"

namespace wengert {
namespace {

// Where elements of an array [outer, n, inner] stand: `places` has k of each
// slice, and its own shape.
struct Places {
  Middle middle;
  int64_t k;
  Shape whole;
};

Tensor AtPlaces(const Tensor& x, const Tensor& places, const Places& p);

// y = zeros but for x at its places: dx = dy there
Tensor ToPlaces(const Tensor& x, const Tensor& places, const Places& p) {
  Tensor y = Tensor::Empty(p.whole, x.dtype());
  WithFloat(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const Middle& m = p.middle;
    kernels::ScatterPlaces(m.outer, m.n, m.inner, p.k, places.data<int64_t>(),
                           x.data<T>(), Out<T>(y));
  });
  Record("ToPlaces", y, {x}, Save(places),
         [p](GradientSink& g, const Tensor& places) {
           g.Add(0, AtPlaces(g.dy(), places, p));
         });
  return y;
}

// y = x at places: dx = dy there, 0 elsewhere
Tensor AtPlaces(const Tensor& x, const Tensor& places, const Places& p) {
  Tensor y = Tensor::Empty(places.shape(), x.dtype());
  WithFloat(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const Middle& m = p.middle;
    kernels::GatherPlaces(m.outer, m.n, m.inner, p.k, places.data<int64_t>(),
                          x.data<T>(), Out<T>(y));
  });
  Record("AtPlaces", y, {x}, Save(places),
         [p](GradientSink& g, const Tensor& places) {
           g.Add(0, ToPlaces(g.dy(), places, p));
         });
  return y;
}

// The first k of each slice in order: dx = dy at their places
Sorted FirstInOrder(const char* op, const Tensor& x, int64_t k, int a,
                    bool descending) {
  const Middle m = MiddleOf(x.shape(), a);
  if (m.n >= kernels::kSortLimit) {
    Throw(op, "axis ", a, " of ", Describe(x),
          "; wanted fewer than 2^32 elements");
  }
  absl::InlinedVector<int64_t, 6> dims(x.shape().dims().begin(),
                                       x.shape().dims().end());
  dims[a] = k;
  const Places p{m, k, x.shape()};
  Sorted y{Tensor::Empty(Shape(dims), x.dtype()),
           Tensor::Empty(Shape(dims), DType::kInt64)};
  WithAny(x.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::SortFirst(m.outer, m.n, m.inner, p.k, descending, x.data<T>(),
                       Out<T>(y.values), Out<int64_t>(y.indices));
  });
  if (!IsFloat(x.dtype())) return y;
  Record(op, y.values, {x}, Save(y.indices),
         [p](GradientSink& g, const Tensor& places) {
           g.Add(0, ToPlaces(g.dy(), places, p));
         });
  return y;
}

}  // namespace

Sorted Sort(const Tensor& x, int axis, SortOptions options) {
  CheckDefined("Sort", x);
  const int a = x.shape().CheckAxis("Sort", axis);
  return FirstInOrder("Sort", x, x.dim(a), a, options.descending);
}

Sorted TopK(const Tensor& x, int64_t k, int axis, TopKOptions options) {
  CheckDefined("TopK", x);
  const int a = x.shape().CheckAxis("TopK", axis);
  if (k < 0 || k > x.dim(a)) {
    Throw("TopK", "k = ", k, " along axis ", a, " of ", Describe(x),
          "; wanted one in [0, ", x.dim(a), "]");
  }
  return FirstInOrder("TopK", x, k, a, options.largest);
}

}  // namespace wengert
