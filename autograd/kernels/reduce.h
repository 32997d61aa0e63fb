// Reductions over any set of dimensions of a contiguous array. keep[i] is false
// where dimension i of x is reduced; y has the kept dimensions in their order.
// T is float or double. Sums run in a fixed order of lanes and chunks: the same
// bits for every number of threads, and float accuracy however long they are.
#ifndef WENGERT_AUTOGRAD_KERNELS_REDUCE_H_
#define WENGERT_AUTOGRAD_KERNELS_REDUCE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "autograd/kernels/dims.h"

namespace wengert::kernels {

// y = sum of x, or y += sum of x when `accumulate`. A sum of nothing is 0.
// y must not overlap x.
template <class T>
void Sum(Dims dims, absl::Span<const bool> keep, const T* x, bool accumulate,
         T* y);

// y = the largest; `arg`, where not null, gets the flat index into x of the
// first element that attains it. The first NaN wins over every number. The
// caller makes sure that no maximum of nothing is asked for.
template <class T>
void Max(Dims dims, absl::Span<const bool> keep, const T* x, T* y,
         int64_t* arg);

// The same with the smallest.
template <class T>
void Min(Dims dims, absl::Span<const bool> keep, const T* x, T* y,
         int64_t* arg);

// y = the product. A product of nothing is 1.
template <class T>
void Prod(Dims dims, absl::Span<const bool> keep, const T* x, T* y);

// y = whether any is true, whether all are. Of nothing: false, true.
void Any(Dims dims, absl::Span<const bool> keep, const bool* x, bool* y);
void All(Dims dims, absl::Span<const bool> keep, const bool* x, bool* y);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_REDUCE_H_
