#include "autograd/kernels/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "absl/container/inlined_vector.h"
#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/gemm_tile.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/kernels/vecmath.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

// A reduction is given by what it does with one row of n elements, and with n
// rows of up to kSumColumns columns, `stride` apart. If it finds places, then
// `at`, where not null, gets the row's or each column's first place of the
// result.

struct SumOf {
  static constexpr bool kFindsPlaces = false;

  template <class T>
  static void Row(int64_t n, const T* x, T* y, int64_t*) {
    *y = BlockedSum<T>(n, [x](int64_t i) { return x[i]; });
  }
  template <class T>
  static void Columns(int64_t n, int64_t width, const T* x, int64_t stride,
                      T* y, int64_t*) {
    if (width == kSumColumns) {
      const auto term = [=](int64_t r, int64_t j) { return x[r * stride + j]; };
      return BlockedRowSum(0, n, width, term, y);
    }
    // The same sums, vector by vector.
    for (int64_t j = 0; j < width; j += gemm::kWidth<T>) {
      const int part =
          static_cast<int>(std::min<int64_t>(gemm::kWidth<T>, width - j));
      SumVector(n, part, x + j, stride, y + j);
    }
  }

  // The sums of n <= kSumRows rows of `part` elements, at most a vector.
  template <class T>
  static void SumVector(int64_t n, int part, const T* x, int64_t stride, T* y) {
    gemm::Vector<T> total = {};
    for (int64_t begin = 0; begin < n; begin += kSumBlock) {
      gemm::Vector<T> sum = {};
      for (int64_t r = begin; r < std::min(n, begin + kSumBlock); ++r) {
        sum += gemm::LoadFirst(x + r * stride, part);
      }
      total += sum;
    }
    T elements[gemm::kWidth<T>];
    gemm::Store(elements, total);
    std::copy_n(elements, part, y);
  }
};

struct MaxOf {
  static constexpr bool kFindsPlaces = true;

  // Whether x takes the place of the largest so far.
  template <class T>
  static bool Beats(T x, T best) {
    return (x > best) | ((x != x) & (best == best));
  }

  template <class T>
  static void Row(int64_t n, const T* x, T* y, int64_t* at) {
    const int64_t first =
        n <= kLanes ? FindMax(n, x) : Find(n, x, Largest(n, x));
    *y = x[first];
    if (at != nullptr) *at = first;
  }

  static constexpr int kLanes = 32;

  template <class T>
  static int64_t FindMax(int64_t n, const T* x) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; ++i) {
      if (Beats(x[i], x[best])) best = i;
    }
    return best;
  }

  template <class T>
  static T Largest(int64_t n, const T* x) {
    T best[kLanes];
    int nans[kLanes] = {};
    std::fill_n(best, kLanes, x[0]);
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) {
        const T v = x[i + l];
        best[l] = Select(v > best[l], v, best[l]);
        nans[l] |= v != v;
      }
    }
    T largest = best[0];
    for (int l = 0; l < kLanes; ++l) {
      if (nans[l]) return std::numeric_limits<T>::quiet_NaN();
      if (best[l] > largest) largest = best[l];
    }
    for (; i < n; ++i) {
      if (Beats(x[i], largest)) largest = x[i];
    }
    return largest;
  }

  // The first i with x[i] == value, or NaN if that is NaN; there is one.
  template <class T>
  static int64_t Find(int64_t n, const T* x, T value) {
    const auto same = [value](T v) {
      return (v == value) | ((v != v) & (value != value));
    };
    constexpr int64_t kBlock = 64;
    int64_t i = 0;
    for (; i + kBlock <= n; i += kBlock) {
      int found = 0;
      for (int64_t l = 0; l < kBlock; ++l) found |= same(x[i + l]);
      if (found) break;
    }
    while (!same(x[i])) ++i;
    return i;
  }

  template <class T>
  static void Columns(int64_t n, int64_t width, const T* x, int64_t stride,
                      T* y, int64_t* at) {
    // Indices as wide as T, so that one mask serves both.
    using Index = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    T best[kSumColumns];
    Index place[kSumColumns] = {};
    std::copy_n(x, width, best);
    for (int64_t r = 1; r < n; ++r) {
      for (int64_t j = 0; j < width; ++j) {
        const T v = x[r * stride + j];
        const bool beats = Beats(v, best[j]);
        best[j] = Select(beats, v, best[j]);
        place[j] = Select(beats, static_cast<Index>(r), place[j]);
      }
    }
    std::copy_n(best, width, y);
    if (at != nullptr) std::copy_n(place, width, at);
  }
};

struct LogSumExpOf {
  static constexpr bool kFindsPlaces = false;

  template <class T>
  static void Row(int64_t n, const T* x, T* y, int64_t*) {
    T largest = -std::numeric_limits<T>::infinity();
    if (n > 0) MaxOf::Row<T>(n, x, &largest, nullptr);
    *y = largest;
    if (!std::isfinite(largest)) return;
    const auto term = [=](int64_t i) { return Exp(x[i] - largest); };
    *y += Log(BlockedSum<T>(n, term));
  }
  template <class T>
  static void Columns(int64_t n, int64_t width, const T* x, int64_t stride,
                      T* y, int64_t*) {
    std::fill_n(y, width, -std::numeric_limits<T>::infinity());
    if (n > 0) MaxOf::Columns<T>(n, width, x, stride, y, nullptr);
    T sum[kSumColumns];
    const auto term = [=](int64_t r, int64_t j) {
      return Exp(x[r * stride + j] - y[j]);
    };
    BlockedRowSum(0, n, width, term, sum);
    for (int64_t j = 0; j < width; ++j) {
      if (std::isfinite(y[j])) y[j] += Log(sum[j]);
    }
  }
};

