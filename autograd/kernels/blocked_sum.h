// Sums that keep float accuracy however long they are, in an order set by their
// length: terms are added in small blocks, and the blocks' sums to each other,
// so that no term passes through more than a few dozen roundings. For .cc
// files.
#ifndef WENGERT_AUTOGRAD_KERNELS_BLOCKED_SUM_H_
#define WENGERT_AUTOGRAD_KERNELS_BLOCKED_SUM_H_

#include <algorithm>
#include <cstdint>

#include "autograd/kernels/strips.h"

namespace wengert::kernels {

// The sum of kLanes lanes, a power of two: of halves, of their halves, ..
template <int kLanes, class T>
T FoldLanes(const T* lane) {
  if constexpr (kLanes == 1) {
    return lane[0];
  } else {
    T sum[kLanes / 2];
    for (int l = 0; l < kLanes / 2; ++l)
      sum[l] = lane[l] + lane[l + kLanes / 2];
    return FoldLanes<kLanes / 2>(sum);
  }
}

// The sum of term(i) for i < n, best for n up to about 2^15. Lane i % 32 adds
// term i; after 32 terms each, the lanes go to the totals. Short sums have four
// lanes.
template <class T, class Term>
T BlockedSum(int64_t n, Term term) {
  constexpr int kLanes = 32;
  constexpr int64_t kBlock = 32 * kLanes;
  if (n <= kLanes) {
    T terms[kLanes], sum[4] = {};
    for (int64_t i = 0; i < n; ++i) terms[i] = term(i);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      for (int l = 0; l < 4; ++l) sum[l] += terms[i + l];
    }
    for (int l = 0; i + l < n; ++l) sum[l] += terms[i + l];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
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
  return FoldLanes<kLanes>(total);
}

inline constexpr int64_t kSumColumns = kTileColumns;
// Rows that it adds block by block; of more rows it adds the halves.
inline constexpr int64_t kSumRows = 256;
// Rows of one block.
inline constexpr int64_t kSumBlock = 16;

// sum[j] = the sum of term(r, j) over begin <= r < end, for j < width <=
// kStripColumns. The order is set by end - begin.
template <class T, class Term>
void BlockedRowSum(int64_t begin, int64_t end, int64_t width, const Term& term,
                   T* sum) {
  if (end - begin > kSumRows) {
    const int64_t chunks = (end - begin + kSumRows - 1) / kSumRows;
    const int64_t middle = begin + chunks / 2 * kSumRows;
    alignas(64) T second[kStripColumns];
    BlockedRowSum(begin, middle, width, term, sum);
    BlockedRowSum(middle, end, width, term, second);
    for (int64_t j = 0; j < width; ++j) sum[j] += second[j];
    return;
  }
  if (width == kSumColumns) {  // in registers
    T total[kSumColumns] = {};
    for (int64_t r = begin; r < end; r += kSumBlock) {
      T part[kSumColumns] = {};
      for (int64_t q = r; q < std::min(end, r + kSumBlock); ++q) {
        for (int64_t j = 0; j < kSumColumns; ++j) part[j] += term(q, j);
      }
      for (int64_t j = 0; j < kSumColumns; ++j) total[j] += part[j];
    }
    std::copy_n(total, kSumColumns, sum);
    return;
  }
  alignas(64) T total[kStripColumns], part[kStripColumns];
  std::fill_n(total, width, T(0));
  for (int64_t r = begin; r < end; r += kSumBlock) {
    std::fill_n(part, width, T(0));
    const auto add = [&](T a, int64_t q, int64_t j) { return a + term(q, j); };
    FoldRows(r, std::min(end, r + kSumBlock), width, add, part);
    for (int64_t j = 0; j < width; ++j) total[j] += part[j];
  }
  std::copy_n(total, width, sum);
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_BLOCKED_SUM_H_
