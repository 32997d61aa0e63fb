#include "autograd/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "absl/base/attributes.h"
#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/gemm_tile.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/row_sums.h"
#include "autograd/kernels/softmax_row.h"
#include "autograd/kernels/softmax_rows.h"
#include "autograd/kernels/vecmath.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

template <class T>
using Lanes = T[gemm::kWidth<T>];

constexpr int64_t kGroupBytes = 1 << 13;

bool AllIgnored(const int64_t* targets, int n, int64_t ignore_index) {
  return std::all_of(targets, targets + n,
                     [=](int64_t t) { return t == ignore_index; });
}

// The largest elements of some rows, a lane for each, and log sum exp(x - max)
// without the 1 of that element, so that the loss of a class that is nearly
// certain does not round to 0. Of a row of -inf alone the latter is 0, of one
// with a NaN or infinity NaN.
template <class T>
void LogSums(int rows, int64_t c, const T* x, T* max, T* log_sum) {
  using Vector = gemm::Vector<T>;
  RowMaxima(rows, c, x, max);
  const auto add = [=](int r, auto place,
                       Vector* part) ABSL_ATTRIBUTE_ALWAYS_INLINE {
    Prefetch(place, x + (rows + r) * c);
    const Vector v = place.Load(x + r * c), zero = {};
    const Vector most = max[r] - zero;
    const Vector others = v == most ? zero : ExpLanes<T>(v - most);
    part[0] += place.OrZero(others);
    part[1] += place.OrZero(v == most ? zero + 1 : zero);
  };
  const auto [others, ties] = RowSums<T, 2>(rows, c, add);
  Lanes<T> sums;
  gemm::Store(sums, others + (ties - 1));
  for (int r = 0; r < rows; ++r) {
    const T log = Select(max[r] == kInfinity<T>, T(NAN), Log1p(sums[r]));
    // Only where there is no NaN is the sum of a row of -inf a number.
    log_sum[r] = Select(max[r] == -kInfinity<T> && log == log, T(0), log);
  }
}

// Whether the target alone has a weight in each row.
template <class T>
bool OneClass(const ClassWeights<T>& all) {
  return all.targets != nullptr && all.smoothing == 0;
}

// fn(q), q(j) the weight of class j in row i.
template <class T, class Fn>
void WithWeightsOf(const ClassWeights<T>& all, int64_t i, const Fn& fn) {
  const T s = all.smoothing, uniform = s / static_cast<T>(all.c);
  const auto with_weight = [&](auto w) {
    if (all.targets != nullptr) {
      fn([=, t = all.targets[i]](int64_t j) {
        return w(j) * (Select<T>(j == t, 1 - s, 0) + uniform);
      });
    } else {
      fn([=, t = all.probabilities + i * all.c](int64_t j) {
        return w(j) * Fma(1 - s, t[j], uniform);
      });
    }
  };
  if (all.weight != nullptr) {
    with_weight([w = all.weight](int64_t j) { return w[j]; });
  } else {
    with_weight([](int64_t) { return T(1); });
  }
}

}  // namespace

template <class T>
void CrossEntropy(int64_t n, int64_t c, const T* logits, const int64_t* targets,
                  int64_t ignore_index, T smoothing, T* loss, T* log_sum) {
  const auto rows = [=](int64_t first, int count) {
    Lanes<T> max, log;
    if (!AllIgnored(targets + first, count, ignore_index)) {
      LogSums(count, c, logits + first * c, max, log);
    }
    for (int l = 0; l < count; ++l) {
      const int64_t i = first + l, t = targets[i];
      loss[i] = log_sum[i] = 0;
      if (t == ignore_index) continue;
      const T* const x = logits + i * c;
      const T most = max[l];
      log_sum[i] = log[l];
      if (most == -kInfinity<T> && log[l] == 0) {  // no class is possible
        loss[i] = kInfinity<T>;
        continue;
      }
      loss[i] = (1 - smoothing) * ((most - x[t]) + log[l]);
      if (smoothing != 0) {
        const T below =
            BlockedSum<T>(c, [=](int64_t j) { return most - x[j]; });
        loss[i] += smoothing * (below / static_cast<T>(c) + log[l]);
      }
    }
  };
  ParallelFor(n, GrainOf(n, c), [=](int64_t begin, int64_t end) {
    ForEachGroup<T>(begin, end, c, kGroupBytes, rows);
  });
}

