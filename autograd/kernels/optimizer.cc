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

template void AdamStep(int64_t, const AdamFactors&, const float*, float*,
                       float*, float*);
template void AdamStep(int64_t, const AdamFactors&, const double*, double*,
                       double*, double*);
template void SgdStep(int64_t, const SgdFactors&, const float*, float*, float*);
template void SgdStep(int64_t, const SgdFactors&, const double*, double*,
                      double*);
template void Scale(int64_t, double, float*);
template void Scale(int64_t, double, double*);
template double SumSquares(int64_t, double, const float*);
template double SumSquares(int64_t, double, const double*);

}  // namespace wengert::kernels
