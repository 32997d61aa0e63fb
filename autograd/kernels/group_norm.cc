#include "autograd/kernels/group_norm.h"

#include <algorithm>

#include "absl/base/attributes.h"
#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/gemm_tile.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/row_moments.h"
#include "autograd/kernels/row_sums.h"
#include "autograd/kernels/scratch.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

template <class T>
using Lanes = T[gemm::kWidth<T>];

// Channels of up to this many places get their parameters as rows as long as
// their groups: a loop of its own costs more than such a channel.
constexpr int64_t kFewPlaces = 64;

// to[r * n + j] = v[r] for r < rows and j < n; any numbers for a vector behind.
template <class T>
void SpreadRows(int64_t rows, int64_t n, const T* v, T* to) {
  for (int64_t r = 0; r < rows; ++r) {
    const gemm::Vector<T> same = v[r] - gemm::Vector<T>{};
    for (int64_t j = 0; j < n; j += gemm::kWidth<T>) {
      gemm::Store(to + r * n + j, same);
    }
  }
}

// A parameter [channels] as [channels, places].
template <class T>
class Spread {
 public:
  Spread(const GroupNormSizes& s, const T* p)
      : row_(s.places == 1 ? p : nullptr),
        room_(p != nullptr && row_ == nullptr
                  ? s.channels * s.places + gemm::kWidth<T>
                  : 0) {
    if (p == nullptr || row_ != nullptr) return;
    SpreadRows(s.channels, s.places, p, room_.data());
    row_ = room_.data();
  }
  // Null where the parameter is.
  const T* row() const { return row_; }

 private:
  const T* row_;
  Scratch<T> room_;
};

// sum[c] and sum_h[c] = the sums of dy and of dy h over the n places of some
// channels. What each has as mean and rstd may be read for a vector beyond.
template <class T>
void ChannelSums(int64_t channels, int64_t n, const T* x, const T* mean,
                 const T* rstd, const T* dy, T* sum, T* sum_h) {
  constexpr int kLanes = gemm::kWidth<T>;
  using Vector = gemm::Vector<T>;
  for (int64_t c = 0; c < channels; c += kLanes) {
    const int lanes = static_cast<int>(std::min<int64_t>(kLanes, channels - c));
    const T *const from = x + c * n, *const d = dy + c * n;
    const T *const center = mean + c, *const scale = rstd + c;
    Vector of_dy = {}, of_dyh = {};
    if (n == 1) {
      of_dy = gemm::LoadFirst(d, lanes);
      of_dyh = of_dy * ((gemm::LoadFirst(from, lanes) - gemm::Load(center)) *
                        gemm::Load(scale));
    } else if (n <= kNarrowRow) {  // side by side
      T xs[kNarrowRow][kLanes], dys[kNarrowRow][kLanes];
      gemm::Pack(true, n, lanes, from, n, int64_t{kLanes}, xs[0]);
      gemm::Pack(true, n, lanes, d, n, int64_t{kLanes}, dys[0]);
      for (int64_t j = 0; j < n; ++j) {
        const Vector v = gemm::Load(dys[j]);
        const Vector h =
            (gemm::Load(xs[j]) - gemm::Load(center)) * gemm::Load(scale);
        of_dy += v;
        of_dyh = gemm::MultiplyAdd<T>(v, h, of_dyh);
      }
    } else {
      const auto add = [=](int l, auto place,
                           Vector* part) ABSL_ATTRIBUTE_ALWAYS_INLINE {
        const Vector v = place.Load(d + l * n);
        const Vector h = (place.Load(from + l * n) - center[l]) * scale[l];
        part[0] += v;
        part[1] = gemm::MultiplyAdd<T>(v, h, part[1]);
      };
      const auto sums = RowSums<T, 2>(lanes, n, add);
      of_dy = sums[0];
      of_dyh = sums[1];
    }
    gemm::StoreFirst(sum + c, of_dy, lanes);
    gemm::StoreFirst(sum_h + c, of_dyh, lanes);
  }
}

// What dx of a group or a channel is made of beside its arrays.
template <class T>
struct GradNumbers {
  T mean, rstd, mean_g, mean_gh;
};

// dx (=|+=) rstd (g - mean_g - h mean_gh) of n elements; gain(place) is a
// number or a vector.
template <class T, class Gain>
void WriteGrad(int64_t n, const GradNumbers<T>& k, const T* x, const T* dy,
               const Gain& gain, bool accumulate, T* dx) {
  ForEachVector<T>(0, n, [&](auto place) ABSL_ATTRIBUTE_ALWAYS_INLINE {
    const gemm::Vector<T> h = (place.Load(x) - k.mean) * k.rstd;
    const gemm::Vector<T> g = place.Load(dy) * gain(place);
    gemm::Vector<T> v = k.rstd * (g - k.mean_g - h * k.mean_gh);
    if (accumulate) v += place.Load(dx);
    place.Store(dx, v);
  });
}

}  // namespace

