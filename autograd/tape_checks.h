// Small helpers of the tape's own files.
#ifndef WENGERT_AUTOGRAD_TAPE_CHECKS_H_
#define WENGERT_AUTOGRAD_TAPE_CHECKS_H_

#include <cstddef>
#include <string>

#include "autograd/tensor.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define WENGERT_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define WENGERT_ADDRESS_SANITIZER 1
#endif
#ifdef WENGERT_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace wengert::internal {

// Under the address sanitizer, touching poisoned memory is an error.
inline void PoisonMemory([[maybe_unused]] void* p, [[maybe_unused]] size_t n) {
#ifdef WENGERT_ADDRESS_SANITIZER
  ASAN_POISON_MEMORY_REGION(p, n);
#endif
}
inline void UnpoisonMemory([[maybe_unused]] void* p,
                           [[maybe_unused]] size_t n) {
#ifdef WENGERT_ADDRESS_SANITIZER
  ASAN_UNPOISON_MEMORY_REGION(p, n);
#endif
}

// x is a float tensor.
bool AllFinite(const Tensor& x);

// "Linear in layers.0.mlp.up"; the scope may be null.
std::string OpName(const char* op, const std::string* scope);

}  // namespace wengert::internal

#endif  // WENGERT_AUTOGRAD_TAPE_CHECKS_H_
