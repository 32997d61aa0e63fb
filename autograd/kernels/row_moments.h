// What the norms of rows share. For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_ROW_MOMENTS_H_
#define WENGERT_AUTOGRAD_KERNELS_ROW_MOMENTS_H_

#include <cmath>
#include <cstdint>

#include "autograd/kernels/blocked_sum.h"

namespace wengert::kernels {

// The mean and 1 / sqrt(variance + eps) of a row. With `mean` null
// the row is not centred: 0 stands for its mean.
template <class T>
void RowMoments(int64_t width, T eps, const T* x, T* mean, T* rstd) {
  const T n = static_cast<T>(width);
  if (mean == nullptr) {
    const T squares =
        BlockedSum<T>(width, [=](int64_t j) { return x[j] * x[j]; });
    *rstd = 1 / std::sqrt(squares / n + eps);
    return;
  }
  const T rough = BlockedSum<T>(width, [=](int64_t j) { return x[j]; }) / n;
  const T center =
      rough + BlockedSum<T>(width, [=](int64_t j) { return x[j] - rough; }) / n;
  const T variance = BlockedSum<T>(width,
                                   [=](int64_t j) {
                                     const T residual = x[j] - center;
                                     return residual * residual;
                                   }) /
                     n;
  *mean = center;
  *rstd = 1 / std::sqrt(variance + eps);
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_ROW_MOMENTS_H_
