#include "autograd/kernels/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/gemm_tile.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/row_moments.h"
#include "autograd/kernels/scratch.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

// fn(true or false as a constant).
template <class Fn>
void WithConstant(bool value, const Fn& fn) {
  value ? fn(std::true_type()) : fn(std::false_type());
}

// Rows up to this width are summed side by side, one in each lane of a vector:
// a sum of its own costs more than the row.
constexpr int64_t kNarrow = 128;
template <class T>
inline constexpr int kLanes = gemm::kWidth<T>;
template <class T>
using Lanes = T[kLanes<T>];

// Here and below `mean` is null where rows are not centred: 0 stands for it.

// RowMoments of up to kLanes narrow rows.
template <class T>
void LanesMoments(int rows, int64_t width, T eps, const T* x, T* mean,
                  T* rstd) {
  using gemm::Load;
  Lanes<T> columns[kNarrow], center = {}, scale;
  gemm::Pack(true, width, rows, x, width, int64_t{kLanes<T>}, columns[0]);
  const T n = static_cast<T>(width);
  gemm::Vector<T> sum = {}, rest = {}, squares = {};
  if (mean != nullptr) {
    for (int64_t j = 0; j < width; ++j) sum += Load(columns[j]);
    const gemm::Vector<T> rough = sum / n;
    for (int64_t j = 0; j < width; ++j) rest += Load(columns[j]) - rough;
    gemm::Store(center, rough + rest / n);
    std::copy_n(center, rows, mean);
  }
  for (int64_t j = 0; j < width; ++j) {
    const gemm::Vector<T> residual = Load(columns[j]) - Load(center);
    squares += residual * residual;
  }
  gemm::Store(scale, squares / n);
  for (T& v : scale) v = 1 / std::sqrt(v + eps);
  std::copy_n(scale, rows, rstd);
}

// What is `offset` behind p, if p is not null.
template <class T>
T* At(T* p, int64_t offset) {
  return p != nullptr ? p + offset : nullptr;
}

// The same of up to kLanes rows of any width.
template <class T>
void Moments(int rows, int64_t width, T eps, const T* x, T* mean, T* rstd) {
  if (width <= kNarrow) return LanesMoments(rows, width, eps, x, mean, rstd);
  for (int r = 0; r < rows; ++r) {
    RowMoments(width, eps, x + r * width, At(mean, r), rstd + r);
  }
}

// The means of g and of g h over a row, for up to kLanes rows; 0 instead of the
// first where rows are not centred.
template <bool kGain, class T>
void GradMeans(int rows, int64_t width, const T* x, const T* gain,
               const T* mean, const T* rstd, const T* dy, T* mean_g,
               T* mean_gh) {
  const T n = static_cast<T>(width);
  if (width > kNarrow) {
    for (int r = 0; r < rows; ++r) {
      const T *from = x + r * width, *d = dy + r * width;
      const T center = mean != nullptr ? mean[r] : 0, scale = rstd[r];
      const auto h = [=](int64_t j) { return (from[j] - center) * scale; };
      const auto g = [=](int64_t j) { return kGain ? d[j] * gain[j] : d[j]; };
      mean_g[r] = mean != nullptr ? BlockedSum<T>(width, g) / n : 0;
      mean_gh[r] =
          BlockedSum<T>(width, [=](int64_t j) { return g(j) * h(j); }) / n;
    }
    return;
  }
  using gemm::Load;
  Lanes<T> xs[kNarrow], dys[kNarrow], center = {}, scale = {};
  gemm::Pack(true, width, rows, x, width, int64_t{kLanes<T>}, xs[0]);
  gemm::Pack(true, width, rows, dy, width, int64_t{kLanes<T>}, dys[0]);
  if (mean != nullptr) std::copy_n(mean, rows, center);
  std::copy_n(rstd, rows, scale);
  gemm::Vector<T> sum_g = {}, sum_gh = {};
  for (int64_t j = 0; j < width; ++j) {
    gemm::Vector<T> g = Load(dys[j]);
    if (kGain) g *= gain[j];
    sum_g += g;
    sum_gh += g * ((Load(xs[j]) - Load(center)) * Load(scale));
  }
  gemm::Store(mean_g, mean != nullptr ? sum_g / n : gemm::Vector<T>{});
  gemm::Store(mean_gh, sum_gh / n);
}