template <class T>
void GroupNorm(const GroupNormSizes& sizes, T eps, const T* x, const T* gain,
               const T* bias, T* y, T* mean, T* rstd) {
  const int64_t n = sizes.places, groups = sizes.groups;
  const int64_t n_rows = sizes.batch * groups;
  const int64_t members = sizes.channels / groups, width = members * n;
  const bool few = n <= kFewPlaces;
  const Spread<T> gains(sizes, few ? gain : nullptr);
  const Spread<T> biases(sizes, few ? bias : nullptr);
  // c is the first channel of row r.
  const auto write = [&](int64_t r, int64_t c) ABSL_ATTRIBUTE_ALWAYS_INLINE {
    const T* from = x + r * width;
    T* to = y + r * width;
    const T center = mean[r], scale = rstd[r];
    if (few) {
      const T *const a = At(gains.row(), c * n), *const b =
                                                     At(biases.row(), c * n);
      ForEachVector<T>(0, width, [=](auto place) ABSL_ATTRIBUTE_ALWAYS_INLINE {
        gemm::Vector<T> v = (place.Load(from) - center) * scale;
        if (a != nullptr) v *= place.Load(a);
        if (b != nullptr) v += place.Load(b);
        place.Store(to, v);
      });
      return;
    }
    for (int64_t m = 0; m < members; ++m) {
      const T a = gain != nullptr ? gain[c + m] : 1;
      const T b = bias != nullptr ? bias[c + m] : 0;
      ForEachVector<T>(
          m * n, (m + 1) * n, [=](auto place) ABSL_ATTRIBUTE_ALWAYS_INLINE {
            place.Store(to, (place.Load(from) - center) * scale * a + b);
          });
    }
  };
  ParallelFor(n_rows, GrainOf(n_rows, width), [&](int64_t begin, int64_t end) {
    ForEachGroup<T>(begin, end, width, kNormBytes,
                    [&](int64_t first, int count) {
                      RowMoments(count, width, eps, x + first * width,
                                 mean + first, rstd + first);
                      int64_t c = first % groups * members;
                      for (int64_t r = first; r < first + count; ++r) {
                        write(r, c);
                        c = c + members == sizes.channels ? 0 : c + members;
                      }
                    });
  });
}

template <class T>
void GroupNormGrad(const GroupNormSizes& sizes, const T* x, const T* gain,
                   const T* mean, const T* rstd, const T* dy,
                   bool accumulate_dx, T* dx, bool accumulate_dgain, T* dgain,
                   bool accumulate_dbias, T* dbias) {
  const int64_t batch = sizes.batch, channels = sizes.channels;
  const int64_t n = sizes.places, groups = sizes.groups;
  const int64_t n_rows = channels == 0 ? 0 : batch * groups;
  const int64_t members = channels / groups, width = members * n;
  const bool few = n <= kFewPlaces;
  const Spread<T> gains(sizes, few ? gain : nullptr);
  // The sums of dy and of dy h over the places of each channel, from which come
  // the means over a group and the sums over the batch.
  const Scratch<T> of_dy(batch * channels), of_dyh(batch * channels);
  T *const sums = of_dy.data(), *const sums_h = of_dyh.data();
  // c is the first channel of row r.
  const auto write = [&](int64_t r, int64_t c, T mean_g,
                         T mean_gh) ABSL_ATTRIBUTE_ALWAYS_INLINE {
    const T *from = x + r * width, *d = dy + r * width;
    T* const to = dx + r * width;
    const GradNumbers<T> k = {mean[r], rstd[r], mean_g, mean_gh};
    if (few && gain != nullptr) {
      const T* row = gains.row() + c * n;
      WriteGrad<T>(
          width, k, from, d, [=](auto place) { return place.Load(row); },
          accumulate_dx, to);
      return;
    }
    // Without a gain the group is like one channel.
    const int64_t parts = gain != nullptr ? members : 1, size = width / parts;
    for (int64_t m = 0; m < parts; ++m) {
      const T a = gain != nullptr ? gain[c + m] : 1;
      WriteGrad<T>(
          size, k, from + m * size, d + m * size, [=](auto) { return a; },
          accumulate_dx, to + m * size);
    }
  };
  ParallelFor(n_rows, GrainOf(n_rows, width), [&](int64_t begin, int64_t end) {
    const int64_t most = gemm::kWidth<T> * (members + 1);
    const Scratch<T> centers(most), scales(most);
    ForEachGroup<T>(
        begin, end, width, kNormBytes, [&](int64_t first, int count) {
          const int64_t c = first * members;
          SpreadRows(count, members, mean + first, centers.data());
          SpreadRows(count, members, rstd + first, scales.data());
          ChannelSums(count * members, n, x + c * n, centers.data(),
                      scales.data(), dy + c * n, sums + c, sums_h + c);
          if (dx == nullptr) return;
          using Vector = gemm::Vector<T>;
          int64_t starts[gemm::kWidth<T>];  // the first channels of the rows
          int64_t start = c % channels;
          for (int l = 0; l < count; ++l) {
            starts[l] = start;
            start = start + members == channels ? 0 : start + members;
          }
          const auto add =
              [=, starts = &starts[0]](int l, auto place, Vector* part)
                  ABSL_ATTRIBUTE_ALWAYS_INLINE {
                    const int64_t r = first + l;
                    Vector g = place.Load(sums + r * members);
                    Vector gh = place.Load(sums_h + r * members);
                    if (gain != nullptr) {
                      const Vector a = place.Load(gain + starts[l]);
                      g *= a;
                      gh *= a;
                    }
                    part[0] += g;
                    part[1] += gh;
                  };
          const auto [sum_g, sum_gh] = RowSums<T, 2>(count, members, add);
          Lanes<T> mean_g, mean_gh;
          gemm::Store(mean_g, sum_g / static_cast<T>(width));
          gemm::Store(mean_gh, sum_gh / static_cast<T>(width));
          for (int l = 0; l < count; ++l) {
            write(first + l, starts[l], mean_g[l], mean_gh[l]);
          }
        });
  });
  const auto over_batch = [=](const T* parts, bool accumulate, T* sum) {
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
