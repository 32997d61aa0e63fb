// Loops of kernels that treat every element alike. For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_MAP_H_
#define WENGERT_AUTOGRAD_KERNELS_MAP_H_

#include <cstdint>

#include "absl/base/attributes.h"
#include "autograd/kernels/loop.h"
#include "autograd/parallel.h"

namespace wengert::kernels {

// body(i) for every i < n, in any order; it is inlined into one vector loop.
template <class Body>
void ForEach(int64_t n, Body body) {
  ParallelFor(n, GrainOf(n, 1), [body](int64_t begin, int64_t end) {
    WENGERT_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

// y = f(x)
template <class T, class Y, class F>
void Map(int64_t n, const T* x, Y* y, F f) {
  ForEach(n, [=](int64_t i) ABSL_ATTRIBUTE_ALWAYS_INLINE { y[i] = f(x[i]); });
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_MAP_H_
