// A loop over the elements of a row-major result whose K operands are read with
// strides of their own: broadcast operands, permuted and sliced ones. It merges
// the dimensions that lie side by side in every operand and hands out blocks of
// rows, so that the work is done in tight loops. For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_STRIDED_LOOP_H_
#define WENGERT_AUTOGRAD_KERNELS_STRIDED_LOOP_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace wengert::kernels {

template <int K>
class StridedLoop {
 public:
  using Offsets = std::array<int64_t, K>;

  // Adds a dimension inside those there are; strides are in elements, 0 where
  // the operand repeats.
  void Add(int64_t size, const Offsets& strides) {
    n_ *= size;
    if (size == 1) return;
    if (!dims_.empty() && IsOneDimension(dims_.back().strides, size, strides)) {
      dims_.back() = {dims_.back().size * size, strides};
    } else {
      dims_.push_back({size, strides});
    }
  }

  int64_t size() const { return n_; }

  // The strides of operand k within a row (the innermost dimension that is
  // left after merging) and from one row to the next.
  int64_t stride(int k) const { return Stride(1, k); }
  int64_t row_stride(int k) const { return Stride(2, k); }

  // Where the operands are at element i of the result.
  Offsets At(int64_t i) const {
    Offsets offsets{};
    for (int d = static_cast<int>(dims_.size()) - 1; d >= 0; --d) {
      Move(d, i % dims_[d].size, offsets);
      i /= dims_[d].size;
    }
    return offsets;
  }

  // Covers elements [begin, end) of the result by blocks: block(at, rows, n,
  // offsets) is to do `rows` rows of n elements, which the result holds one
  // after another from `at` on, and operand k from offsets[k] on.
  template <class Block>
  void ForEachBlock(int64_t begin, int64_t end, Block block) const {
    if (begin >= end) return;
    const int rank = static_cast<int>(dims_.size());
    if (rank == 0) return block(0, 1, 1, Offsets{});
    absl::InlinedVector<int64_t, 6> index(rank);
    Offsets offsets{};
    int64_t rest = begin;
    for (int d = rank - 1; d >= 0; --d) {
      index[d] = rest % dims_[d].size;
      rest /= dims_[d].size;
      Move(d, index[d], offsets);
    }
    const int64_t row = dims_.back().size;
    for (int64_t at = begin; at < end;) {
      int64_t rows = 1;
      int64_t n = std::min(row - index.back(), end - at);
      if (n == row && rank > 1) {
        rows =
            std::min(dims_[rank - 2].size - index[rank - 2], (end - at) / row);
      }
      block(at, rows, n, offsets);
      at += rows * n;
      // To the start of the next row, and on as an odometer goes.
      Move(rank - 1, -index.back(), offsets);
      index.back() = 0;
      for (int d = rank - 2; d >= 0; --d) {
        const int64_t steps = d == rank - 2 ? rows : 1;
        Move(d, steps, offsets);
        index[d] += steps;
        if (index[d] < dims_[d].size) break;
        Move(d, -index[d], offsets);
        index[d] = 0;
      }
    }
  }

 private:
  struct Dim {
    int64_t size;
    Offsets strides;
  };

  int64_t Stride(size_t from_last, int k) const {
    if (dims_.size() < from_last) return 0;
    return dims_[dims_.size() - from_last].strides[k];
  }

  static bool IsOneDimension(const Offsets& outer, int64_t size,
                             const Offsets& inner) {
    for (int k = 0; k < K; ++k) {
      if (outer[k] != size * inner[k]) return false;
    }
    return true;
  }

  void Move(int d, int64_t steps, Offsets& offsets) const {
    for (int k = 0; k < K; ++k) offsets[k] += steps * dims_[d].strides[k];
  }

  int64_t n_ = 1;
  absl::InlinedVector<Dim, 6> dims_;
};

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_STRIDED_LOOP_H_
