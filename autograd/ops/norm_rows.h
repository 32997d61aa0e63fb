// How layer norm and RMS norm see an array: as rows of the elements that are
// normalised together.
#ifndef WENGERT_AUTOGRAD_OPS_NORM_ROWS_H_
#define WENGERT_AUTOGRAD_OPS_NORM_ROWS_H_

#include <cstdint>
#include <optional>

#include "autograd/ops.h"
#include "autograd/ops/op_util.h"
#include "autograd/shape.h"
#include "autograd/tensor.h"

namespace wengert {

struct NormRows {
  int64_t rows, width;
};

// The rows of x [..., shape of p] where gain or bias is such a p, and of its
// last axis where there is neither; nothing when they do not fit.
inline std::optional<NormRows> NormRowsOf(const Tensor& x, const Tensor& gain,
                                          const Tensor& bias = {}) {
  const Tensor& p = gain.defined() ? gain : bias;
  const int rank = p.defined() ? p.rank() : 1;
  if (rank == 0 || x.rank() < rank) return {};
  const Shape last(x.shape().dims().last(rank));
  for (const Tensor* q : {&gain, &bias}) {
    if (q->defined() && q->shape() != last) return {};
  }
  const int64_t width = last.size();
  return NormRows{width == 0 ? 0 : x.size() / width, width};
}

// Throws unless eps, which is added to a mean of squares, is at least 0.
inline void CheckEps(const char* op, double eps) {
  if (!(eps >= 0)) Throw(op, "eps ", eps, "; wanted at least 0");
}

// x [rows, width], and a gain or bias [width].
inline Tensor AsRows(const Tensor& x, NormRows n) {
  return Reshape(x, Shape{n.rows, n.width});
}
inline Tensor AsRow(const Tensor& p, NormRows n) {
  return Reshape(p, Shape{n.width});
}

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_OPS_NORM_ROWS_H_
