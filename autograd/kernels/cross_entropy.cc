#include "autograd/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/gemm_tile.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/softmax_row.h"
#include "autograd/kernels/vecmath.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

// Rows up to this width are worked on side by side, one in each lane of a
// vector.
constexpr int64_t kNarrow = 128;
template <class T>
inline constexpr int kLanes = gemm::kWidth<T>;
template <class T>
using Lanes = T[kLanes<T>];

// The largest element of a row, and log sum exp(x - max) without the 1 of that
// element, so that the loss of a class that is nearly certain does not round
// to 0.
template <class T>
void RowSums(int64_t c, const T* x, T* max, T* log_sum) {
  const T most = RowMax(c, x);
  const T others = BlockedSum<T>(c, [=](int64_t j) {
    return Select<T>(x[j] == most, 0, Exp(x[j] - most));
  });
  int64_t ties = 0;
  for (int64_t j = 0; j < c; ++j) ties += x[j] == most;
  *max = most;
  *log_sum = Log1p(others + static_cast<T>(ties - 1));
}

// Puts up to kLanes narrow rows into the lanes of `columns`, and finds the
// largest element of each.
template <class T>
void LoadLanes(int64_t rows, int64_t c, const T* x, Lanes<T>* columns, T* max) {
  gemm::Pack(true, c, static_cast<int>(std::min<int64_t>(kLanes<T>, rows)), x,
             c, int64_t{kLanes<T>}, columns[0]);
  std::fill_n(max, kLanes<T>, -kInfinity<T>);
  for (int64_t j = 0; j < c; ++j) {
    for (int l = 0; l < kLanes<T>; ++l) {
      const T v = columns[j][l];
      max[l] = Select((v > max[l]) | (v != v), v, max[l]);
    }
  }
}

// As RowSums, of those rows.
template <class T>
void LanesSums(int64_t c, const Lanes<T>* columns, const T* max, T* log_sum) {
  Lanes<T> others = {}, ties = {};
  for (int64_t j = 0; j < c; ++j) {
    for (int l = 0; l < kLanes<T>; ++l) {
      const bool is_max = columns[j][l] == max[l];
      const T e = Exp(columns[j][l] - max[l]);
      others[l] += Select(is_max, T(0), e);
      ties[l] += Select(is_max, T(1), T(0));
    }
  }
  for (int l = 0; l < kLanes<T>; ++l) {
    log_sum[l] = Log1p(others[l] + (ties[l] - 1));
  }
}

// Turns those rows into exp(x - max - log_sum).
template <class T>
void LanesWeights(int64_t rows, int64_t c, const T* max, const T* log_sum,
                  Lanes<T>* columns) {
  Lanes<T> log = {};
  std::copy_n(log_sum, std::min<int64_t>(kLanes<T>, rows), log);
  for (int64_t j = 0; j < c; ++j) {
    for (int l = 0; l < kLanes<T>; ++l) {
      columns[j][l] = Exp((columns[j][l] - max[l]) - log[l]);
    }
  }
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
  ParallelFor(n, GrainOf(n, c), [=](int64_t begin, int64_t end) {
    Lanes<T> max, log;
    for (int64_t i = begin; i < end; ++i) {
      const T* x = logits + i * c;
      const int lane = c <= kNarrow ? (i - begin) % kLanes<T> : 0;
      if (c > kNarrow) {
        if (targets[i] != ignore_index) RowSums(c, x, max, log);
      } else if (lane == 0) {
        Lanes<T> columns[kNarrow];
        LoadLanes(end - i, c, x, columns, max);
        LanesSums(c, columns, max, log);
      }
      loss[i] = log_sum[i] = 0;
      if (targets[i] == ignore_index) continue;
      if (max[lane] == -kInfinity<T>) {  // no class is possible
        loss[i] = kInfinity<T>;
        continue;
      }
      log_sum[i] = max[lane] == kInfinity<T> ? T(NAN) : log[lane];
      loss[i] = (1 - smoothing) * ((max[lane] - x[targets[i]]) + log_sum[i]);
      if (smoothing != 0) {
        const T most = max[lane];
        const T below =
            BlockedSum<T>(c, [=](int64_t j) { return most - x[j]; });
        loss[i] += smoothing * (below / static_cast<T>(c) + log_sum[i]);
      }
    }
  });
}

