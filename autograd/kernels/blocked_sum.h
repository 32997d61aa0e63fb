// Sums that keep float accuracy however long they are, in an order set by their
// length: terms are added in small blocks, and the blocks' sums to each other,
// so that no term passes through more than a few dozen roundings. For .cc
// files.
#ifndef WENGERT_AUTOGRAD_KERNELS_BLOCKED_SUM_H_
#define WENGERT_AUTOGRAD_KERNELS_BLOCKED_SUM_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace wengert::kernels {

// The sum of term(i) for i < n, best for n up to about 2^15. Lane i % 32 adds
// term i; after 32 terms each, the lanes go to the totals. Short sums just add.
template <class T, class Term>
T BlockedSum(int64_t n, Term term) {
  constexpr int kLanes = 32;
  constexpr int64_t kBlock = 32 * kLanes;
  if (n <= kLanes) {
    T terms[kLanes];
    for (int64_t i = 0; i < n; ++i) terms[i] = term(i);
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += terms[i];
    return sum;
  }
  T total[kLanes] = {};
  for (int64_t i = 0; i < n;) {
    T part[kLanes] = {};
    const int64_t end = std::min(n, i + kBlock);
    for (; i + kLanes <= end; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) part[l] += term(i + l);
    }
    for (int64_t l = 0; l < end - i; ++l) part[l] += term(i + l);
    i = end;
    for (int l = 0; l < kLanes; ++l) total[l] += part[l];
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) total[l] += total[l + width];
  }
  return total[0];
}

// The most columns that BlockedRowSum takes, and the most rows that it takes
// without losing accuracy.
inline constexpr int64_t kSumColumns = 64;
inline constexpr int64_t kSumRows = 256;

// sum[j] = the sum of term(r, j) over r < n, for j < width <= kSumColumns.
template <class T, class Term>
void BlockedRowSum(int64_t n, int64_t width, Term term, T* sum) {
  constexpr int64_t kBlock = 16;
  const auto run = [&](auto columns) {  // an int64_t, or a constant
    T total[kSumColumns] = {};
    for (int64_t r = 0; r < n; r += kBlock) {
      T part[kSumColumns] = {};
      for (int64_t q = r; q < std::min(n, r + kBlock); ++q) {
        for (int64_t j = 0; j < columns; ++j) part[j] += term(q, j);
      }
      for (int64_t j = 0; j < columns; ++j) total[j] += part[j];
    }
    for (int64_t j = 0; j < columns; ++j) sum[j] = total[j];
  };
  if (width == kSumColumns) {
    run(std::integral_constant<int64_t, kSumColumns>());
  } else {
    run(width);
  }
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_BLOCKED_SUM_H_
