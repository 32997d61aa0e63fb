// The size of an array that a file describes.
#ifndef WENGERT_TRAIN_ARRAY_BYTES_H_
#define WENGERT_TRAIN_ARRAY_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"

namespace wengert::train::internal {

// The bytes of an array of such elements, if 63 bits can count them; 0 of an
// empty one, however large its other dimensions. Wants dims >= 0.
inline std::optional<uint64_t> ArrayBytes(size_t element,
                                          absl::Span<const int64_t> dims) {
  bool empty = false;
  int64_t count = static_cast<int64_t>(element);
  for (const int64_t d : dims) {
    empty |= d == 0;
    if (d != 0 && __builtin_mul_overflow(count, d, &count)) return {};
  }
  return empty ? 0 : count;
}

}  // namespace wengert::train::internal

#endif  // WENGERT_TRAIN_ARRAY_BYTES_H_