// RowsGrad below for rows of at most one vector, whose sums stay in registers.
template <bool kGain, class T>
void VectorRowsGrad(int64_t begin, int64_t end, int width, const T* x,
                    const T* gain, const T* mean, const T* rstd, const T* dy,
                    bool accumulate_dx, T* dx, T* dgain, T* dbias) {
  using gemm::LoadFirst;
  using Row = gemm::Vector<T>;
  const Row weight = kGain ? LoadFirst(gain, width) : Row{};
  Row sum_gain = {}, sum_bias = {};
  Lanes<T> mean_g, mean_gh;
  for (int64_t r = begin; r < end; ++r) {
    const int lane = static_cast<int>((r - begin) % kLanes<T>);
    if (dx != nullptr && lane == 0) {
      GradMeans<kGain>(static_cast<int>(std::min<int64_t>(kLanes<T>, end - r)),
                       width, x + r * width, gain, At(mean, r), rstd + r,
                       dy + r * width, mean_g, mean_gh);
    }
    const Row d = LoadFirst(dy + r * width, width);
    const T center = mean != nullptr ? mean[r] : 0;
    const Row h = (LoadFirst(x + r * width, width) - center) * rstd[r];
    sum_gain += d * h;
    sum_bias += d;
    if (dx == nullptr) continue;
    const Row g = kGain ? d * weight : d;
    Row v = rstd[r] * (g - mean_g[lane] - h * mean_gh[lane]);
    if (accumulate_dx) v += LoadFirst(dx + r * width, width);
    gemm::StoreFirst(dx + r * width, v, width);
  }
  if (dgain != nullptr) gemm::StoreFirst(dgain, sum_gain, width);
  if (dbias != nullptr) gemm::StoreFirst(dbias, sum_bias, width);
}

// The gradient of some rows, and their part of the sums over rows.
template <bool kGain, class T>
void RowsGrad(int64_t begin, int64_t end, int64_t width, const T* x,
              const T* gain, const T* mean, const T* rstd, const T* dy,
              bool accumulate_dx, T* dx, T* dgain, T* dbias) {
  if (width <= kLanes<T>) {
    return VectorRowsGrad<kGain>(begin, end, static_cast<int>(width), x, gain,
                                 mean, rstd, dy, accumulate_dx, dx, dgain,
                                 dbias);
  }
  if (dgain != nullptr) std::fill_n(dgain, width, T(0));
  if (dbias != nullptr) std::fill_n(dbias, width, T(0));
  Lanes<T> mean_g, mean_gh;
  for (int64_t r = begin; r < end; ++r) {
    const int lane = static_cast<int>((r - begin) % kLanes<T>);
    if (dx != nullptr && lane == 0) {
      GradMeans<kGain>(static_cast<int>(std::min<int64_t>(kLanes<T>, end - r)),
                       width, x + r * width, gain, At(mean, r), rstd + r,
                       dy + r * width, mean_g, mean_gh);
    }
    const T *from = x + r * width, *d = dy + r * width;
    const T center = mean != nullptr ? mean[r] : 0, scale = rstd[r];
    const auto h = [=](int64_t j) { return (from[j] - center) * scale; };
    const auto g = [=](int64_t j) { return kGain ? d[j] * gain[j] : d[j]; };
    if (dgain != nullptr) {
      for (int64_t j = 0; j < width; ++j) dgain[j] += d[j] * h(j);
    }
    if (dbias != nullptr) {
      for (int64_t j = 0; j < width; ++j) dbias[j] += d[j];
    }
    if (dx == nullptr) continue;
    const T of_g = mean_g[lane], of_gh = mean_gh[lane];
    const auto gradient = [=](int64_t j) {
      return scale * (g(j) - of_g - h(j) * of_gh);
    };
    WriteRow(width, accumulate_dx, gradient, dx + r * width);
  }
}

}  // namespace

template <class T>
void LayerNorm(int64_t rows, int64_t width, T eps, const T* x, const T* gain,
               const T* bias, T* y, T* mean, T* rstd) {
  const auto run = [&](auto has_gain, auto has_bias) {
    ParallelFor(rows, GrainOf(rows, width), [=](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        if ((r - begin) % kLanes<T> == 0) {
          const int n = static_cast<int>(std::min<int64_t>(kLanes<T>, end - r));
          Moments(n, width, eps, x + r * width, At(mean, r), rstd + r);
        }
        const T* from = x + r * width;
        T* to = y + r * width;
        const T center = mean != nullptr ? mean[r] : 0, scale = rstd[r];
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
  ParallelFor(
      chunks, GrainOf(chunks, chunk * width), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          WithConstant(gain != nullptr, [&](auto has_gain) {
            RowsGrad<has_gain>(i * chunk, std::min(rows, (i + 1) * chunk),
                               width, x, gain, mean, rstd, dy, accumulate_dx,
                               dx, part(dgain, dgains, i),
                               part(dbias, dbiases, i));
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
