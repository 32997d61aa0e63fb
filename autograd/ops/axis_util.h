// What operations along one axis, or by index, share.
#ifndef WENGERT_AUTOGRAD_OPS_AXIS_UTIL_H_
#define WENGERT_AUTOGRAD_OPS_AXIS_UTIL_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "autograd/kernels/index.h"
#include "autograd/ops/op_util.h"
#include "autograd/shape.h"
#include "autograd/tape_records.h"
#include "autograd/tensor.h"

namespace wengert {

using DimVector = absl::InlinedVector<int64_t, 6>;

// An array as [outer, axis, inner]: the outer count and the elements of one
// step along the axis.
struct Extents {
  int64_t outer = 1, inner = 1;
};
inline Extents ExtentsAt(const Shape& shape, int axis) {
  Extents s;
  for (int i = 0; i < axis; ++i) s.outer *= shape[i];
  for (int i = axis + 1; i < shape.rank(); ++i) s.inner *= shape[i];
  return s;
}

inline DimVector DimsOf(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

inline Shape WithDim(const Shape& shape, int axis, int64_t size) {
  DimVector dims = DimsOf(shape);
  dims[axis] = size;
  return Shape(dims);
}

// Where the matrix of each entry of `batch` starts in an operand, in elements.
inline internal::PoolVector<int64_t> MatrixOffsets(const Shape& batch,
                                                   const Shape& shape) {
  const int64_t matrix = shape[shape.rank() - 2] * shape[shape.rank() - 1];
  internal::PoolVector<int64_t> offsets(batch.size(), 0);
  for (int64_t i = 0; i < batch.size(); ++i) {
    int64_t rest = i, stride = matrix;
    for (int axis = 1; axis <= shape.rank() - 2; ++axis) {
      const int64_t n = batch[batch.rank() - axis];
      const int64_t mine = shape[shape.rank() - 2 - axis];
      if (mine != 1) offsets[i] += rest % n * stride;
      rest /= n;
      stride *= mine;
    }
  }
  return offsets;
}

// Which axes are listed; each may be named once.
inline absl::InlinedVector<bool, 6> Listed(const char* op, const Shape& shape,
                                           absl::Span<const int> axes) {
  absl::InlinedVector<bool, 6> listed(shape.rank(), false);
  for (int axis : axes) {
    const int i = shape.CheckAxis(op, axis);
    if (listed[i]) {
      Throw(op, "axis ", axis, " is named twice for shape ", shape.ToString());
    }
    listed[i] = true;
  }
  return listed;
}

// The shape of a result whose sizes the caller chose: no more elements than can
// be, whatever numbers he gave.
inline Shape ResultShape(const char* op, const DimVector& dims) {
  int64_t room = std::numeric_limits<int64_t>::max() / sizeof(double);
  for (int64_t dim : dims) room /= std::max<int64_t>(1, dim);
  if (room == 0) {
    Throw(op, "a result of shape [", absl::StrJoin(dims, ", "),
          "] is too large");
  }
  return Shape(dims);
}

// Checks ids against the n things that they count, and calls f with the ids in
// their type.
template <class F>
void WithIds(const char* op, const Tensor& ids, int64_t n, F f) {
  const auto check = [&](auto span) {
    const int64_t i = kernels::FirstOutside(ids.size(), span.data(), n);
    if (i >= 0) {
      Throw(op, "id ", span[i], " at position ", i, " of ", Describe(ids),
            " is out of range; wanted one in [0, ", n, ")");
    }
    f(span.data());
  };
  if (!ids.defined() ||
      (ids.dtype() != DType::kInt32 && ids.dtype() != DType::kInt64)) {
    Throw(op, "ids are ", Describe(ids), "; wanted int32 or int64");
  }
  ids.dtype() == DType::kInt32 ? check(ids.span<int32_t>())
                               : check(ids.span<int64_t>());
}

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_OPS_AXIS_UTIL_H_
