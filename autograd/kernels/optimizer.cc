#include "autograd/kernels/optimizer.h"

#include <algorithm>
#include <cmath>

#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/kernels/vecmath.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

// One chunk of SumSquares: element i is added to lane i % kLanes.
template <class T>
double SumSquaresChunk(int64_t n, double scale, const T* x) {
  constexpr int kLanes = 32;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      const double y = scale * x[i + j];
      lanes[j] = Fma(y, y, lanes[j]);
    }
  }
  for (int j = 0; i < n; ++i, ++j) {
    const double y = scale * x[i];
    lanes[j] = Fma(y, y, lanes[j]);
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  }
  return lanes[0];
}

}  // namespace

template <class T>
void AdamStep(int64_t n, const AdamFactors& factors, const T* g, T* w, T* m,
              T* v) {
  const T step_size = factors.step_size;
  const T rest1 = 1 - factors.beta1;
  const T beta2 = factors.beta2;
  const T rest2 = 1 - factors.beta2;
  const T root_scale = factors.root_scale;
  const T eps = factors.eps;
  const T l2 = factors.l2;
  const T keep = factors.keep;
  ParallelFor(n, GrainOf(n, 1), [=](int64_t begin, int64_t end) {
    WENGERT_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) {
      const T d = Select(l2 != 0, Fma(l2, w[i], g[i]), g[i]);
      m[i] = Fma(rest1, d - m[i], m[i]);
      v[i] = Fma(rest2 * d, d, beta2 * v[i]);
      const T root = Fma(root_scale, std::sqrt(v[i]), eps);
      w[i] = Fma(-step_size, m[i] / root, keep * w[i]);
    }
  });
}

template <class T>
void SgdStep(int64_t n, const SgdFactors& factors, const T* g, T* w, T* b) {
  const T lr = factors.lr;
  const T momentum = factors.momentum;
  const bool nesterov = factors.nesterov;
  const T l2 = factors.l2;
  ParallelFor(n, GrainOf(n, 1), [=](int64_t begin, int64_t end) {
    WENGERT_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) {
      const T d = Select(l2 != 0, Fma(l2, w[i], g[i]), g[i]);
      b[i] = Fma(momentum, b[i], d);
      const T step = Select(nesterov, Fma(momentum, b[i], d), b[i]);
      w[i] = Fma(-lr, step, w[i]);
    }
  });
}

template <class T>
void RmsPropStep(int64_t n, const RmsPropFactors& factors, const T* g, T* w,
                 T* v, T* a, T* b) {
  const T lr = factors.lr;
  const T alpha = factors.alpha;
  const T rest = 1 - factors.alpha;
  const T eps = factors.eps;
  const T momentum = factors.momentum;
  const bool centered = factors.centered;
  const T l2 = factors.l2;
  ParallelFor(n, GrainOf(n, 1), [=](int64_t begin, int64_t end) {
    WENGERT_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) {
      const T d = Select(l2 != 0, Fma(l2, w[i], g[i]), g[i]);
      v[i] = Fma(rest * d, d, alpha * v[i]);
      a[i] = Fma(rest, d - a[i], a[i]);
      const T mean = Select(centered, a[i], T{0});
      const T variance = Fma(-mean, mean, v[i]);  // below 0 by rounding alone
      const T root = std::sqrt(Select(variance > 0, variance, T{0})) + eps;
      b[i] = Fma(momentum, b[i], d / root);
      w[i] = Fma(-lr, b[i], w[i]);
    }
  });
}

template <class T>
void AdagradStep(int64_t n, const AdagradFactors& factors, const T* g, T* w,
                 T* s) {
  const T lr = factors.lr;
  const T start = factors.start;
  const T eps = factors.eps;
  const T l2 = factors.l2;
  ParallelFor(n, GrainOf(n, 1), [=](int64_t begin, int64_t end) {
    WENGERT_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) {
      const T d = Select(l2 != 0, Fma(l2, w[i], g[i]), g[i]);
      s[i] = Fma(d, d, s[i]);
      w[i] = Fma(-lr, d / (std::sqrt(start + s[i]) + eps), w[i]);
    }
  });
}

template <class T>
void LionStep(int64_t n, const LionFactors& factors, const T* g, T* w, T* m) {
  const T lr = factors.lr;
  const T beta1 = factors.beta1;
  const T rest1 = 1 - factors.beta1;
  const T beta2 = factors.beta2;
  const T rest2 = 1 - factors.beta2;
  const T keep = factors.keep;
  ParallelFor(n, GrainOf(n, 1), [=](int64_t begin, int64_t end) {
    WENGERT_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) {
      const T c = Fma(beta1, m[i], rest1 * g[i]);
      const T step = Select(c > 0, lr, Select(c < 0, -lr, c));
      w[i] = Fma(keep, w[i], -step);
      m[i] = Fma(beta2, m[i], rest2 * g[i]);
    }
  });
}

template <class T>
void Scale(int64_t n, double factor, T* x) {
  ParallelFor(n, GrainOf(n, 1), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      x[i] = static_cast<T>(factor * static_cast<double>(x[i]));
    }
  });
}

template <class T>
double SumSquares(int64_t n, double scale, const T* x) {
  if (n <= kGrain) return SumSquaresChunk(n, scale, x);
  const int64_t n_chunks = (n - 1) / kGrain + 1;
  const Scratch<double> sums(n_chunks);
  ParallelFor(n_chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t size = std::min(kGrain, n - i * kGrain);
      sums.data()[i] = SumSquaresChunk(size, scale, x + i * kGrain);
    }
  });
  double sum = 0;
  for (int64_t i = 0; i < n_chunks; ++i) sum += sums.data()[i];
  return sum;
}

template <class T>
void MovingAverage(int64_t n, T rate, const T* x, T* y) {
  ParallelFor(n, GrainOf(n, 1), [=](int64_t begin, int64_t end) {
    WENGERT_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) y[i] = Fma(rate, x[i] - y[i], y[i]);
  });
}

template void MovingAverage(int64_t, float, const float*, float*);
template void MovingAverage(int64_t, double, const double*, double*);
template void AdamStep(int64_t, const AdamFactors&, const float*, float*,
                       float*, float*);
template void AdamStep(int64_t, const AdamFactors&, const double*, double*,
                       double*, double*);
template void SgdStep(int64_t, const SgdFactors&, const float*, float*, float*);
template void SgdStep(int64_t, const SgdFactors&, const double*, double*,
                      double*);
template void RmsPropStep(int64_t, const RmsPropFactors&, const float*, float*,
                          float*, float*, float*);
template void RmsPropStep(int64_t, const RmsPropFactors&, const double*,
                          double*, double*, double*, double*);
template void AdagradStep(int64_t, const AdagradFactors&, const float*, float*,
                          float*);
template void AdagradStep(int64_t, const AdagradFactors&, const double*,
                          double*, double*);
template void LionStep(int64_t, const LionFactors&, const float*, float*,
                       float*);
template void LionStep(int64_t, const LionFactors&, const double*, double*,
                       double*);
template void Scale(int64_t, double, float*);
template void Scale(int64_t, double, double*);
template double SumSquares(int64_t, double, const float*);
template double SumSquares(int64_t, double, const double*);

}  // namespace wengert::kernels
