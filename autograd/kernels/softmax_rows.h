// Softmax's steps for several rows at once. For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_SOFTMAX_ROWS_H_
#define WENGERT_AUTOGRAD_KERNELS_SOFTMAX_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "absl/base/attributes.h"
#include "autograd/kernels/gemm_tile.h"
#include "autograd/kernels/row_sums.h"
#include "autograd/kernels/softmax_row.h"

namespace wengert::kernels {

// max[r] = the largest element of row r, NaN left out, for all lanes of a
// vector; -inf of none and for lanes behind the rows.
template <class T>
void RowMaxima(int rows, int64_t width, const T* x, T* max) {
  using Vector = gemm::Vector<T>;
  constexpr int kWidth = gemm::kWidth<T>;
  const auto larger = [](Vector best, Vector v) ABSL_ATTRIBUTE_ALWAYS_INLINE {
    return v > best ? v : best;
  };
  const Vector lowest = Vector{} - kInfinity<T>;
  Vector lanes[kWidth];
  std::fill_n(lanes, kWidth, lowest);
  for (int r = 0; r < rows; ++r) {
    const T* const row = x + r * width;
    if (width <= kWidth) {
      const PartVector<T> place = {0, static_cast<int>(width)};
      lanes[r] = larger(lowest, place.Or(place.Load(row), lowest));
      continue;
    }
    constexpr int kChains = 4;
    constexpr int64_t kStep = kChains * kWidth;
    Vector best[kChains];
    std::fill_n(best, kChains, lowest);
    int64_t j = 0;
    for (; j + kStep <= width; j += kStep) {
#pragma GCC unroll 4
      for (int q = 0; q < kChains; ++q) {
        best[q] = larger(best[q], gemm::Load(row + j + q * kWidth));
      }
    }
    ForEachVector<T>(j, width, [&](auto place) ABSL_ATTRIBUTE_ALWAYS_INLINE {
      best[0] = larger(best[0], place.Or(place.Load(row), lowest));
    });
    lanes[r] = larger(larger(best[0], best[1]), larger(best[2], best[3]));
  }
  gemm::Store(max, FoldLanes<T>(lanes, larger));
}

// exp of every lane; none is above 0.
template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline gemm::Vector<T> ExpLanes(
    gemm::Vector<T> v) {
  T lanes[gemm::kWidth<T>];
  gemm::Store(lanes, v);
  for (T& x : lanes) x = ExpOfNonPositive(x);
  return gemm::Load(lanes);
}

// y (=|+=) value(r, place) for `rows` rows.
template <class T, class Value>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void WriteRows(int rows, int64_t width,
                                                   bool accumulate,
                                                   const Value& value, T* y) {
  for (int r = 0; r < rows; ++r, y += width) {
    ForEachVector<T>(0, width, [&](auto place) ABSL_ATTRIBUTE_ALWAYS_INLINE {
      gemm::Vector<T> v = value(r, place);
      if (accumulate) v += place.Load(y);
      place.Store(y, v);
    });
  }
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_SOFTMAX_ROWS_H_