template <class T>
void CrossEntropyGrad(int64_t n, int64_t c, const T* logits,
                      const int64_t* targets, int64_t ignore_index, T smoothing,
                      const T* log_sum, T scale, const T* dloss,
                      bool accumulate, T* dlogits) {
  const T uniform = smoothing / static_cast<T>(c);
  const auto rows = [=](int64_t first, int count) {
    using Vector = gemm::Vector<T>;
    Lanes<T> maxima, below = {}, g, at_target;
    RowMaxima(count, c, logits + first * c, maxima);
    for (int l = 0; l < count; ++l) {
      const int64_t i = first + l, t = targets[i];
      g[l] = dloss == nullptr ? scale : scale * dloss[i];
      if (t != ignore_index) {
        below[l] = (logits[i * c + t] - maxima[l]) - log_sum[i];
      }
    }
    for (int l = 0; l < count; ++l) {
      // p - 1 without cancellation.
      at_target[l] = g[l] * (Expm1(below[l]) + (smoothing - uniform));
    }
    for (int l = 0; l < count; ++l) {
      const int64_t i = first + l, t = targets[i];
      const T *const x = logits + i * c, max = maxima[l], log = log_sum[i];
      T* const dx = dlogits + i * c;
      if (t == ignore_index || (max == -kInfinity<T> && log == 0)) {
        if (!accumulate) std::fill_n(dx, c, T(0));
        continue;
      }
      const T target = accumulate ? dx[t] + at_target[l] : at_target[l];
      const T share = g[l];
      const auto value = [=](int, auto place) ABSL_ATTRIBUTE_ALWAYS_INLINE {
        Prefetch(place, x + count * c);
        const Vector p = ExpLanes<T>((place.Load(x) - max) - log);
        return share * (p - uniform);
      };
      WriteRows<T>(1, c, accumulate, value, dx);
      dx[t] = target;
    }
  };
  ParallelFor(n, GrainOf(n, c), [=](int64_t begin, int64_t end) {
    ForEachGroup<T>(begin, end, c, kGroupBytes, rows);
  });
}

template <class T>
void WeightedCrossEntropy(const ClassWeights<T>& q, const T* logits, T* loss,
                          T* log_sum) {
  const auto rows = [=](int64_t first, int count) {
    Lanes<T> maxima, log;
    const bool idle = q.targets != nullptr &&
                      AllIgnored(q.targets + first, count, q.ignore_index);
    if (!idle) LogSums(count, q.c, logits + first * q.c, maxima, log);
    for (int l = 0; l < count; ++l) {
      const int64_t i = first + l;
      loss[i] = log_sum[i] = 0;
      if (q.targets != nullptr && q.targets[i] == q.ignore_index) continue;
      const T *const x = logits + i * q.c, max = maxima[l], base = log[l];
      log_sum[i] = base;
      const bool none = max == -kInfinity<T> && base == 0;
      WithWeightsOf(q, i, [&](auto weight) {
        const auto term = [=](int64_t j) {
          const T v = weight(j);
          const T below = none ? kInfinity<T> : (max - x[j]) + base;
          return Select(v == 0 && below == kInfinity<T>, T(0), v * below);
        };
        loss[i] = OneClass(q) ? term(q.targets[i]) : BlockedSum<T>(q.c, term);
      });
    }
  };
  ParallelFor(q.n, GrainOf(q.n, q.c), [=](int64_t begin, int64_t end) {
    ForEachGroup<T>(begin, end, q.c, kGroupBytes, rows);
  });
}

