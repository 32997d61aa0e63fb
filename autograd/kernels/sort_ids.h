// Where each id stands. For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_SORT_IDS_H_
#define WENGERT_AUTOGRAD_KERNELS_SORT_IDS_H_

#include <algorithm>
#include <cstdint>

namespace wengert::kernels {

// The positions of ids in [0, n) other than `skip`, by id and then in order:
// those of id i end at ends[i], where those of i + 1 start. ends [n + 1].
template <class I>
void SortIds(int64_t n_ids, int64_t n, const I* ids, int64_t skip,
             int64_t* ends, int64_t* positions) {
  std::fill_n(ends, n + 1, 0);
  for (int64_t i = 0; i < n_ids; ++i) {
    if (ids[i] != skip) ++ends[ids[i] + 1];
  }
  for (int64_t id = 0; id < n; ++id) ends[id + 1] += ends[id];
  // Until now where they start.
  for (int64_t i = 0; i < n_ids; ++i) {
    if (ids[i] != skip) positions[ends[ids[i]]++] = i;
  }
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_SORT_IDS_H_
