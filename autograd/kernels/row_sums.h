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
#include <utility>

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
  static Vector Or(Vector v, Vector) { return v; }
  static Vector OrZero(Vector v) { return v; }
};

// The last n elements of a row, at most a vector's. Lanes behind them load
// 0 and are not stored.
template <class T>
struct PartVector {
  using Vector = gemm::Vector<T>;
  int64_t j;
  int n;

  Vector Load(const T* row) const { return gemm::LoadFirst(row + j, n); }
  void Store(T* row, Vector v) const { gemm::StoreFirst(row + j, v, n); }
  // v with `rest` in the lanes behind.
  Vector Or(Vector v, Vector rest) const {
    using Integer = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    static constexpr auto kIndex = [] {
      std::array<Integer, gemm::kWidth<T>> index;
      std::iota(index.begin(), index.end(), 0);
      return index;
    }();
    decltype(v < v) index;
    std::memcpy(&index, kIndex.data(), sizeof(index));
    return index < static_cast<Integer>(n) ? v : rest;
  }
  Vector OrZero(Vector v) const { return Or(v, Vector{}); }
};

// Has memory bring what stands at `place` of a row that comes later, which may
// lie behind the last: memory then works while this row is computed. (A row
// that is read before it is written, in bursts, leaves memory idle in between.)
template <class Place, class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Prefetch(Place place, const T* row) {
  __builtin_prefetch(row + place.j);
}

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

// fn(first row, a constant number of rows) for `rows` rows: what all rows share
// is loaded once for a few.
template <class Fn>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void ForEachFew(int rows, const Fn& fn) {
  int r = 0;
  for (; r + 4 <= rows; r += 4) fn(r, std::integral_constant<int, 4>());
  for (; r < rows; ++r) fn(r, std::integral_constant<int, 1>());
}

// fn(r, n) for the rows begin <= r < end in groups of n from r on: up to a
// vector's lanes of rows, as long as they have at most `bytes`, and at least a
// few, unless a few are too much for the second-level cache.
template <class T, class Fn>
void ForEachGroup(int64_t begin, int64_t end, int64_t width, int64_t bytes,
                  const Fn& fn) {
  const int64_t row = std::max<int64_t>(1, width) * sizeof(T);
  const int64_t least = row <= (1 << 16) ? 4 : 1;
  const int64_t most =
      std::min<int64_t>(gemm::kWidth<T>, std::max(least, bytes / row));
  for (int64_t r = begin; r < end; r += most) {
    fn(r, static_cast<int>(std::min(most, end - r)));
  }
}

// Lane r = the fold of the lanes of vector r, the first half with the second
// until one is left, for a vector's lanes of vectors. Interleaving the halves
// of two vectors folds both at once.
template <class T, class Fold>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline gemm::Vector<T> FoldLanes(
    gemm::Vector<T>* v, const Fold& fold) {
  constexpr auto kIndex = std::make_integer_sequence<int, gemm::kWidth<T>>();
#pragma GCC unroll 16
  for (int n = gemm::kWidth<T> / 2; n > 0; n /= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) {
      v[i] = fold(gemm::Interleave<T, 0>(v[i], v[i + n], kIndex),
                  gemm::Interleave<T, 1>(v[i], v[i + n], kIndex));
    }
  }
  return v[0];
}

// kSums sums over each of up to a vector's lanes of rows; lane r has row r's,
// lanes behind the rows 0. add(r, place, part) adds the terms of a vector to
// part[0], part[1], ... Each of the lanes of the parts takes about 32 terms,
// which then go to the totals.
template <class T, int kSums, class Add>
std::array<gemm::Vector<T>, kSums> RowSums(int rows, int64_t width, Add add) {
  using Vector = gemm::Vector<T>;
  constexpr int kWidth = gemm::kWidth<T>;
  constexpr int kChains = 4;  // of additions, as one waits for the last
  constexpr int64_t kStep = kChains * kWidth, kBlock = 32 * kStep;
  Vector sums[kSums][kWidth];
  for (int r = 0; r < rows; ++r) {
    Vector total[kSums] = {};
    if (width <= kWidth) {  // short rows cost little more than this
      add(r, PartVector<T>{0, static_cast<int>(width)}, total);
      for (int i = 0; i < kSums; ++i) sums[i][r] = total[i];
      continue;
    }
    for (int64_t j = 0; j < width;) {
      Vector part[kChains][kSums] = {};
      const int64_t end = std::min(width, j + kBlock);
      for (; j + kStep <= end; j += kStep) {
#pragma GCC unroll 4
        for (int q = 0; q < kChains; ++q) {
          add(r, WholeVector<T>{j + q * kWidth}, part[q]);
        }
      }
      ForEachVector<T>(j, end, [&](auto place) ABSL_ATTRIBUTE_ALWAYS_INLINE {
        add(r, place, part[0]);
      });
      j = end;
      for (int i = 0; i < kSums; ++i) {
        total[i] += (part[0][i] + part[1][i]) + (part[2][i] + part[3][i]);
      }
    }
    for (int i = 0; i < kSums; ++i) sums[i][r] = total[i];
  }
  for (int i = 0; i < kSums; ++i) {
    std::fill(sums[i] + rows, sums[i] + kWidth, Vector{});
  }
  std::array<Vector, kSums> result;
  for (int i = 0; i < kSums; ++i) {
    result[i] = FoldLanes<T>(sums[i], [](Vector a, Vector b) { return a + b; });
  }
  return result;
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_ROW_SUMS_H_
