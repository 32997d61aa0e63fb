// The loops of reductions over any set of dimensions, for .cc files.
//
// A reduction Op is a small object that says what becomes of one row of n
// elements, and of n rows of up to kStripColumns columns that lie `stride`
// apart:
//
//   Row(n, x, y, at)    Columns(n, width, x, stride, y, at)    Combine()
//
// Long rows are cut into chunks; Combine() is the reduction of their results.
// An Op with a kShortRow does many rows of up to as many elements at once:
// ShortRows(rows, n, x, accumulate, y), and one with kFewRows sums of as few:
// FewRows(outer, n, inner, x, accumulate, y). If an Op kFindsPlaces, then `at`,
// where not null, gets the row's or each column's first place of the result.
#ifndef WENGERT_AUTOGRAD_KERNELS_REDUCE_LOOP_H_
#define WENGERT_AUTOGRAD_KERNELS_REDUCE_LOOP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/dims.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/kernels/strips.h"
#include "autograd/parallel.h"

namespace wengert::kernels {

// y [outer, chunks, inner] from x [outer, n, inner], each element from `chunk`
// of the n. x_arg, where not null, holds the places that the elements of x
// stand for: x is then the result of an earlier pass.
template <class Op, class T>
void ReduceChunks(Op op, int64_t outer, int64_t n, int64_t inner, int64_t chunk,
                  int64_t chunks, const T* x, const int64_t* x_arg,
                  bool accumulate, T* y, int64_t* arg) {
  const int64_t strip = StripOf(outer * chunks, inner);
  const int64_t tiles = CeilDiv(inner, strip);
  const int64_t work =
      std::max<int64_t>(1, std::min(n, chunk)) * std::min(inner, strip);
  const int64_t tasks = outer * chunks * tiles, grain = GrainOf(tasks, work);
  ParallelFor(tasks, grain, [=](int64_t begin, int64_t end) {
    if constexpr (requires { Op::kShortRow; }) {
      if (inner == 1 && n <= Op::kShortRow) {
        return op.ShortRows(end - begin, n, x + begin * n, accumulate,
                            y + begin);
      }
    }
    // Of y, inner elements wide; counted on, since divisions take longer than
    // a short row.
    int64_t row = begin / tiles;
    int64_t tile = begin % tiles, part = row % chunks, slice = row / chunks;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t column = tile * strip;
      const int64_t width = std::min(strip, inner - column);
      const int64_t skipped = part * chunk;
      const int64_t rows = std::min(chunk, n - skipped);
      const int64_t start = (slice * n + skipped) * inner + column;
      alignas(64) T value[kStripColumns];
      alignas(64) int64_t place[kStripColumns];
      int64_t* at = arg != nullptr ? place : nullptr;
      if (inner == 1) {
        op.Row(rows, x + start, value, at);
      } else {
        op.Columns(rows, width, x + start, inner, value, at);
      }
      const int64_t out = row * inner + column;
      for (int64_t j = 0; j < width; ++j) {
        y[out + j] = accumulate ? y[out + j] + value[j] : value[j];
      }
      if constexpr (Op::kFindsPlaces) {
        for (int64_t j = 0; at != nullptr && j < width; ++j) {
          const int64_t flat = start + place[j] * inner + j;
          arg[out + j] = x_arg != nullptr ? x_arg[flat] : flat;
        }
      }
      if (++tile < tiles) continue;
      tile = 0;
      ++row;
      if (++part < chunks) continue;
      part = 0;
      ++slice;
    }
  });
}

// y [outer, inner] from x [outer, n, inner].
template <class Op, class T>
void ReduceMiddle(Op op, int64_t outer, int64_t n, int64_t inner, const T* x,
                  const int64_t* x_arg, bool accumulate, T* y, int64_t* arg) {
  if constexpr (requires { Op::kFewRows; }) {
    if (n >= 2 && n <= Op::kFewRows && inner > 1) {
      return op.FewRows(outer, n, inner, x, accumulate, y);
    }
  }
  const int64_t chunk = inner == 1 ? kGrain : kSumRows;
  if (n <= chunk) {
    return ReduceChunks(op, outer, n, inner, chunk, 1, x, x_arg, accumulate, y,
                        arg);
  }
  const int64_t chunks = CeilDiv(n, chunk);
  const Scratch<T> partial(outer * chunks * inner);
  const Scratch<int64_t> partial_arg(arg != nullptr ? outer * chunks * inner
                                                    : 0);
  int64_t* places = arg != nullptr ? partial_arg.data() : nullptr;
  ReduceChunks(op, outer, n, inner, chunk, chunks, x, x_arg, false,
               partial.data(), places);
  ReduceMiddle(op.Combine(), outer, chunks, inner, partial.data(), places,
               accumulate, y, arg);
}

// Dimensions side by side that are all kept or all reduced.
struct Group {
  int64_t size;
  bool keep;
};
using Groups = absl::InlinedVector<Group, 6>;

// Reduces the last group that is to be, and then what is left of the others.
template <class Op, class T>
void ReduceGroups(Op op, Groups groups, const T* x, const int64_t* x_arg,
                  bool accumulate, T* y, int64_t* arg) {
  int last = static_cast<int>(groups.size()) - 1;
  int64_t outer = 1, n = 1, inner = 1;
  for (; last >= 0 && groups[last].keep; --last) inner *= groups[last].size;
  if (last >= 0) n = groups[last].size;
  bool more = false;
  for (int i = 0; i < last; ++i) {
    outer *= groups[i].size;
    more |= !groups[i].keep;
  }
  if (!more) {
    return ReduceMiddle(op, outer, n, inner, x, x_arg, accumulate, y, arg);
  }
  const Scratch<T> partial(outer * inner);
  const Scratch<int64_t> partial_arg(arg != nullptr ? outer * inner : 0);
  int64_t* places = arg != nullptr ? partial_arg.data() : nullptr;
  ReduceMiddle(op, outer, n, inner, x, x_arg, false, partial.data(), places);
  groups.erase(groups.begin() + last);
  ReduceGroups(op.Combine(), groups, partial.data(), places, accumulate, y,
               arg);
}

template <class Op, class T>
void Reduce(Op op, Dims dims, absl::Span<const bool> keep, const T* x,
            bool accumulate, T* y, int64_t* arg) {
  Groups groups;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (!groups.empty() && groups.back().keep == keep[i]) {
      groups.back().size *= dims[i];
    } else {
      groups.push_back({dims[i], keep[i]});
    }
  }
  ReduceGroups<Op, T>(op, groups, x, nullptr, accumulate, y, arg);
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_REDUCE_LOOP_H_
