// Counts what the whole process takes from the system: calls of malloc and its
// kin, aligned_alloc and mmap.
#ifndef WENGERT_TRAIN_ALLOCATIONS_TESTLIB_H_
#define WENGERT_TRAIN_ALLOCATIONS_TESTLIB_H_

#include <cstdint>

namespace wengert::train {

// False under a sanitizer, which allocates for itself.
bool CountsAllocations();
int64_t SystemAllocations();

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_ALLOCATIONS_TESTLIB_H_
