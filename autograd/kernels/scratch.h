// Working memory of a kernel, from the pool.
#ifndef WENGERT_AUTOGRAD_KERNELS_SCRATCH_H_
#define WENGERT_AUTOGRAD_KERNELS_SCRATCH_H_

#include <cstddef>
#include <cstdint>

#include "autograd/storage.h"

namespace wengert::kernels {

// n elements, 64-byte-aligned, undefined contents, freed at the end of scope.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t n)
      : data_(
            static_cast<T*>(PoolAllocate(static_cast<size_t>(n) * sizeof(T)))) {
  }
  ~Scratch() { PoolFree(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() const { return data_; }

 private:
  T* data_;
};

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_SCRATCH_H_