template <class T>
void WeightedCrossEntropyGrad(const ClassWeights<T>& q, const T* logits,
                              const T* log_sum, T scale, const T* dloss,
                              bool accumulate_dlogits, T* dlogits,
                              bool accumulate_dprobabilities,
                              T* dprobabilities) {
  const auto row = [=](int64_t i, auto weight) {
    const int64_t c = q.c;
    const T *const x = logits + i * c, log = log_sum[i];
    const bool ignored = q.targets != nullptr && q.targets[i] == q.ignore_index;
    const T max = ignored ? -kInfinity<T> : RowMax(c, x);
    const T g = dloss == nullptr ? scale : scale * dloss[i];
    if (dlogits != nullptr) {
      T* const dx = dlogits + i * c;
      if (max == -kInfinity<T>) {
        if (!accumulate_dlogits) std::fill_n(dx, c, T(0));
      } else {
        const bool one = OneClass(q);
        const T total = one ? weight(q.targets[i]) : BlockedSum<T>(c, weight);
        // Q p - q without cancellation where both are nearly Q.
        const auto heavy = [=](int64_t j) {
          return one ? j == q.targets[i] : 2 * weight(j) > total;
        };
        int64_t main = c - 1;
        if (q.targets != nullptr && heavy(q.targets[i])) main = q.targets[i];
        while (main >= 0 && !heavy(main)) --main;
        const T at_main = main < 0 ? T(0)
                                   : g * (total * Expm1((x[main] - max) - log) +
                                          (total - weight(main))) +
                                         (accumulate_dlogits ? dx[main] : 0);
        if (one) {
          const auto value = [=](int, auto place) ABSL_ATTRIBUTE_ALWAYS_INLINE {
            return g * (total * ExpLanes<T>((place.Load(x) - max) - log));
          };
          WriteRows<T>(1, c, accumulate_dlogits, value, dx);
        } else {
          const auto value = [=](int64_t j) {
            const T p = ExpOfNonPositive((x[j] - max) - log);
            return g * (total * p - weight(j));
          };
          WriteRow(c, accumulate_dlogits, value, dx);
        }
        if (main >= 0) dx[main] = at_main;
      }
    }
    if (dprobabilities != nullptr) {
      const T share = g * (1 - q.smoothing);
      const auto value = [=](int64_t j) {
        const T below =
            max == -kInfinity<T> ? kInfinity<T> : (max - x[j]) + log;
        const T v = share * (q.weight != nullptr ? q.weight[j] : 1) * below;
        return Select(weight(j) == 0 && below == kInfinity<T>, T(0), v);
      };
      WriteRow(c, accumulate_dprobabilities, value, dprobabilities + i * c);
    }
  };
  ParallelFor(q.n, GrainOf(q.n, q.c), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      WithWeightsOf(q, i, [&](auto weight) { row(i, weight); });
    }
  });
}

template void CrossEntropy(int64_t, int64_t, const float*, const int64_t*,
                           int64_t, float, float*, float*);
template void CrossEntropyGrad(int64_t, int64_t, const float*, const int64_t*,
                               int64_t, float, const float*, float,
                               const float*, bool, float*);
template void CrossEntropy(int64_t, int64_t, const double*, const int64_t*,
                           int64_t, double, double*, double*);
template void CrossEntropyGrad(int64_t, int64_t, const double*, const int64_t*,
                               int64_t, double, const double*, double,
                               const double*, bool, double*);
template void WeightedCrossEntropy(const ClassWeights<float>&, const float*,
                                   float*, float*);
template void WeightedCrossEntropyGrad(const ClassWeights<float>&, const float*,
                                       const float*, float, const float*, bool,
                                       float*, bool, float*);
template void WeightedCrossEntropy(const ClassWeights<double>&, const double*,
                                   double*, double*);
template void WeightedCrossEntropyGrad(const ClassWeights<double>&,
                                       const double*, const double*, double,
                                       const double*, bool, double*, bool,
                                       double*);

}  // namespace wengert::kernels
