// Views, broadcasts, slices and concatenations by other names.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "autograd/ops.h"
#include "autograd/ops/axis_util.h"

namespace wengert {

Tensor Squeeze(const Tensor& x, const Axes& axes) {
  CheckDefined("Squeeze", x);
  const auto listed = Listed("Squeeze", x.shape(), axes.get());
  const bool all = axes.get().empty();
  DimVector dims;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t dim = x.shape()[i];
    if (listed[i] && dim != 1) {
      Throw("Squeeze", "axis ", i, " of ", Describe(x), " has size ", dim,
            "; wanted 1");
    }
    if (!listed[i] && !(all && dim == 1)) dims.push_back(dim);
  }
  return Reshape(x, Shape(dims));
}

Tensor Unsqueeze(const Tensor& x, int axis) {
  CheckDefined("Unsqueeze", x);
  const int rank = x.rank();
  if (axis < -rank - 1 || axis > rank) {
    Throw("Unsqueeze", "axis ", axis, " is out of range for ", Describe(x),
          "; wanted one in [", -rank - 1, ", ", rank, "]");
  }
  DimVector dims = DimsOf(x.shape());
  dims.insert(dims.begin() + (axis < 0 ? axis + rank + 1 : axis), 1);
  return Reshape(x, Shape(dims));
}

Tensor Expand(const Tensor& x, absl::Span<const int64_t> dims) {
  CheckDefined("Expand", x);
  DimVector full(dims.begin(), dims.end());
  const int added = static_cast<int>(dims.size()) - x.rank();
  bool fits = added >= 0;
  for (int i = 0; fits && i < static_cast<int>(full.size()); ++i) {
    const int64_t mine = i < added ? 1 : x.shape()[i - added];
    if (full[i] == -1 && i >= added) full[i] = mine;
    fits = full[i] >= 0 && (mine == 1 || mine == full[i]);
  }
  if (!fits) {
    Throw("Expand", Describe(x), " to [", absl::StrJoin(dims, ", "),
          "]; wanted its sizes, or other ones in place of 1, or -1 to keep "
          "one, behind new axes");
  }
  return BroadcastTo(x, Shape(full));
}
Tensor Expand(const Tensor& x, std::initializer_list<int64_t> dims) {
  return Expand(x, absl::MakeConstSpan(dims.begin(), dims.size()));
}

Tensor Stack(absl::Span<const Tensor> xs, int axis) {
  if (xs.empty()) Throw("Stack", "no tensors; wanted one or more");
  for (const Tensor& x : xs) {
    if (!x.defined() || !xs[0].defined() || x.dtype() != xs[0].dtype() ||
        x.shape() != xs[0].shape()) {
      Throw("Stack", Describe(xs[0]), " and ", Describe(x),
            "; wanted one dtype and one shape");
    }
  }
  const int rank = xs[0].rank();
  if (axis < -rank - 1 || axis > rank) {
    Throw("Stack", "axis ", axis, " is out of range for ", Describe(xs[0]),
          "; wanted one in [", -rank - 1, ", ", rank, "]");
  }
  absl::InlinedVector<Tensor, 6> parts;
  for (const Tensor& x : xs) parts.push_back(Unsqueeze(x, axis));
  return Concat(parts, axis);
}
Tensor Stack(std::initializer_list<Tensor> xs, int axis) {
  return Stack(absl::MakeConstSpan(xs.begin(), xs.size()), axis);
}

std::vector<Tensor> Split(const Tensor& x, absl::Span<const int64_t> sizes,
                          int axis) {
  CheckDefined("Split", x);
  const int a = x.shape().CheckAxis("Split", axis);
  int64_t left = x.dim(a);
  for (int64_t size : sizes) left -= size < 0 || size > left ? left + 1 : size;
  if (left != 0) {
    Throw("Split", "sizes [", absl::StrJoin(sizes, ", "), "] along axis ", a,
          " of ", Describe(x), "; wanted sizes >= 0 that sum to ", x.dim(a));
  }
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (int64_t size : sizes) {
    parts.push_back(Slice(x, a, start, size));
    start += size;
  }
  return parts;
}

std::vector<Tensor> Split(const Tensor& x, int64_t size, int axis) {
  CheckDefined("Split", x);
  const int64_t n = x.dim(x.shape().CheckAxis("Split", axis));
  if (size < 1) {
    Throw("Split", Describe(x), " into parts of ", size, "; wanted 1 or more");
  }
  std::vector<int64_t> sizes(n / size, size);
  if (n % size > 0 || n == 0) sizes.push_back(n % size);
  return Split(x, sizes, axis);
}

std::vector<Tensor> Chunk(const Tensor& x, int64_t n, int axis) {
  CheckDefined("Chunk", x);
  const int64_t size = x.dim(x.shape().CheckAxis("Chunk", axis));
  if (n < 1) {
    Throw("Chunk", Describe(x), " into ", n, " parts; wanted 1 or more");
  }
  const int64_t part = size / n + (size % n > 0 ? 1 : 0);
  return Split(x, std::max<int64_t>(1, part), axis);
}

namespace {

// Each axis i of x becomes two, of which either the first or the second
// repeats: [.., times, n, ..] or [.., n, times, ..], and then one again.
Tensor Repeated(const char* op, const Tensor& x, const DimVector& times,
                bool whole) {
  DimVector apart, repeated, result;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t n = x.shape()[i];
    int64_t& size = result.emplace_back();
    if (__builtin_mul_overflow(n, times[i], &size)) {
      Throw(op, times[i], " times the ", n, " of axis ", i, " of ", Describe(x),
            " is too large");
    }
    if (times[i] != 1 && whole) {
      apart.push_back(1);
      repeated.push_back(times[i]);
    }
    apart.push_back(n);
    repeated.push_back(n);
    if (times[i] != 1 && !whole) {
      apart.push_back(1);
      repeated.push_back(times[i]);
    }
  }
  const Shape shape = ResultShape(op, result);
  return Reshape(BroadcastTo(Reshape(x, Shape(apart)), Shape(repeated)), shape);
}

}  // namespace

Tensor Tile(const Tensor& x, absl::Span<const int64_t> times) {
  CheckDefined("Tile", x);
  for (int64_t t : times) {
    if (t < 0) {
      Throw("Tile", Describe(x), " by (", absl::StrJoin(times, ", "),
            "); wanted times >= 0");
    }
  }
  const size_t rank = std::max<size_t>(x.rank(), times.size());
  DimVector dims(rank - x.rank(), 1), all(rank - times.size(), 1);
  dims.insert(dims.end(), x.shape().dims().begin(), x.shape().dims().end());
  all.insert(all.end(), times.begin(), times.end());
  return Repeated("Tile", Reshape(x, Shape(dims)), all, true);
}
Tensor Tile(const Tensor& x, std::initializer_list<int64_t> times) {
  return Tile(x, absl::MakeConstSpan(times.begin(), times.size()));
}

Tensor Repeat(const Tensor& x, int64_t times, int axis) {
  CheckDefined("Repeat", x);
  const int a = x.shape().CheckAxis("Repeat", axis);
  if (times < 0) {
    Throw("Repeat", Describe(x), " ", times, " times; wanted 0 or more");
  }
  DimVector all(x.rank(), 1);
  all[a] = times;
  return Repeated("Repeat", x, all, false);
}

}  // namespace wengert
