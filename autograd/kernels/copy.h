// Kernels that move elements without changing them: permutations, slices and
// concatenations. T: float, double, int32_t, int64_t, bool; outputs overlap no
// input.
#ifndef WENGERT_AUTOGRAD_KERNELS_COPY_H_
#define WENGERT_AUTOGRAD_KERNELS_COPY_H_

#include <cstdint>

#include "absl/types/span.h"
#include "autograd/kernels/dims.h"

namespace wengert::kernels {

// Dimension i of y is dimension perm[i] of x: y[.., j_i, ..] = x with its
// dimension perm[i] at j_i. The gradient is the inverse permutation.
template <class T>
void Permute(Dims dims, absl::Span<const int> perm, const T* x, T* y);

// For o < outer, i < n: y[o y_stride + i] = x[o x_stride + i]. Slices,
// concatenations and their gradients are this. The blocks of y overlap nowhere.
template <class T>
void CopyBlocks(int64_t outer, int64_t n, const T* x, int64_t x_stride, T* y,
                int64_t y_stride);

// The same, but y[..] += x[..]. T: float, double.
template <class T>
void AddBlocks(int64_t outer, int64_t n, const T* x, int64_t x_stride, T* y,
               int64_t y_stride);

// For every index i below dims: y[i . y_strides] = x[i . x_strides]. Strides
// are in elements and may be negative; no two indices name one place of y.
template <class T>
void CopyStrided(Dims dims, const T* x, Dims x_strides, T* y, Dims y_strides);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_COPY_H_
