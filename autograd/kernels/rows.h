// Rows of a table by index, and their gradient. T: float, double; I: int32_t,
// int64_t. The callers have checked the ids; outputs overlap no input but where
// said.
#ifndef WENGERT_AUTOGRAD_KERNELS_ROWS_H_
#define WENGERT_AUTOGRAD_KERNELS_ROWS_H_

#include <cstdint>

namespace wengert::kernels {

// y[i, :] = table[ids[i], :]; y [n_ids, width].
template <class T, class I>
void GatherRows(int64_t n_ids, int64_t width, const I* ids, const T* table,
                T* y);

// y = x (zeros where x is null; y itself may be x), and then y[ids[i], :] +=
// dy[i, :] for each i whose id is not `skip` (-1: none is skipped), in an order
// set by the ids; x, y [n_rows, width].
template <class T, class I>
void ScatterAddRows(int64_t n_ids, int64_t width, int64_t n_rows, const I* ids,
                    int64_t skip, const T* dy, const T* x, T* y);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_ROWS_H_