template <class T>
void CrossEntropyGrad(int64_t n, int64_t c, const T* logits,
                      const int64_t* targets, int64_t ignore_index, T smoothing,
                      const T* log_sum, T scale, const T* dloss,
                      bool accumulate, T* dlogits) {
  ParallelFor(n, GrainOf(n, c), [=](int64_t begin, int64_t end) {
    Lanes<T> p[kNarrow], lane_max;  // of narrow rows
    for (int64_t i = begin; i < end; ++i) {
      const T* x = logits + i * c;
      T* dx = dlogits + i * c;
      const int64_t t = targets[i];
      const int64_t lane = (i - begin) % kLanes<T>;
      const bool narrow = c <= kNarrow;
      if (narrow && lane == 0) {
        LoadLanes(end - i, c, x, p, lane_max);
        LanesWeights(end - i, c, lane_max, log_sum + i, p);
      }
      const T max = t == ignore_index ? -kInfinity<T>
                    : narrow          ? lane_max[lane]
                                      : RowMax(c, x);
      if (max == -kInfinity<T>) {
        if (!accumulate) std::fill_n(dx, c, T(0));
        continue;
      }
      const T g = dloss == nullptr ? scale : scale * dloss[i];
      const T uniform = smoothing / static_cast<T>(c), log = log_sum[i];
      // p - 1 at the target without cancellation.
      const T at_target =
          g * (Expm1((x[t] - max) - log) + (smoothing - uniform)) +
          (accumulate ? dx[t] : 0);
      if (narrow) {
        const auto value = [&](int64_t j) {
          return g * (p[j][lane] - uniform);
        };
        WriteRow(c, accumulate, value, dx);
      } else {
        const auto value = [=](int64_t j) {
          return g * (Exp((x[j] - max) - log) - uniform);
        };
        WriteRow(c, accumulate, value, dx);
      }
      dx[t] = at_target;
    }
  });
}

template <class T>
void WeightedCrossEntropy(const ClassWeights<T>& q, const T* logits, T* loss,
                          T* log_sum) {
  ParallelFor(q.n, GrainOf(q.n, q.c), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      loss[i] = log_sum[i] = 0;
      if (q.targets != nullptr && q.targets[i] == q.ignore_index) continue;
      const T* x = logits + i * q.c;
      T max, log;
      RowSums(q.c, x, &max, &log);
      const bool none = max == -kInfinity<T>;  // no class is possible
      log_sum[i] = none ? 0 : max == kInfinity<T> ? T(NAN) : log;
      const T base = log_sum[i];
      WithWeightsOf(q, i, [&](auto weight) {
        loss[i] = BlockedSum<T>(q.c, [=](int64_t j) {
          const T v = weight(j);
          const T below = none ? kInfinity<T> : (max - x[j]) + base;
          return Select(v == 0 && below == kInfinity<T>, T(0), v * below);
        });
      });
    }
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
        const T total = BlockedSum<T>(c, weight);
        // Q p - q without cancellation where both are nearly Q.
        int64_t main = -1;
        for (int64_t j = 0; j < c; ++j) main = 2 * weight(j) > total ? j : main;
        const T at_main = main < 0 ? T(0)
                                   : g * (total * Expm1((x[main] - max) - log) +
                                          (total - weight(main))) +
                                         (accumulate_dlogits ? dx[main] : 0);
        const auto value = [=](int64_t j) {
          return g * (total * Exp((x[j] - max) - log) - weight(j));
        };
        WriteRow(c, accumulate_dlogits, value, dx);
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
