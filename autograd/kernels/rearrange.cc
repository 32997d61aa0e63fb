#include "autograd/kernels/rearrange.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "absl/container/inlined_vector.h"
#include "autograd/kernels/copy.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/stream.h"
#include "autograd/kernels/transpose.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

// One axis of a padded array: element i is element i - before of x for i in
// [lo, hi).
struct PaddedAxis {
  int64_t size, lo, hi, before;
  int64_t x_stride;  // of the axis of x, in rows
};

PaddedAxis PaddedAxisOf(int64_t n, int64_t before, int64_t after,
                        int64_t x_stride) {
  const int64_t size = before + n + after;
  const int64_t lo = std::clamp<int64_t>(before, 0, size);
  return {size, lo, std::clamp(before + n, lo, size), before, x_stride};
}

}  // namespace

template <class T>
void Pad(Dims dims, Dims before, Dims after, T value, const T* x, T* y) {
  // A row is the last axis that is padded, with all axes behind it.
  int row_axis = static_cast<int>(dims.size()) - 1;
  int64_t inner = 1;
  while (row_axis >= 0 && before[row_axis] == 0 && after[row_axis] == 0) {
    inner *= dims[row_axis--];
  }
  PaddedAxis row = {1, 0, 1, 0, 1};
  int64_t x_width = inner;
  if (row_axis >= 0) {
    row = PaddedAxisOf(dims[row_axis], before[row_axis], after[row_axis], 1);
    x_width *= dims[row_axis];
  }
  const int64_t width = row.size * inner;
  absl::InlinedVector<PaddedAxis, 6> outer;  // the last of them first
  int64_t n = width, x_rows = 1;
  for (int d = row_axis - 1; d >= 0; --d) {
    outer.push_back(PaddedAxisOf(dims[d], before[d], after[d], x_rows));
    n *= outer.back().size;
    x_rows *= dims[d];
  }
  if (n == 0) return;
  const int64_t lo = row.lo * inner, hi = row.hi * inner;
  const bool streamed = IsStreamed<T>(n);

  ParallelFor(n, GrainOf(n, 1), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end;) {
      int64_t rest = at / width, x_row = 0;
      const int64_t first = at % width,
                    stop = std::min(width, first + end - at);
      bool inside = true;
      for (const PaddedAxis& axis : outer) {
        const int64_t i = rest % axis.size;
        rest /= axis.size;
        inside = inside && i >= axis.lo && i < axis.hi;
        x_row += (i - axis.before) * axis.x_stride;
      }
      // The part of the row that is x, if any, and what lies on both sides.
      const int64_t from = inside ? std::clamp(lo, first, stop) : stop;
      const int64_t to = inside ? std::clamp(hi, from, stop) : stop;
      T* out = y + at - first;
      std::fill(out + first, out + from, value);
      if (from < to) {
        const T* in = x + x_row * x_width - row.before * inner;
        streamed ? StreamRow(to - from, in + from, out + from)
                 : static_cast<void>(std::copy(in + from, in + to, out + from));
      }
      std::fill(out + to, out + stop, value);
      at += stop - first;
    }
    if (streamed) EndStream();
  });
}

template <class T>
void Triangle(bool lower, int64_t k, int64_t batch, int64_t m, int64_t n,
              const T* x, T* y) {
  k = std::clamp(k, -m, n);
  ParallelFor(
      batch * m, GrainOf(batch * m, n), [=](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t i = row % m;
          // Where the columns that stay begin and end.
          const int64_t from = lower ? 0 : std::clamp<int64_t>(i + k, 0, n);
          const int64_t to = lower ? std::clamp<int64_t>(i + k + 1, 0, n) : n;
          const T* in = x + row * n;
          T* out = y + row * n;
          std::fill(out, out + from, T{0});
          std::copy(in + from, in + to, out + from);
          std::fill(out + to, out + n, T{0});
        }
      });
}

namespace {

// y[r y_stride + i] += x[r x_stride + i] for r < rows, i < n, which may be a
// constant.
template <class T, class N>
void AddRows(int64_t rows, N n, const T* x, int64_t x_stride, T* y,
             int64_t y_stride) {
  WENGERT_INDEPENDENT
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < n; ++i) y[r * y_stride + i] += x[r * x_stride + i];
  }
}

// Fold of windows of single numbers for segments [begin, end) of x, which are
// `step` long: a segment gets part c of the window that starts c segments
// before it.
template <class T>
void FoldSegments(const Windows& s, int64_t begin, int64_t end, const T* y,
                  T* x) {
  std::fill(x + begin * s.step, x + std::min(s.n, end * s.step), T{0});
  for (int64_t c = (s.size - 1) / s.step; c >= 0; --c) {
    const int64_t from = std::max(begin, c);
    const int64_t rows = std::min(end, s.count() + c) - from;
    const auto add = [&](auto n) {
      AddRows(rows, n, y + (from - c) * s.size + c * s.step, s.size,
              x + from * s.step, s.step);
    };
    const int64_t n = std::min(s.step, s.size - c * s.step);
    n == 1   ? add(std::integral_constant<int, 1>())
    : n == 2 ? add(std::integral_constant<int, 2>())
    : n == 4 ? add(std::integral_constant<int, 4>())
    : n == 8 ? add(std::integral_constant<int, 8>())
             : add(n);
  }
}

