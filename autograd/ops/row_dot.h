// What Dot and Einsum share.
#ifndef WENGERT_AUTOGRAD_OPS_ROW_DOT_H_
#define WENGERT_AUTOGRAD_OPS_ROW_DOT_H_

#include "autograd/tensor.h"

namespace wengert {

// y[r] = sum_i a[r, i] b[r, i]; floats a and b [rows, n] -> [rows].
Tensor RowDot(const Tensor& a, const Tensor& b);

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_OPS_ROW_DOT_H_
