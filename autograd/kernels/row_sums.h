// Rows in whole vectors, and sums of several rows at once: a row of a few
// hundred elements costs less than combining the lanes of its sum, which rows
// side by side share. For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_ROW_SUMS_H_
#define WENGERT_AUTOGRAD_KERNELS_ROW_SUMS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "absl/base/attributes.h"
#include "autograd/kernels/gemm_tile.h"

namespace wengert::kernels {

// The elements j, j + 1, ... of a row, as many as a vector has.
template <class T>
struct WholeVector {
  using Vector = gemm::Vector<T>;
  int64_t j;

  Vector Load(const T* row) const { return gemm::Load(row + j); }
  void Store(T* row, Vector v) const { gemm::Store(row + j, v); }
  static Vector OrZero(Vector v) { return v; }
};

// The last n elements of a row, fewer than a vector has. Lanes behind them load
// 0 and are not stored.
template <class T>
struct PartVector {
  using Vector = gemm::Vector<T>;
  int64_t j;
  int n;

  Vector Load(const T* row) const { return gemm::LoadFirst(row + j, n); }
  void Store(T* row, Vector v) const { gemm::StoreFirst(row + j, v, n); }
  // v with 0 in the lanes behind.
  Vector OrZero(Vector v) const {
    using Integer = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    static constexpr auto kIndex = [] {
      std::array<Integer, gemm::kWidth<T>> index;
      std::iota(index.begin(), index.end(), 0);
      return index;
    }();
    decltype(v < v) index;
    std::memcpy(&index, kIndex.data(), sizeof(index));
    return index < static_cast<Integer>(n) ? v : Vector{};
  }
};

// fn(place) for each vector of the elements begin <= j < end of a row.
template <class T, class Fn>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void ForEachVector(int64_t begin,
                                                       int64_t end,
                                                       const Fn& fn) {
  constexpr int64_t kWidth = gemm::kWidth<T>;
  int64_t j = begin;
  for (; j + kWidth <= end; j += kWidth) fn(WholeVector<T>{j});
  if (j < end) fn(PartVector<T>{j, static_cast<int>(end - j)});
}

// fn(first row, a constant number of rows) for `rows` rows: several chains of
// additions at once, and what all rows share is loaded once for a few.
template <class Fn>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void ForEachFew(int rows, const Fn& fn) {
  int r = 0;
  for (; r + 4 <= rows; r += 4) fn(r, std::integral_constant<int, 4>());
  for (; r < rows; ++r) fn(r, std::integral_constant<int, 1>());
}

// Rows of `width` that are worked on together: up to a vector's lanes of them,
// as long as they fit in the first-level cache, and at least a few.
template <class T>
int RowsTogether(int64_t rows, int64_t width) {
  const int64_t fit =
      (int64_t{1} << 15) / sizeof(T) / std::max<int64_t>(1, width);
  return static_cast<int>(
      std::min<int64_t>({rows, gemm::kWidth<T>, std::max<int64_t>(4, fit)}));
}

// fn(r, n) for the rows begin <= r < end in groups of n from r on.
template <class T, class Fn>
void ForEachGroup(int64_t begin, int64_t end, int64_t width, const Fn& fn) {
  for (int64_t r = begin; r < end;) {
    const int n = RowsTogether<T>(end - r, width);
    fn(r, n);
    r += n;
  }
}

// kSums sums over each of up to a vector's lanes of rows; lane r has row r's,
// lanes behind the rows 0. add(r, place, part) adds the terms of a vector to
// part[0], part[1], ... Each of the lanes of part takes 32 terms, which then go
// to the totals.
template <class T, int kSums, class Add>
std::array<gemm::Vector<T>, kSums> RowSums(int rows, int64_t width,
                                           const Add& add) {
  using Vector = gemm::Vector<T>;
  constexpr int kWidth = gemm::kWidth<T>;
  constexpr int64_t kBlock = 32 * kWidth;
  Vector sums[kSums][kWidth] = {};
  ForEachFew(rows, [&](int r, auto few) ABSL_ATTRIBUTE_ALWAYS_INLINE {
    constexpr int kFew = decltype(few)::value;
    Vector total[kFew][kSums] = {};
    for (int64_t j = 0; j < width; j += kBlock) {
      Vector part[kFew][kSums] = {};
      ForEachVector<T>(j, std::min(width, j + kBlock),
                       [&](auto place) ABSL_ATTRIBUTE_ALWAYS_INLINE {
#pragma GCC unroll 4
                         for (int q = 0; q < kFew; ++q)
                           add(r + q, place, part[q]);
                       });
      for (int q = 0; q < kFew; ++q) {
        for (int i = 0; i < kSums; ++i) total[q][i] += part[q][i];
      }
    }
    for (int q = 0; q < kFew; ++q) {
      for (int i = 0; i < kSums; ++i) sums[i][r + q] = total[q][i];
    }
  });
  std::array<Vector, kSums> result;
  for (int i = 0; i < kSums; ++i) {
    Vector* const lanes = sums[i];
    gemm::Transpose<T>(lanes);
#pragma GCC unroll 16
    for (int w = kWidth / 2; w > 0; w /= 2) {
      for (int l = 0; l < w; ++l) lanes[l] += lanes[l + w];
    }
    result[i] = lanes[0];
  }
  return result;
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_ROW_SUMS_H_
