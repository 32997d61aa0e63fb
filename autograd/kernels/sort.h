// Stable sorting and the first k along the middle of [outer, n, inner]. NaN
// counts as larger than every number, -0 as equal to 0. T: float, double,
// int32_t, int64_t, bool.
#ifndef WENGERT_AUTOGRAD_KERNELS_SORT_H_
#define WENGERT_AUTOGRAD_KERNELS_SORT_H_

#include <cstdint>

namespace wengert::kernels {

// Rows must be shorter than this.
inline constexpr int64_t kSortLimit = int64_t{1} << 32;

// y [outer, k, inner] = the first k of each slice of x in ascending (or
// descending) order, `places` = where along n they stood. 0 <= k <= n.
template <class T>
void SortFirst(int64_t outer, int64_t n, int64_t inner, int64_t k,
               bool descending, const T* x, T* y, int64_t* places);

// y [outer, n, inner] = 0 but for y[o, places[o, i, j], j] = x[o, i, j], with x
// and places [outer, k, inner]; and its mirror, x from y. The places of a slice
// are distinct. T: float, double.
template <class T>
void ScatterPlaces(int64_t outer, int64_t n, int64_t inner, int64_t k,
                   const int64_t* places, const T* x, T* y);
template <class T>
void GatherPlaces(int64_t outer, int64_t n, int64_t inner, int64_t k,
                  const int64_t* places, const T* y, T* x);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_SORT_H_