// y[j, i] += x[i, j] for i < rows, j < columns.
template <class T>
void AddTransposed(int64_t rows, int64_t columns, const T* x, int64_t x_stride,
                   T* y, int64_t y_stride) {
  constexpr int64_t kTile = 32;
  T tile[kTile * kTile];
  for (int64_t i = 0; i < rows; i += kTile) {
    for (int64_t j = 0; j < columns; j += kTile) {
      const int64_t m = std::min(kTile, rows - i);
      const int64_t n = std::min(kTile, columns - j);
      TransposeTile(m, n, x + i * x_stride + j, x_stride, tile, kTile);
      for (int64_t l = 0; l < n; ++l) {
        WriteRow(
            m, true, [&](int64_t k) { return tile[l * kTile + k]; },
            y + (j + l) * y_stride + i);
      }
    }
  }
}

// Fold for the steps [begin, end) of x, window by window.
template <class T>
void FoldWindows(const Windows& s, int64_t begin, int64_t end, const T* y,
                 T* x) {
  std::fill(x + begin * s.inner, x + end * s.inner, T{0});
  // The windows that reach into [begin, end).
  const int64_t from = std::max<int64_t>(0, begin - s.size + s.step) / s.step;
  const int64_t to = std::min(s.count(), (end - 1) / s.step + 1);
  for (int64_t w = from; w < to; ++w) {
    const int64_t lo = std::max(begin, w * s.step);
    const int64_t hi = std::min(end, w * s.step + s.size);
    AddTransposed(s.inner, hi - lo, y + w * s.inner * s.size + lo - w * s.step,
                  s.size, x + lo * s.inner, s.inner);
  }
}

// Windows that do not overlap: only moves.
template <class T>
void Unwindow(const Windows& s, const T* y, T* x) {
  const int64_t count = s.count(), window = s.inner * s.size;
  if (s.n != count * s.size) {
    const int64_t rows = s.outer * s.n;
    ParallelFor(rows, GrainOf(rows, s.inner), [&](int64_t begin, int64_t end) {
      std::fill(x + begin * s.inner, x + end * s.inner, T{0});
    });
  }
  CopyStrided<T>({s.outer, count, s.size, s.inner}, y,
                 {count * window, window, 1, s.size}, x,
                 {s.n * s.inner, s.step * s.inner, s.inner, 1});
}

}  // namespace

template <class T>
void Fold(const Windows& s, const T* y, T* x) {
  constexpr int64_t kFoldedNumbers = 2048;
  if (s.outer * s.inner == 0) return;
  if (s.size <= s.step) return Unwindow(s, y, x);
  // What one chunk makes of an axis: segments, or single steps.
  const bool segments = s.inner == 1;
  const int64_t parts = segments ? CeilDiv(s.n, s.step) : s.n;
  const int64_t grain = GrainOf(s.outer * parts, segments ? s.size : s.inner);
  ParallelFor(s.outer * parts, grain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end;) {
      const int64_t o = at / parts, first = at % parts;
      const int64_t stop = std::min(parts, first + end - at);
      const T* const windows = y + o * s.count() * s.inner * s.size;
      T* const out = x + o * s.n * s.inner;
      if (segments) {
        // Some at a time, which stay in the first cache.
        const int64_t some = CeilDiv(kFoldedNumbers, s.size);
        for (int64_t from = first; from < stop; from += some) {
          FoldSegments(s, from, std::min(stop, from + some), windows, out);
        }
      } else {
        FoldWindows(s, first, stop, windows, out);
      }
      at += stop - first;
    }
  });
}

template <class T>
void Steps(int64_t n, int64_t first, double origin, double step, T* y) {
  ParallelFor(n, GrainOf(n, 1), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      y[i] = static_cast<T>(
          std::fma(static_cast<double>(first + i), step, origin));
    }
  });
}

template void Pad(Dims, Dims, Dims, float, const float*, float*);
template void Triangle(bool, int64_t, int64_t, int64_t, int64_t, const float*,
                       float*);
template void Pad(Dims, Dims, Dims, double, const double*, double*);
template void Triangle(bool, int64_t, int64_t, int64_t, int64_t, const double*,
                       double*);
template void Pad(Dims, Dims, Dims, int32_t, const int32_t*, int32_t*);
template void Triangle(bool, int64_t, int64_t, int64_t, int64_t, const int32_t*,
                       int32_t*);
template void Pad(Dims, Dims, Dims, int64_t, const int64_t*, int64_t*);
template void Triangle(bool, int64_t, int64_t, int64_t, int64_t, const int64_t*,
                       int64_t*);
template void Pad(Dims, Dims, Dims, bool, const bool*, bool*);
template void Triangle(bool, int64_t, int64_t, int64_t, int64_t, const bool*,
                       bool*);
template void Fold(const Windows&, const float*, float*);
template void Fold(const Windows&, const double*, double*);

template void Steps(int64_t, int64_t, double, double, float*);
template void Steps(int64_t, int64_t, double, double, double*);
template void Steps(int64_t, int64_t, double, double, int32_t*);
template void Steps(int64_t, int64_t, double, double, int64_t*);
template void Steps(int64_t, int64_t, double, double, bool*);

}  // namespace wengert::kernels
