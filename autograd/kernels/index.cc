#include "autograd/kernels/index.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <type_traits>

#include "autograd/kernels/index_turned.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

// Terms of a column that are added where they go. More of them go through a
// column of SumType, which costs a pass over its n elements.
constexpr int64_t kFewTerms = 64;

// Rows that lie apart are asked for so many steps before they are used.
constexpr int64_t kAhead = 8;

template <bool written, class T>
void Prefetch(int64_t n, const T* x) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t i = 0; i < n; i += kLine) __builtin_prefetch(x + i, written);
}

// Columns [column, column + columns) of one outer index.
template <class T, class I>
void AddColumns(const AxisSizes& s, AxisIds<I> ids, int64_t o, int64_t column,
                int64_t columns, const T* x, const T* src, T* y) {
  using S = SumType<T>;
  const int64_t at = o * s.n * s.inner + column;
  // Rows of y, or the whole when these columns are all there are.
  const bool whole = columns == s.inner;
  const int64_t rows = whole ? 1 : s.n, width = whole ? s.n * columns : columns;
  const auto to_y = [&](const auto& term) {
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t first = at + r * s.inner;
      if (r + kAhead < rows) {
        const int64_t later = first + kAhead * s.inner;
        if (x) Prefetch<false>(width, x + later);
        Prefetch<true>(width, y + later);
      }
      WENGERT_INDEPENDENT
      for (int64_t i = 0; i < width; ++i) {
        const S from_x = x ? static_cast<S>(x[first + i]) : S{0};
        y[first + i] = static_cast<T>(from_x + term(r * width + i));
      }
    }
  };
  const auto add_terms = [&](auto* sums, int64_t stride) {
    using Sum = std::remove_pointer_t<decltype(sums)>;
    for (int64_t j = 0; j < s.m; ++j) {
      const int64_t row = o * s.m + j;
      const T* terms = src + row * s.inner + column;
      const auto add = [&](I id, int64_t i) {
        Sum& sum = sums[id * stride + i];
        sum = static_cast<Sum>(static_cast<S>(sum) + static_cast<S>(terms[i]));
      };
      if (s.inner == 1) {
        add(ids.ids[ids.shared ? j : row], 0);
      } else if (ids.shared) {
        const I id = ids.ids[j];
        WENGERT_INDEPENDENT
        for (int64_t i = 0; i < columns; ++i) add(id, i);
      } else {
        const I* row_ids = ids.ids + row * s.inner + column;
        if (j + kAhead < s.m) {
          Prefetch<false>(columns, row_ids + kAhead * s.inner);
          Prefetch<false>(columns, terms + kAhead * s.inner);
        }
        for (int64_t i = 0; i < columns; ++i) add(row_ids[i], i);
      }
    }
  };
  if (s.m <= kFewTerms) {
    to_y([](int64_t) { return S{0}; });
    add_terms(y + at, s.inner);
    return;
  }
  const Scratch<S> memory(s.n * columns);
  S* const sums = memory.data();
  std::fill_n(sums, s.n * columns, S{0});
  add_terms(sums, columns);
  to_y([=](int64_t i) { return sums[i]; });
}

// y[i] = value(i), four at a time: reads at random wait for no write before
// them, and are faster than the machine's own gathering of vectors.
template <class T, class Value>
void Gather(int64_t n, const Value& value, T* y) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const T v[] = {value(i), value(i + 1), value(i + 2), value(i + 3)};
    std::copy_n(v, 4, y + i);
  }
  for (; i < n; ++i) y[i] = value(i);
}

// Columns side by side whose elements a cache holds.
int64_t ColumnsOf(const AxisSizes& s) {
  constexpr int64_t kHeld = 1 << 17, kLine = 16, kMost = 64;
  return std::min(s.inner, std::clamp(kHeld / s.n, kLine, kMost));
}

