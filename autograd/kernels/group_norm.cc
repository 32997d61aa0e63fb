#include "autograd/kernels/group_norm.h"

#include <algorithm>

#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/gemm_tile.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/row_moments.h"
#include "autograd/kernels/scratch.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

// Channels of up to this many places are summed side by side, one in each lane
// of a vector: a sum of its own costs more than the channel.
constexpr int64_t kNarrow = 128;

// sum[c] and sum_h[c] = the sums of dy and of dy h over the n <= kNarrow places
// of the channels begin <= c < end, of which `members` form a group.
template <class T>
void NarrowSums(int64_t begin, int64_t end, int64_t n, int64_t members,
                const T* x, const T* mean, const T* rstd, const T* dy, T* sum,
                T* sum_h) {
  using gemm::Load;
  constexpr int kLanes = gemm::kWidth<T>;
  T xs[kNarrow][kLanes], dys[kNarrow][kLanes];
  T center[kLanes] = {}, scale[kLanes] = {};
  for (int64_t c = begin; c < end; c += kLanes) {
    const int lanes = static_cast<int>(std::min<int64_t>(kLanes, end - c));
    gemm::Pack(true, n, lanes, x + c * n, n, int64_t{kLanes}, xs[0]);
    gemm::Pack(true, n, lanes, dy + c * n, n, int64_t{kLanes}, dys[0]);
    for (int l = 0; l < lanes; ++l) {
      center[l] = mean[(c + l) / members];
      scale[l] = rstd[(c + l) / members];
    }
    gemm::Vector<T> of_dy = {}, of_dyh = {};
    for (int64_t j = 0; j < n; ++j) {
      const gemm::Vector<T> d = Load(dys[j]);
      of_dy += d;
      of_dyh += d * ((Load(xs[j]) - Load(center)) * Load(scale));
    }
    gemm::StoreFirst(sum + c, of_dy, lanes);
    gemm::StoreFirst(sum_h + c, of_dyh, lanes);
  }
}

}  // namespace

template <class T>
void GroupNorm(const GroupNormSizes& sizes, T eps, const T* x, const T* gain,
               const T* bias, T* y, T* mean, T* rstd) {
  const auto [batch, channels, places, groups] = sizes;
  const int64_t n_rows = batch * groups, members = channels / groups;
  const int64_t n = places, width = members * n, n_groups = groups;
  ParallelFor(n_rows, GrainOf(n_rows, width), [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      RowMoments(width, eps, x + r * width, mean + r, rstd + r);
      const T center = mean[r], scale = rstd[r];
      for (int64_t m = 0; m < members; ++m) {
        const int64_t c = r % n_groups * members + m;
        const T a = gain != nullptr ? gain[c] : 1;
        const T b = bias != nullptr ? bias[c] : 0;
        const T* from = x + r * width + m * n;
        T* const to = y + r * width + m * n;
        if (n <= gemm::kWidth<T>) {  // one vector
          const int lanes = static_cast<int>(n);
          const gemm::Vector<T> h =
              (gemm::LoadFirst(from, lanes) - center) * scale;
          gemm::StoreFirst(to, h * a + b, lanes);
          continue;
        }
        const auto value = [=](int64_t j) {
          return (from[j] - center) * scale * a + b;
        };
        WriteRow(n, false, value, to);
      }
    }
  });
}

template <class T>
void GroupNormGrad(const GroupNormSizes& sizes, const T* x, const T* gain,
                   const T* mean, const T* rstd, const T* dy,
                   bool accumulate_dx, T* dx, bool accumulate_dgain, T* dgain,
                   bool accumulate_dbias, T* dbias) {
  const auto [batch, channels, places, groups] = sizes;
  const int64_t n_rows = batch * groups, members = channels / groups;
  const int64_t n = places, width = members * n, n_groups = groups;
  // The sums of dy and of dy h over the places of each channel, from which come
  // the means over a group and the sums over the batch.
  const Scratch<T> of_dy(batch * channels), of_dyh(batch * channels);
  T *const sums = of_dy.data(), *const sums_h = of_dyh.data();
  ParallelFor(n_rows, GrainOf(n_rows, width), [=](int64_t begin, int64_t end) {
    if (n <= kNarrow) {
      NarrowSums(begin * members, end * members, n, members, x, mean, rstd, dy,
                 sums, sums_h);
    }
    for (int64_t r = begin; r < end; ++r) {
      const T center = mean[r], scale = rstd[r];
      T *const sum = sums + r * members, *const sum_h = sums_h + r * members;
      const T* gains =
          gain != nullptr ? gain + r % n_groups * members : nullptr;
      for (int64_t m = 0; n > kNarrow && m < members; ++m) {
        const T *from = x + r * width + m * n, *d = dy + r * width + m * n;
        sum[m] = BlockedSum<T>(n, [=](int64_t j) { return d[j]; });
        sum_h[m] = BlockedSum<T>(
            n, [=](int64_t j) { return d[j] * ((from[j] - center) * scale); });
      }
      if (dx == nullptr) continue;
      const auto mean_of = [=](const T* sum) {
        return BlockedSum<T>(members,
                             [=](int64_t m) {
                               return gains != nullptr ? sum[m] * gains[m]
                                                       : sum[m];
                             }) /
               static_cast<T>(width);
      };
      const T mean_g = mean_of(sum), mean_gh = mean_of(sum_h);
      for (int64_t m = 0; m < members; ++m) {
        const T *from = x + r * width + m * n, *d = dy + r * width + m * n;
        const T a = gains != nullptr ? gains[m] : 1;
        T* const to = dx + r * width + m * n;
        if (n <= gemm::kWidth<T>) {  // one vector
          const int lanes = static_cast<int>(n);
          const gemm::Vector<T> h =
              (gemm::LoadFirst(from, lanes) - center) * scale;
          gemm::Vector<T> v =
              scale * (gemm::LoadFirst(d, lanes) * a - mean_g - h * mean_gh);
          if (accumulate_dx) v += gemm::LoadFirst(to, lanes);
          gemm::StoreFirst(to, v, lanes);
          continue;
        }
        const auto value = [=](int64_t j) {
          const T h = (from[j] - center) * scale;
          return scale * (d[j] * a - mean_g - h * mean_gh);
        };
        WriteRow(n, accumulate_dx, value, to);
      }
    }
  });
  const auto over_batch = [batch = batch, channels = channels](
                              const T* parts, bool accumulate, T* sum) {
    if (sum == nullptr) return;
    T totals[kSumColumns];
    for (int64_t c = 0; c < channels; c += kSumColumns) {
      const int64_t columns = std::min(kSumColumns, channels - c);
      const auto term = [=](int64_t b, int64_t j) {
        return parts[b * channels + c + j];
      };
      BlockedRowSum(0, batch, columns, term, totals);
      WriteRow(
          columns, accumulate, [&](int64_t j) { return totals[j]; }, sum + c);
    }
  };
  over_batch(sums_h, accumulate_dgain, dgain);
  over_batch(sums, accumulate_dbias, dbias);
}

template void GroupNorm(const GroupNormSizes&, float, const float*,
                        const float*, const float*, float*, float*, float*);
template void GroupNorm(const GroupNormSizes&, double, const double*,
                        const double*, const double*, double*, double*,
                        double*);
template void GroupNormGrad(const GroupNormSizes&, const float*, const float*,
                            const float*, const float*, const float*, bool,
                            float*, bool, float*, bool, float*);
template void GroupNormGrad(const GroupNormSizes&, const double*, const double*,
                            const double*, const double*, const double*, bool,
                            double*, bool, double*, bool, double*);

}  // namespace wengert::kernels
