// Loops of kernels that treat every element alike. For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_MAP_H_
#define WENGERT_AUTOGRAD_KERNELS_MAP_H_

#include <algorithm>
#include <cmath>
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

// dx = value(i), or dx += value(i), for every i < n
template <class T, class F>
void MapInto(int64_t n, bool accumulate, T* dx, F value) {
  if (accumulate) {
    ForEach(n,
            [=](int64_t i) ABSL_ATTRIBUTE_ALWAYS_INLINE { dx[i] += value(i); });
  } else {
    ForEach(n,
            [=](int64_t i) ABSL_ATTRIBUTE_ALWAYS_INLINE { dx[i] = value(i); });
  }
}

// near(i) for every i < n, but far(i) where |x| > limit: blocks without such
// numbers, which is nearly all, are vector loops.
template <class T, class Near, class Far>
void ForEachWithin(T limit, int64_t n, const T* x, Near near, Far far) {
  constexpr int64_t kBlock = 256;
  ParallelFor(n, GrainOf(n, 1), [=](int64_t begin, int64_t end) {
    for (; begin < end; begin += kBlock) {
      const int64_t block_end = std::min(begin + kBlock, end);
      int any_far = 0;
      for (int64_t i = begin; i < block_end; ++i) {
        any_far |= std::fabs(x[i]) > limit;
      }
      if (any_far) {
        for (int64_t i = begin; i < block_end; ++i) {
          std::fabs(x[i]) > limit ? far(i) : near(i);
        }
        continue;
      }
      WENGERT_INDEPENDENT
      for (int64_t i = begin; i < block_end; ++i) near(i);
    }
  });
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_MAP_H_
