// What a reduction does to a shape, and where its axes lie side by side.
#ifndef WENGERT_AUTOGRAD_OPS_REDUCE_PLAN_H_
#define WENGERT_AUTOGRAD_OPS_REDUCE_PLAN_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "autograd/ops.h"
#include "autograd/ops/op_util.h"

namespace wengert {

struct ReducePlan {
  absl::InlinedVector<bool, 6> keep;
  Shape kept;       // with reduced axes of size 1
  Shape result;     // as the caller wants it
  int64_t reduced;  // elements that go into one
};

// Throws, as `op`, unless each axis is one of the shape's and named once.
inline ReducePlan PlanOf(const char* op, const Shape& shape, const Axes& axes,
                         bool keep_dims) {
  ReducePlan plan{.keep = {}, .kept = {}, .result = {}, .reduced = 1};
  plan.keep.assign(shape.rank(), !axes.get().empty());
  for (int axis : axes.get()) {
    const int i = shape.CheckAxis(op, axis);
    if (!plan.keep[i]) {
      Throw(op, "axis ", axis, " is named twice for shape ", shape.ToString());
    }
    plan.keep[i] = false;
  }
  absl::InlinedVector<int64_t, 6> kept, result;
  for (int i = 0; i < shape.rank(); ++i) {
    kept.push_back(plan.keep[i] ? shape[i] : 1);
    if (plan.keep[i] || keep_dims) result.push_back(kept.back());
    if (!plan.keep[i]) plan.reduced *= shape[i];
  }
  plan.kept = Shape(kept);
  plan.result = Shape(result);
  return plan;
}

// An array taken as [outer, n, inner], of which n is reduced or scanned.
struct Middle {
  int64_t outer = 1, n = 1, inner = 1;
};

inline Middle MiddleOf(const Shape& shape, int axis) {
  Middle m{.outer = 1, .n = shape[axis], .inner = 1};
  for (int i = 0; i < axis; ++i) m.outer *= shape[i];
  for (int i = axis + 1; i < shape.rank(); ++i) m.inner *= shape[i];
  return m;
}

// x with the reduced axes side by side: x itself where they are, otherwise with
// them moved to the end. The results keep their order.
struct Arranged {
  Tensor x;
  Middle middle;
};
inline Arranged Arrange(const Tensor& x, const ReducePlan& plan) {
  Middle m;
  int groups = 0;
  bool inside = false;  // the last axis that is not 1 is reduced
  absl::InlinedVector<int, 6> order;
  for (int i = 0; i < x.rank(); ++i) {
    if (plan.keep[i]) order.push_back(i);
    if (x.shape()[i] == 1) continue;
    if (!plan.keep[i] && !inside) ++groups;
    inside = !plan.keep[i];
    (inside ? m.n : groups == 0 ? m.outer : m.inner) *= x.shape()[i];
  }
  if (groups <= 1) return {x, m};
  for (int i = 0; i < x.rank(); ++i) {
    if (!plan.keep[i]) order.push_back(i);
  }
  return {Permute(x, order), {plan.result.size(), plan.reduced, 1}};
}

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_OPS_REDUCE_PLAN_H_
