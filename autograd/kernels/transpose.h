// Matrices turned block by block in registers. For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_TRANSPOSE_H_
#define WENGERT_AUTOGRAD_KERNELS_TRANSPOSE_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/base/attributes.h"
#include "autograd/kernels/gemm_tile.h"
#include "autograd/kernels/stream.h"

namespace wengert::kernels {

// The elements of a, b in turn: of their first halves, or of their second.
template <bool second, class V, size_t... i>
V Interleaved(V a, V b, std::index_sequence<i...>) {
  constexpr size_t n = sizeof...(i), from = second ? n / 2 : 0;
  return __builtin_shufflevector(a, b, (from + i / 2 + i % 2 * n)...);
}

// One of log2(n) rounds, which turns the bits of an element's place (row,
// column) by one.
template <size_t n, class V, size_t... i>
std::array<V, n> Turned(const std::array<V, n>& rows,
                        std::index_sequence<i...> all) {
  return {Interleaved<i % 2>(rows[i / 2], rows[i / 2 + n / 2], all)...};
}

template <int rounds, size_t n, class V>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Turn(std::array<V, n>& rows) {
  if constexpr (rounds > 0) {
    rows = Turned(rows, std::make_index_sequence<n>());
    Turn<rounds - 1>(rows);
  }
}

// y[j, i] = x[i, j] for a block of as many rows as a vector has elements. Only
// whole lines can be streamed.
template <bool streamed, class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void TransposeBlock(const T* x,
                                                        int64_t x_stride, T* y,
                                                        int64_t y_stride) {
  // Only moved: any type of that size will do.
  using Word = std::conditional_t<sizeof(T) == 4, float, double>;
  using V = gemm::Vector<Word>;
  constexpr size_t n = gemm::kWidth<Word>;
  std::array<V, n> rows;
  for (size_t i = 0; i < n; ++i) {
    std::memcpy(&rows[i], x + i * x_stride, sizeof(V));
  }
  Turn<std::bit_width(n) - 1>(rows);
  for (size_t i = 0; i < n; ++i) {
    if constexpr (streamed && sizeof(V) == kLineBytes) {
      StreamLine(&rows[i], y + i * y_stride);
    } else {
      std::memcpy(y + i * y_stride, &rows[i], sizeof(V));
    }
  }
}

// y[j, i] = x[i, j] for i < rows, j < columns.
template <bool streamed = false, class T>
inline void TransposeTile(int64_t rows, int64_t columns, const T* x,
                          int64_t x_stride, T* y, int64_t y_stride) {
  int64_t whole_rows = 0, whole_columns = 0;
  if constexpr (sizeof(T) >= 4) {
    constexpr int64_t n = gemm::kVectorBytes / sizeof(T);
    whole_rows = rows / n * n;
    whole_columns = columns / n * n;
    for (int64_t i = 0; i < whole_rows; i += n) {
      for (int64_t j = 0; j < whole_columns; j += n) {
        TransposeBlock<streamed>(x + i * x_stride + j, x_stride,
                                 y + j * y_stride + i, y_stride);
      }
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j) {
      y[j * y_stride + i] = x[i * x_stride + j];
    }
  }
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_TRANSPOSE_H_
