#include "autograd/kernels/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

// fn(true or false as a constant).
template <class Fn>
void WithConstant(bool value, const Fn& fn) {
  value ? fn(std::true_type()) : fn(std::false_type());
}

// The gradient of some rows, and their part of the sums over rows.
template <bool kGain, class T>
void RowsGrad(int64_t begin, int64_t end, int64_t width, const T* x,
              const T* gain, const T* mean, const T* rstd, const T* dy,
              bool accumulate_dx, T* dx, T* dgain, T* dbias) {
  if (dgain != nullptr) std::fill_n(dgain, width, T(0));
  if (dbias != nullptr) std::fill_n(dbias, width, T(0));
  for (int64_t r = begin; r < end; ++r) {
    const T *from = x + r * width, *d = dy + r * width;
    const T center = mean[r], scale = rstd[r];
    const auto h = [=](int64_t j) { return (from[j] - center) * scale; };
    const auto g = [=](int64_t j) { return kGain ? d[j] * gain[j] : d[j]; };
    if (dgain != nullptr) {
      for (int64_t j = 0; j < width; ++j) dgain[j] += d[j] * h(j);
    }
    if (dbias != nullptr) {
      for (int64_t j = 0; j < width; ++j) dbias[j] += d[j];
    }
    if (dx == nullptr) continue;
    const T mean_g = BlockedSum<T>(width, g) / static_cast<T>(width);
    const T mean_gh =
        BlockedSum<T>(width, [=](int64_t j) { return g(j) * h(j); }) /
        static_cast<T>(width);
    const auto gradient = [=](int64_t j) {
      return scale * (g(j) - mean_g - h(j) * mean_gh);
    };
    WriteRow(width, accumulate_dx, gradient, dx + r * width);
  }
}

}  // namespace

template <class T>
void LayerNorm(int64_t rows, int64_t width, T eps, const T* x, const T* gain,
               const T* bias, T* y, T* mean, T* rstd) {
  const auto run = [=](auto has_gain, auto has_bias) {
    ParallelFor(rows, GrainOf(width), [=](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* from = x + r * width;
        T* to = y + r * width;
        const T n = static_cast<T>(width);
        const T rough =
            BlockedSum<T>(width, [=](int64_t j) { return from[j]; }) / n;
        const T center = rough + BlockedSum<T>(width, [=](int64_t j) {
                                   return from[j] - rough;
                                 }) / n;
        const T variance = BlockedSum<T>(width,
                                         [=](int64_t j) {
                                           const T residual = from[j] - center;
                                           return residual * residual;
                                         }) /
                           n;
        const T scale = 1 / std::sqrt(variance + eps);
        mean[r] = center;
        rstd[r] = scale;
        WENGERT_INDEPENDENT
        for (int64_t j = 0; j < width; ++j) {
          T v = (from[j] - center) * scale;
          if constexpr (has_gain) v *= gain[j];
          if constexpr (has_bias) v += bias[j];
          to[j] = v;
        }
      }
    });
  };
  WithConstant(gain != nullptr, [&](auto has_gain) {
    WithConstant(bias != nullptr,
                 [&](auto has_bias) { run(has_gain, has_bias); });
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
  ParallelFor(chunks, GrainOf(chunk * width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      WithConstant(gain != nullptr, [&](auto has_gain) {
        RowsGrad<has_gain>(i * chunk, std::min(rows, (i + 1) * chunk), width, x,
                           gain, mean, rstd, dy, accumulate_dx, dx,
                           part(dgain, dgains, i), part(dbias, dbiases, i));
      });
    }
  });
  const auto add_parts = [&](const Scratch<T>& parts, bool accumulate, T* sum) {
    if (sum == nullptr) return;
    ParallelFor(width, GrainOf(chunks), [&](int64_t begin, int64_t end) {
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