// Each column by ids of its own. What is read at random is first put together:
// in place it would lie in as many pages as there are rows.
template <class T, class I>
void TakeColumns(const AxisSizes& s, const I* ids, const T* x, T* y) {
  const int64_t columns = ColumnsOf(s), blocks = CeilDiv(s.inner, columns);
  const int64_t some = std::max<int64_t>(s.n, 1024);  // rows of y
  const int64_t parts = CeilDiv(s.m, some), tasks = s.outer * blocks * parts;
  const int64_t work = (s.n + std::min(some, s.m)) * columns;
  ParallelFor(tasks, GrainOf(tasks, work), [=](int64_t begin, int64_t end) {
    const Scratch<T> strip(blocks > 1 ? s.n * columns : 0);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t o = task / (blocks * parts);
      const int64_t column = task / parts % blocks * columns;
      const int64_t width = std::min(columns, s.inner - column);
      const T* from = x + o * s.n * s.inner + column;
      if (blocks > 1) {
        for (int64_t r = 0; r < s.n; ++r) {
          if (r + kAhead < s.n) {
            Prefetch<false>(width, from + (r + kAhead) * s.inner);
          }
          std::copy_n(from + r * s.inner, width, strip.data() + r * width);
        }
        from = strip.data();
      }
      const int64_t first = task % parts * some;
      for (int64_t j = first; j < std::min(s.m, first + some); ++j) {
        const int64_t at = (o * s.m + j) * s.inner + column;
        if (j + kAhead < s.m) {
          Prefetch<false>(width, ids + at + kAhead * s.inner);
          Prefetch<true>(width, y + at + kAhead * s.inner);
        }
        const I* const id = ids + at;
        Gather(
            width, [=](int64_t i) { return from[id[i] * width + i]; }, y + at);
      }
    }
  });
}

}  // namespace

template <class I>
int64_t FirstOutside(int64_t n_ids, const I* ids, int64_t n) {
  using U = std::make_unsigned_t<I>;
  const auto limit = static_cast<U>(
      std::min<uint64_t>(n, uint64_t{std::numeric_limits<I>::max()} + 1));
  const auto is_outside = [=](I id) {  // negative ids are the largest
    return static_cast<U>(id) >= limit;
  };
  constexpr int64_t kFew = 256;
  if (n_ids <= kFew) {
    const I* const at = std::find_if(ids, ids + n_ids, is_outside);
    return at == ids + n_ids ? -1 : at - ids;
  }
  std::atomic<int64_t> first = n_ids;
  ParallelFor(n_ids, GrainOf(n_ids, 1), [&](int64_t begin, int64_t end) {
    U outside = 0;
    for (int64_t i = begin; i < end; ++i) outside |= is_outside(ids[i]);
    if (!outside) return;
    const int64_t at = std::find_if(ids + begin, ids + end, is_outside) - ids;
    int64_t before = first;
    while (at < before && !first.compare_exchange_weak(before, at)) {
    }
  });
  return first < n_ids ? first.load() : -1;
}

template <class T, class I>
void TakeAlong(const AxisSizes& s, AxisIds<I> ids, const T* x, T* y) {
  if (s.outer * s.m * s.inner == 0) return;
  if (TakesRows(s, ids) && sizeof(T) >= 4) {
    return TakeTurned(s, ids.ids, x, y);
  }
  if (!ids.shared && s.inner > 1) return TakeColumns(s, ids.ids, x, y);
  const int64_t rows = s.outer * s.m;
  ParallelFor(rows, GrainOf(rows, s.inner), [=](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end;) {
      const int64_t o = at / s.m, first = at % s.m;
      const T* const from = x + o * s.n * s.inner;
      const I* const id = ids.ids + (ids.shared ? first : at);
      T* const out = y + at * s.inner;
      int64_t count = std::min(s.m - first, end - at);
      if (s.inner == 1) {
        // The next x is read at random: it comes while this one is.
        constexpr int64_t kSome = 256;
        count = std::min(count, kSome);
        const int64_t left = s.n - first;
        if (o + 1 < s.outer && left > 0) {
          Prefetch<false>(std::min(left, kSome), from + s.n + first);
        }
        Gather(
            count, [=](int64_t j) { return from[id[j]]; }, out);
      } else {
        for (int64_t j = 0; j < count; ++j) {
          std::copy_n(from + id[j] * s.inner, s.inner, out + j * s.inner);
        }
      }
      at += count;
    }
  });
}