// y [outer, chunks, inner] from x [outer, n, inner], each element from `chunk`
// of the n. x_arg, where not null, holds the places that the elements of x
// stand for: x is then the result of an earlier pass.
template <class Op, class T>
void ReduceChunks(int64_t outer, int64_t n, int64_t inner, int64_t chunk,
                  int64_t chunks, const T* x, const int64_t* x_arg,
                  bool accumulate, T* y, int64_t* arg) {
  const int64_t tiles = CeilDiv(inner, kSumColumns);
  const int64_t work =
      std::max<int64_t>(1, std::min(n, chunk)) * std::min(inner, kSumColumns);
  const int64_t tasks = outer * chunks * tiles, grain = GrainOf(tasks, work);
  ParallelFor(tasks, grain, [=](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row = task / tiles;  // of y, inner elements wide
      const int64_t column = task % tiles * kSumColumns;
      const int64_t width = std::min(kSumColumns, inner - column);
      const int64_t skipped = row % chunks * chunk;
      const int64_t rows = std::min(chunk, n - skipped);
      const int64_t start = (row / chunks * n + skipped) * inner + column;
      T value[kSumColumns];
      int64_t place[kSumColumns];
      int64_t* at = arg != nullptr ? place : nullptr;
      if (inner == 1) {
        Op::Row(rows, x + start, value, at);
      } else {
        Op::Columns(rows, width, x + start, inner, value, at);
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
    }
  });
}

// y [outer, inner] from x [outer, n, inner].
template <class Op, class T>
void ReduceMiddle(int64_t outer, int64_t n, int64_t inner, const T* x,
                  const int64_t* x_arg, bool accumulate, T* y, int64_t* arg) {
  const int64_t chunk = inner == 1 ? kGrain : kSumRows;
  if (n <= chunk) {
    return ReduceChunks<Op>(outer, n, inner, chunk, 1, x, x_arg, accumulate, y,
                            arg);
  }
  const int64_t chunks = CeilDiv(n, chunk);
  const Scratch<T> partial(outer * chunks * inner);
  const Scratch<int64_t> partial_arg(arg != nullptr ? outer * chunks * inner
                                                    : 0);
  int64_t* places = arg != nullptr ? partial_arg.data() : nullptr;
  ReduceChunks<Op>(outer, n, inner, chunk, chunks, x, x_arg, false,
                   partial.data(), places);
  ReduceMiddle<Op>(outer, chunks, inner, partial.data(), places, accumulate, y,
                   arg);
}

// Dimensions side by side that are all kept or all reduced.
struct Group {
  int64_t size;
  bool keep;
};
using Groups = absl::InlinedVector<Group, 6>;

// Reduces the last group that is to be, and then what is left of the others.
template <class Op, class T>
void ReduceGroups(Groups groups, const T* x, const int64_t* x_arg,
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
    return ReduceMiddle<Op>(outer, n, inner, x, x_arg, accumulate, y, arg);
  }
  const Scratch<T> partial(outer * inner);
  const Scratch<int64_t> partial_arg(arg != nullptr ? outer * inner : 0);
  int64_t* places = arg != nullptr ? partial_arg.data() : nullptr;
  ReduceMiddle<Op>(outer, n, inner, x, x_arg, false, partial.data(), places);
  groups.erase(groups.begin() + last);
  ReduceGroups<Op>(groups, partial.data(), places, accumulate, y, arg);
}

template <class Op, class T>
void Reduce(Dims dims, absl::Span<const bool> keep, const T* x, bool accumulate,
            T* y, int64_t* arg) {
  Groups groups;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (!groups.empty() && groups.back().keep == keep[i]) {
      groups.back().size *= dims[i];
    } else {
      groups.push_back({dims[i], keep[i]});
    }
  }
  ReduceGroups<Op, T>(groups, x, nullptr, accumulate, y, arg);
}

}  // namespace

template <class T>
void Sum(Dims dims, absl::Span<const bool> keep, const T* x, bool accumulate,
         T* y) {
  Reduce<SumOf>(dims, keep, x, accumulate, y, nullptr);
}

template <class T>
void Max(Dims dims, absl::Span<const bool> keep, const T* x, T* y,
         int64_t* arg) {
  Reduce<MaxOf>(dims, keep, x, false, y, arg);
}

template <class T>
void LogSumExp(Dims dims, absl::Span<const bool> keep, const T* x, T* y) {
  Reduce<LogSumExpOf>(dims, keep, x, false, y, nullptr);
}

template void Sum(Dims, absl::Span<const bool>, const float*, bool, float*);
template void Max(Dims, absl::Span<const bool>, const float*, float*, int64_t*);
template void LogSumExp(Dims, absl::Span<const bool>, const float*, float*);
template void Sum(Dims, absl::Span<const bool>, const double*, bool, double*);
template void Max(Dims, absl::Span<const bool>, const double*, double*,
                  int64_t*);
template void LogSumExp(Dims, absl::Span<const bool>, const double*, double*);

}  // namespace wengert::kernels
