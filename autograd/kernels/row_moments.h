// What the norms of rows share. For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_ROW_MOMENTS_H_
#define WENGERT_AUTOGRAD_KERNELS_ROW_MOMENTS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/base/attributes.h"
#include "autograd/kernels/gemm_tile.h"
#include "autograd/kernels/row_sums.h"
#include "autograd/kernels/vecmath.h"

namespace wengert::kernels {

// What the rows of a group of a norm have at most: they stay in the
// first-level cache.
inline constexpr int64_t kNormBytes = 1 << 15;

// Sums of the rows that RowMoments takes, a lane each.
template <class T>
struct RowResiduals {
  gemm::Vector<T> rough = {};    // nearly the mean
  gemm::Vector<T> rest = {};     // the sum of x - rough
  gemm::Vector<T> squares = {};  // the sum of (x - rough)²
};

// Rows so narrow that it costs less to stand them side by side, one in each
// lane.
inline constexpr int kNarrowRow = 16;

template <class T>
RowResiduals<T> NarrowResiduals(int rows, int64_t width, bool centred,
                                const T* x) {
  constexpr int kWidth = gemm::kWidth<T>;
  T columns[kNarrowRow][kWidth];
  gemm::Pack(true, width, rows, x, width, int64_t{kWidth}, columns[0]);
  RowResiduals<T> sums;
  if (centred) {
    for (int j = 0; j < width; ++j) sums.rough += gemm::Load(columns[j]);
    sums.rough /= static_cast<T>(width);
  }
  for (int j = 0; j < width; ++j) {
    const auto v = gemm::Load(columns[j]) - sums.rough;
    sums.rest += v;
    sums.squares = gemm::MultiplyAdd<T>(v, v, sums.squares);
  }
  return sums;
}

template <class T>
RowResiduals<T> WideResiduals(int rows, int64_t width, bool centred,
                              const T* x) {
  using Vector = gemm::Vector<T>;
  const auto add_squares = [=](int r, auto place, Vector* part)
                               ABSL_ATTRIBUTE_ALWAYS_INLINE {
                                 const Vector v = place.Load(x + r * width);
                                 part[0] = gemm::MultiplyAdd<T>(v, v, part[0]);
                               };
  if (!centred) return {.squares = RowSums<T, 1>(rows, width, add_squares)[0]};
  const auto add = [=](int r, auto place, Vector* part)
                       ABSL_ATTRIBUTE_ALWAYS_INLINE {
                         part[0] += place.Load(x + r * width);
                       };
  const Vector rough =
      RowSums<T, 1>(rows, width, add)[0] / static_cast<T>(width);
  T means[gemm::kWidth<T>];
  gemm::Store(means, rough);
  const auto add_residuals = [=, center = &means[0]](
                                 int r, auto place,
                                 Vector* part) ABSL_ATTRIBUTE_ALWAYS_INLINE {
    const Vector v = place.OrZero(place.Load(x + r * width) - center[r]);
    part[0] += v;
    part[1] = gemm::MultiplyAdd<T>(v, v, part[1]);
  };
  const auto [rest, squares] = RowSums<T, 2>(rows, width, add_residuals);
  return {rough, rest, squares};
}

// The means and 1 / sqrt(variance + eps) of up to a vector's lanes of rows, x
// [rows, width]. With `mean` null rows are not centred: 0 stands for their
// means.
template <class T>
void RowMoments(int rows, int64_t width, T eps, const T* x, T* mean, T* rstd) {
  const T n = static_cast<T>(width);
  const bool centred = mean != nullptr;
  const auto [rough, rest, squares] =
      (width <= kNarrowRow ? NarrowResiduals<T> : WideResiduals<T>)(rows, width,
                                                                    centred, x);
  T lanes[gemm::kWidth<T>];
  gemm::Vector<T> variance = squares / n;
  if (centred) {
    // What the rounding of `rough` left, a few units in its last place.
    const gemm::Vector<T> correction = rest / n;
    gemm::Store(lanes, rough + correction);
    std::copy_n(lanes, rows, mean);
    variance -= correction * correction;
  }
  gemm::Store(lanes, variance);
  for (T& v : lanes) v = 1 / std::sqrt(Select(v < 0, T(0), v) + eps);
  std::copy_n(lanes, rows, rstd);
}

// What is `offset` behind p, if p is not null.
template <class T>
T* At(T* p, int64_t offset) {
  return p != nullptr ? p + offset : nullptr;
}

// y = (x - mean) rstd gain + bias of some rows; gain, bias [width], and any
// null parameter stands for its neutral element.
template <class T>
void Normalize(int rows, int64_t width, const T* x, const T* gain,
               const T* bias, const T* mean, const T* rstd, T* y) {
  ForEachFew(rows, [=](int r, auto few) ABSL_ATTRIBUTE_ALWAYS_INLINE {
    constexpr int kFew = decltype(few)::value;
    ForEachVector<T>(0, width, [=](auto place) ABSL_ATTRIBUTE_ALWAYS_INLINE {
      gemm::Vector<T> v[kFew];
#pragma GCC unroll 4
      for (int q = 0; q < kFew; ++q) {
        v[q] = place.Load(x + (r + q) * width);
        if (mean != nullptr) v[q] -= mean[r + q];
        v[q] *= rstd[r + q];
      }
      if (gain != nullptr) {
        const gemm::Vector<T> a = place.Load(gain);
        for (int q = 0; q < kFew; ++q) v[q] *= a;
      }
      if (bias != nullptr) {
        const gemm::Vector<T> b = place.Load(bias);
        for (int q = 0; q < kFew; ++q) v[q] += b;
      }
#pragma GCC unroll 4
      for (int q = 0; q < kFew; ++q) {
        // The rows that come next, to the second level: the first is full.
        __builtin_prefetch(x + (rows + r + q) * width + place.j, 0, 2);
        place.Store(y + (r + q) * width, v[q]);
      }
    });
  });
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_ROW_MOMENTS_H_
