// What the losses of classes share: where the classes stand, and the check of
// targets that are class indices.
#ifndef WENGERT_AUTOGRAD_OPS_CLASS_TARGETS_H_
#define WENGERT_AUTOGRAD_OPS_CLASS_TARGETS_H_

#include <cstdint>

#include "autograd/ops.h"
#include "autograd/ops/op_util.h"

namespace wengert {

inline bool IsIds(const Tensor& targets) {
  return targets.defined() &&
         (targets.dtype() == DType::kInt32 || targets.dtype() == DType::kInt64);
}

// x with `axis` moved to the end.
inline Tensor AxisLast(const Tensor& x, int axis) {
  if (axis == x.rank() - 1) return x;
  absl::InlinedVector<int, 6> axes;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) axes.push_back(i);
  }
  axes.push_back(axis);
  return Permute(x, axes);
}

inline Shape Without(const Shape& shape, int axis) {
  absl::InlinedVector<int64_t, 6> dims(shape.dims().begin(),
                                       shape.dims().end());
  dims.erase(dims.begin() + axis);
  return Shape(dims);
}

inline Shape WithColumn(const Shape& shape) {
  absl::InlinedVector<int64_t, 6> dims(shape.dims().begin(),
                                       shape.dims().end());
  dims.push_back(1);
  return Shape(dims);
}

// Targets that are class indices, checked.
struct ClassTargets {
  Tensor ids;    // int64
  double count;  // what the mean divides by
};

// What a loss of classes checks: scores with an axis of classes, and targets.
struct ClassScores {
  const char* op;
  const char* name;  // "logits"
  const Tensor& x;
  int class_axis;
  int64_t ignore_index;
  const Tensor& weight;

  // The class axis, counted from the front, when all but the targets fits.
  int CheckedAxis() const {
    CheckFloats(op, {x}, {weight});
    if (x.rank() < 1) {
      Throw(op, name, " ", Describe(x), "; wanted an axis of classes");
    }
    const int axis = x.shape().CheckAxis(op, class_axis);
    if (weight.defined() && weight.shape() != Shape{x.dim(axis)}) {
      Throw(op, "weight ", Describe(weight), ", ", name, " ", Describe(x),
            "; wanted one weight for each of ", x.dim(axis), " classes");
    }
    return axis;
  }

  ClassTargets CheckedIds(const Tensor& targets, int axis) const {
    const int64_t classes = x.dim(axis);
    const Tensor ids = targets.To(DType::kInt64);
    const int64_t* id = ids.data<int64_t>();
    int64_t count = 0;
    for (int64_t i = 0; i < ids.size(); ++i) {
      if (id[i] == ignore_index) continue;
      if (id[i] < 0 || id[i] >= classes) {
        Throw(op, "target ", id[i], " at position ", i, " of ",
              Describe(targets), " is out of range; wanted one in [0, ",
              classes, ") for ", name, " ", Describe(x), ", or ", ignore_index,
              " to ignore it");
      }
      ++count;
    }
    if (!weight.defined()) return {ids, static_cast<double>(count)};
    return {ids, WithFloat(x.dtype(), [&](auto t) {
              const auto* w = weight.data<decltype(t)>();
              double sum = 0;
              for (int64_t i = 0; i < ids.size(); ++i) {
                if (id[i] != ignore_index) sum += static_cast<double>(w[id[i]]);
              }
              return sum;
            })};
  }
};

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_OPS_CLASS_TARGETS_H_