template <class T, class I>
void AddAlong(const AxisSizes& s, AxisIds<I> ids, const T* x, const T* src,
              T* y) {
  if (s.outer * s.n * s.inner == 0) return;
  if constexpr (sizeof(T) >= 4) {
    if (TakesRows(s, ids) && s.m > kFewTerms) {
      return AddTurned(s, ids.ids, x, src, y);
    }
  }
  // Columns side by side whose sums fit in the cache, and fill a line of it.
  constexpr int64_t kSums = 1 << 16, kLine = 16;
  const int64_t columns = std::min(s.inner, std::max(kLine, kSums / s.n));
  const int64_t blocks = CeilDiv(s.inner, columns);
  const int64_t tasks = s.outer * blocks;
  const int64_t work = (s.n + s.m) * columns;
  ParallelFor(tasks, GrainOf(tasks, work), [=](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t column = task % blocks * columns;
      AddColumns(s, ids, task / blocks, column,
                 std::min(columns, s.inner - column), x, src, y);
    }
  });
}

template int64_t FirstOutside(int64_t, const int32_t*, int64_t);
template int64_t FirstOutside(int64_t, const int64_t*, int64_t);
template void TakeAlong(const AxisSizes&, AxisIds<int32_t>, const float*,
                        float*);
template void AddAlong(const AxisSizes&, AxisIds<int32_t>, const float*,
                       const float*, float*);
template void TakeAlong(const AxisSizes&, AxisIds<int64_t>, const float*,
                        float*);
template void AddAlong(const AxisSizes&, AxisIds<int64_t>, const float*,
                       const float*, float*);
template void TakeAlong(const AxisSizes&, AxisIds<int32_t>, const double*,
                        double*);
template void AddAlong(const AxisSizes&, AxisIds<int32_t>, const double*,
                       const double*, double*);
template void TakeAlong(const AxisSizes&, AxisIds<int64_t>, const double*,
                        double*);
template void AddAlong(const AxisSizes&, AxisIds<int64_t>, const double*,
                       const double*, double*);
template void TakeAlong(const AxisSizes&, AxisIds<int32_t>, const int32_t*,
                        int32_t*);
template void AddAlong(const AxisSizes&, AxisIds<int32_t>, const int32_t*,
                       const int32_t*, int32_t*);
template void TakeAlong(const AxisSizes&, AxisIds<int64_t>, const int32_t*,
                        int32_t*);
template void AddAlong(const AxisSizes&, AxisIds<int64_t>, const int32_t*,
                       const int32_t*, int32_t*);
template void TakeAlong(const AxisSizes&, AxisIds<int32_t>, const int64_t*,
                        int64_t*);
template void AddAlong(const AxisSizes&, AxisIds<int32_t>, const int64_t*,
                       const int64_t*, int64_t*);
template void TakeAlong(const AxisSizes&, AxisIds<int64_t>, const int64_t*,
                        int64_t*);
template void AddAlong(const AxisSizes&, AxisIds<int64_t>, const int64_t*,
                       const int64_t*, int64_t*);
template void TakeAlong(const AxisSizes&, AxisIds<int32_t>, const bool*, bool*);
template void AddAlong(const AxisSizes&, AxisIds<int32_t>, const bool*,
                       const bool*, bool*);
template void TakeAlong(const AxisSizes&, AxisIds<int64_t>, const bool*, bool*);
template void AddAlong(const AxisSizes&, AxisIds<int64_t>, const bool*,
                       const bool*, bool*);

}  // namespace wengert::kernels
