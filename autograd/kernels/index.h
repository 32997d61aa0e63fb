// Kernels that read and add elements along one axis by index. x is [outer, n,
// inner] and y [outer, m, inner]; the callers have checked that every index
// lies in [0, n).
#ifndef WENGERT_AUTOGRAD_KERNELS_INDEX_H_
#define WENGERT_AUTOGRAD_KERNELS_INDEX_H_

#include <cstdint>

namespace wengert::kernels {

// The index `id` of [o, j, i] below: of an array [outer, m, inner], or j's of
// an array [m] that all share.
template <class I>
struct AxisIds {
  const I* ids;
  bool shared;
};

// The first place of an id outside [0, n), or -1.
template <class I>
int64_t FirstOutside(int64_t n_ids, const I* ids, int64_t n);

struct AxisSizes {
  int64_t outer, n, m, inner;
};

// y[o, j, i] = x[o, id, i]. T: float, double, int32_t, int64_t, bool; I:
// int32_t, int64_t.
template <class T, class I>
void TakeAlong(const AxisSizes& s, AxisIds<I> ids, const T* x, T* y);

// y = x (zeros where x is null; y itself may be x), then y[o, id, i] += src[o,
// j, i], in the order of j. Floats are summed in double, unless there
// are 64 terms or fewer; integers wrap, bool
// takes the or.
template <class T, class I>
void AddAlong(const AxisSizes& s, AxisIds<I> ids, const T* x, const T* src,
              T* y);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_INDEX_H_
