#include "autograd/kernels/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "absl/base/attributes.h"
#include "autograd/kernels/gemm_tile.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/row_moments.h"
#include "autograd/kernels/scratch.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

// Here and below `mean` is null where rows are not centred: 0 stands for it.

template <class T>
using Lanes = T[gemm::kWidth<T>];

// A row's inputs of the gradient in one vector.
template <class T>
struct GradTerms {
  gemm::Vector<T> d, h, g;
};
template <class T, class Place>
GradTerms<T> GradTermsAt(Place place, const T* x, const T* gain, T center,
                         T scale, const T* dy) {
  const gemm::Vector<T> d = place.Load(dy);
  const gemm::Vector<T> h = (place.Load(x) - center) * scale;
  return {d, h, gain != nullptr ? d * place.Load(gain) : d};
}

// dx of up to a vector's lanes of rows, unless it is null; their part of the
// sums over rows is added to dgain and dbias, unless those are null.
template <class T>
void RowsGrad(int rows, int64_t width, const T* x, const T* gain, const T* mean,
              const T* rstd, const T* dy, bool accumulate_dx, T* dx, T* dgain,
              T* dbias) {
  const T n = static_cast<T>(width);
  Lanes<T> centers = {}, mean_g = {}, mean_gh = {};
  if (mean != nullptr) std::copy_n(mean, rows, centers);
  const auto terms = [=, center = &centers[0]](
                         int r, auto place) ABSL_ATTRIBUTE_ALWAYS_INLINE {
    return GradTermsAt<T>(place, x + r * width, gain, center[r], rstd[r],
                          dy + r * width);
  };
  if (dx != nullptr) {
    const auto add = [=](int r, auto place, gemm::Vector<T>* part)
                         ABSL_ATTRIBUTE_ALWAYS_INLINE {
                           const auto [d, h, g] = terms(r, place);
                           part[0] += g;
                           part[1] = gemm::MultiplyAdd<T>(g, h, part[1]);
                         };
    const auto [sum_g, sum_gh] = RowSums<T, 2>(rows, width, add);
    if (mean != nullptr) gemm::Store(mean_g, sum_g / n);
    gemm::Store(mean_gh, sum_gh / n);
  }
  ForEachFew(rows, [&](int first, auto few) ABSL_ATTRIBUTE_ALWAYS_INLINE {
    constexpr int kFew = decltype(few)::value;
    ForEachVector<T>(0, width, [&](auto place) ABSL_ATTRIBUTE_ALWAYS_INLINE {
      gemm::Vector<T> sum_gain = {}, sum_bias = {}, v[kFew];
      if (dgain != nullptr) sum_gain = place.Load(dgain);
      if (dbias != nullptr) sum_bias = place.Load(dbias);
#pragma GCC unroll 4
      for (int q = 0; q < kFew; ++q) {
        const int r = first + q;
        const auto [d, h, g] = terms(r, place);
        sum_gain = gemm::MultiplyAdd<T>(d, h, sum_gain);
        sum_bias += d;
        v[q] = rstd[r] * (g - mean_g[r] - h * mean_gh[r]);
      }
      if (dgain != nullptr) place.Store(dgain, sum_gain);
      if (dbias != nullptr) place.Store(dbias, sum_bias);
      if (dx == nullptr) return;
#pragma GCC unroll 4
      for (int q = 0; q < kFew; ++q) {
        T* const to = dx + (first + q) * width;
        // Of the next rows, to the second level; x alone comes soon enough.
        __builtin_prefetch(dy + (first + q + rows) * width + place.j, 0, 2);
        if (accumulate_dx) v[q] += place.Load(to);
        place.Store(to, v[q]);
      }
    });
  });
}

}  // namespace

template <class T>
void LayerNorm(int64_t rows, int64_t width, T eps, const T* x, const T* gain,
               const T* bias, T* y, T* mean, T* rstd) {
  ParallelFor(rows, GrainOf(rows, width), [=](int64_t begin, int64_t end) {
    ForEachGroup<T>(begin, end, width, kNormBytes, [=](int64_t r, int n) {
      RowMoments(n, width, eps, x + r * width, At(mean, r), rstd + r);
      Normalize(n, width, x + r * width, gain, bias, At(mean, r), rstd + r,
                y + r * width);
    });
  });
}

template <class T>
void LayerNormGrad(int64_t rows, int64_t width, const T* x, const T* gain,
                   const T* mean, const T* rstd, const T* dy,
                   bool accumulate_dx, T* dx, bool accumulate_dgain, T* dgain,
                   bool accumulate_dbias, T* dbias) {
  // As many rows in a chunk as there are chunks: the shortest chains of
  // roundings.
  const int64_t chunk = std::max<int64_t>(
      16, static_cast<int64_t>(std::sqrt(static_cast<double>(rows))));
  const int64_t chunks = CeilDiv(rows, chunk);
  const Scratch<T> dgains(dgain != nullptr ? chunks * width : 0);
  const Scratch<T> dbiases(dbias != nullptr ? chunks * width : 0);
  const auto part = [&](const T* whole, const Scratch<T>& parts, int64_t i) {
    return whole != nullptr ? parts.data() + i * width : nullptr;
  };
  ParallelFor(
      chunks, GrainOf(chunks, chunk * width), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          T *const of_gain = part(dgain, dgains, i), *const of_bias = part(
                                                         dbias, dbiases, i);
          if (of_gain != nullptr) std::fill_n(of_gain, width, T(0));
          if (of_bias != nullptr) std::fill_n(of_bias, width, T(0));
          ForEachGroup<T>(i * chunk, std::min(rows, (i + 1) * chunk), width,
                          kNormBytes, [&](int64_t r, int n) {
                            RowsGrad(n, width, x + r * width, gain, At(mean, r),
                                     rstd + r, dy + r * width, accumulate_dx,
                                     At(dx, r * width), of_gain, of_bias);
                          });
        }
      });
  const auto add_parts = [&](const Scratch<T>& parts, bool accumulate, T* sum) {
    if (sum == nullptr) return;
    ParallelFor(width, GrainOf(width, chunks), [&](int64_t begin, int64_t end) {
      if (!accumulate) std::fill(sum + begin, sum + end, T(0));
      for (int64_t i = 0; i < chunks; ++i) {
        const T* from = parts.data() + i * width;
        for (int64_t j = begin; j < end; ++j) sum[j] += from[j];
      }
    });
  };
  add_parts(dgains, accumulate_dgain, dgain);
  add_parts(dbiases, accumulate_dbias, dbias);
}

template void LayerNorm(int64_t, int64_t, float, const float*, const float*,
                        const float*, float*, float*, float*);
template void LayerNormGrad(int64_t, int64_t, const float*, const float*,
                            const float*, const float*, const float*, bool,
                            float*, bool, float*, bool, float*);
template void LayerNorm(int64_t, int64_t, double, const double*, const double*,
                        const double*, double*, double*, double*);
template void LayerNormGrad(int64_t, int64_t, const double*, const double*,
                            const double*, const double*, const double*, bool,
                            double*, bool, double*, bool, double*);

}  // namespace wengert::kernels
