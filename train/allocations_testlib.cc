#include "train/allocations_testlib.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WENGERT_SANITIZED 1
#endif

namespace wengert::train {
namespace {

std::atomic<int64_t> allocations{0};

}  // namespace

bool CountsAllocations() {
#ifdef WENGERT_SANITIZED
  return false;
#else
  return true;
#endif
}

int64_t SystemAllocations() { return allocations; }

}  // namespace wengert::train

#ifndef WENGERT_SANITIZED
// glibc's own names behind the functions that are replaced here.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t n, size_t size);
void* __libc_realloc(void* p, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  ++wengert::train::allocations;
  return __libc_malloc(size);
}
void* calloc(size_t n, size_t size) {
  ++wengert::train::allocations;
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t size) {
  ++wengert::train::allocations;
  return __libc_realloc(p, size);
}
void* memalign(size_t alignment, size_t size) {
  ++wengert::train::allocations;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  ++wengert::train::allocations;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** p, size_t alignment, size_t size) {
  ++wengert::train::allocations;
  *p = __libc_memalign(alignment, size);
  return *p ? 0 : 12;  // ENOMEM
}
void* mmap(void* address, size_t length, int protection, int flags, int file,
           off_t offset) noexcept {
  ++wengert::train::allocations;
  static const auto real =
      reinterpret_cast<decltype(&mmap)>(dlsym(RTLD_NEXT, "mmap"));
  return real(address, length, protection, flags, file, offset);
}
}
#endif
