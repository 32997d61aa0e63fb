// Dropout whose every bit is a function of (seed, offset, element) alone, so
// that backward, a checkpointed block or another thread draws it again instead
// of storing it: element i is kept when word i % 4 of
// Philox::Block(seed, i / 4, offset), a uniform 32-bit integer, is at least
// round(p 2^32).
#ifndef WENGERT_AUTOGRAD_KERNELS_DROPOUT_H_
#define WENGERT_AUTOGRAD_KERNELS_DROPOUT_H_

#include <cstdint>

namespace wengert::kernels {

// y = x / (1 - p) where kept and 0 where dropped, whatever x is there; y +=
// when `accumulate`. p in [0, 1]; p = 1 gives zeros. y may be x. T: float,
// double. The same call on dy is the gradient.
template <class T>
void Dropout(int64_t n, double p, uint64_t seed, uint64_t offset, const T* x,
             bool accumulate, T* y);

// scale[i] = 1 / (1 - p) where element first_element + i is kept, else 0, for
// i < n: the same bits as Dropout, for kernels that drop inside a row of their
// own. Runs on the calling thread.
template <class T>
void DropoutMaskRow(uint64_t seed, uint64_t offset, int64_t first_element,
                    int64_t n, double p, T* scale);

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_DROPOUT_H_
