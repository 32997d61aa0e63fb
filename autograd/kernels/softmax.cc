#include "autograd/kernels/softmax.h"

#include <algorithm>

#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/softmax_row.h"
#include "autograd/kernels/vecmath.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

// fn(offset of the row) for every row.
template <class Fn>
void ForEachRow(int64_t rows, int64_t width, const Fn& fn) {
  ParallelFor(rows, GrainOf(rows, width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) fn(r * width);
  });
}

}  // namespace

template <class T>
void Softmax(int64_t rows, int64_t width, const T* x, T* y) {
  ForEachRow(rows, width, [=](int64_t row) {
    const T* from = x + row;
    T* to = y + row;
    const T max = RowMax(width, from);
    if (max == -kInfinity<T>) {
      std::fill_n(to, width, T(0));
      return;
    }
    ExpRow(width, from, max, to);
    const T scale = 1 / BlockedSum<T>(width, [=](int64_t i) { return to[i]; });
    for (int64_t i = 0; i < width; ++i) to[i] *= scale;
  });
}

template <class T>
void SoftmaxGrad(int64_t rows, int64_t width, const T* y, const T* dy,
                 bool accumulate, T* dx) {
  ForEachRow(rows, width, [=](int64_t row) {
    const T *p = y + row, *dp = dy + row;
    const T mean =
        BlockedSum<T>(width, [=](int64_t i) { return p[i] * dp[i]; });
    WriteRow(
        width, accumulate, [=](int64_t i) { return p[i] * (dp[i] - mean); },
        dx + row);
  });
}

template <class T>
void LogSoftmax(int64_t rows, int64_t width, const T* x, T* y) {
  ForEachRow(rows, width, [=](int64_t row) {
    const T* from = x + row;
    T* to = y + row;
    const T max = RowMax(width, from);
    if (max == -kInfinity<T>) {
      std::fill_n(to, width, max);
      return;
    }
    const T log_sum = Log(
        BlockedSum<T>(width, [=](int64_t i) { return Exp(from[i] - max); }));
    WENGERT_INDEPENDENT
    for (int64_t i = 0; i < width; ++i) to[i] = (from[i] - max) - log_sum;
  });
}

template <class T>
void LogSoftmaxGrad(int64_t rows, int64_t width, const T* y, const T* dy,
                    bool accumulate, T* dx) {
  ForEachRow(rows, width, [=](int64_t row) {
    const T *logp = y + row, *d = dy + row;
    if (RowMax(width, logp) == -kInfinity<T>) {
      if (!accumulate) std::fill_n(dx + row, width, T(0));
      return;
    }
    const T sum = BlockedSum<T>(width, [=](int64_t i) { return d[i]; });
    WriteRow(
        width, accumulate, [=](int64_t i) { return d[i] - Exp(logp[i]) * sum; },
        dx + row);
  });
}

template void Softmax(int64_t, int64_t, const float*, float*);
template void SoftmaxGrad(int64_t, int64_t, const float*, const float*, bool,
                          float*);
template void LogSoftmax(int64_t, int64_t, const float*, float*);
template void LogSoftmaxGrad(int64_t, int64_t, const float*, const float*, bool,
                             float*);
template void Softmax(int64_t, int64_t, const double*, double*);
template void SoftmaxGrad(int64_t, int64_t, const double*, const double*, bool,
                          double*);
template void LogSoftmax(int64_t, int64_t, const double*, double*);
template void LogSoftmaxGrad(int64_t, int64_t, const double*, const double*,
                             bool, double*);

}  // namespace wengert::kernels
