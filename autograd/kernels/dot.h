// Sums of products of two arrays, row by row.
#ifndef WENGERT_AUTOGRAD_KERNELS_DOT_H_
#define WENGERT_AUTOGRAD_KERNELS_DOT_H_

#include <cstdint>

namespace wengert::kernels {

// y[r] = sum_i a[r, i] b[r, i]; a and b [rows, n]. The order is set by n, and
// accuracy kept however long the rows are. T: float, double.
template <class T>
void RowDot(int64_t rows, int64_t n, const T* a, const T* b, T* y);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_DOT_H_
