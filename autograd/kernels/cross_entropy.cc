#include "autograd/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/softmax_row.h"
#include "autograd/kernels/vecmath.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

// log sum exp(x - max) without the 1 of the largest element, so that the loss
// of a class that is nearly certain does not round to 0.
template <class T>
T LogSum(int64_t c, const T* x, T max) {
  const T others = BlockedSum<T>(
      c, [=](int64_t j) { return Select<T>(x[j] == max, 0, Exp(x[j] - max)); });
  int64_t ties = 0;
  for (int64_t j = 0; j < c; ++j) ties += x[j] == max;
  return std::log1p(others + static_cast<T>(ties - 1));
}

}  // namespace

template <class T>
void CrossEntropy(int64_t n, int64_t c, const T* logits, const int64_t* targets,
                  int64_t ignore_index, T smoothing, T* loss, T* log_sum) {
  ParallelFor(n, GrainOf(n, c), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      loss[i] = log_sum[i] = 0;
      if (targets[i] == ignore_index) continue;
      const T* x = logits + i * c;
      const T max = RowMax(c, x);
      if (max == -kInfinity<T>) {  // no class is possible
        loss[i] = kInfinity<T>;
        continue;
      }
      log_sum[i] = max == kInfinity<T> ? T(NAN) : LogSum(c, x, max);
      loss[i] = (1 - smoothing) * ((max - x[targets[i]]) + log_sum[i]);
      if (smoothing != 0) {
        const T below = BlockedSum<T>(c, [=](int64_t j) { return max - x[j]; });
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
    for (int64_t i = begin; i < end; ++i) {
      const T* x = logits + i * c;
      T* dx = dlogits + i * c;
      const int64_t t = targets[i];
      const T max = t == ignore_index ? -kInfinity<T> : RowMax(c, x);
      if (max == -kInfinity<T>) {
        if (!accumulate) std::fill_n(dx, c, T(0));
        continue;
      }
      const T g = dloss == nullptr ? scale : scale * dloss[i];
      const T uniform = smoothing / static_cast<T>(c), log = log_sum[i];
      // p - 1 at the target without cancellation.
      const T at_target =
          g * (std::expm1((x[t] - max) - log) + (smoothing - uniform)) +
          (accumulate ? dx[t] : 0);
      WriteRow(
          c, accumulate,
          [=](int64_t j) { return g * (Exp((x[j] - max) - log) - uniform); },
          dx);
      dx[t] = at_target;
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

}  // namespace wengert::kernels
