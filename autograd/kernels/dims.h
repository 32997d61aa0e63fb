// How kernels receive a shape: the sizes of the dimensions, outermost first, of
// a contiguous row-major array. Rank 0 is one element; a zero makes it empty.
#ifndef WENGERT_AUTOGRAD_KERNELS_DIMS_H_
#define WENGERT_AUTOGRAD_KERNELS_DIMS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace wengert::kernels {

using Dims = absl::Span<const int64_t>;

inline int64_t NumElements(Dims dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_DIMS_H_
