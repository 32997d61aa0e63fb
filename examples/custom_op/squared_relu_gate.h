// An operation of one's own, outside the library and with the same rights: a
// gate that lets b pass where a is positive, max(0, a)² b (So et al. 2021
// square the ReLU, Shazeer 2020 multiplies by a second branch).
#ifndef WENGERT_EXAMPLES_CUSTOM_OP_SQUARED_RELU_GATE_H_
#define WENGERT_EXAMPLES_CUSTOM_OP_SQUARED_RELU_GATE_H_

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/ops.h"
#include "autograd/parallel.h"

// The kernels: raw rows, no tensors. Each element has one writer, so the result
// does not depend on the number of threads.
constexpr int64_t kGrain = 1 << 14;  // elements in a chunk

template <class T>
void GateKernel(int64_t n, const T* a, const T* b, T* y) {
  wengert::ParallelFor(n, kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T r = std::max(T{0}, a[i]);
      y[i] = r * r * b[i];
    }
  });
}

// dx = dy scale x, or dx += the same when `accumulate`, for either input.
template <class T, class Slope>
void GateGradKernel(int64_t n, const T* dy, bool accumulate, T* dx,
                    Slope slope) {
  wengert::ParallelFor(n, kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      dx[i] = (accumulate ? dx[i] : T{0}) + dy[i] * slope(i);
    }
  });
}

// The same value from operations that exist: the oracle of the tests, and what
// runs when somebody differentiates the gradient.
inline wengert::Tensor SquaredReluGateComposed(const wengert::Tensor& a,
                                               const wengert::Tensor& b) {
  return wengert::Square(wengert::Relu(a)) * b;
}

template <class T>
wengert::Tensor SquaredReluGateOf(const wengert::Tensor& a,
                                  const wengert::Tensor& b) {
  using namespace wengert;
  Tensor y = Tensor::Empty(a.shape(), a.dtype());
  GateKernel(a.size(), a.data<T>(), b.data<T>(), y.mutable_data<T>());
  Record(
      "SquaredReluGate", y, {a, b}, Save(a, b),
      [](GradientSink& g, const Tensor& a, const Tensor& b) {
        const T* const dy = g.dy().data<T>();
        const T* const pa = a.data<T>();
        const T* const pb = b.data<T>();
        if (g.Needs(0)) {
          const auto da = g.Into<T>(0);
          GateGradKernel(a.size(), dy, da.accumulate, da.data, [=](int64_t i) {
            return 2 * std::max(T{0}, pa[i]) * pb[i];
          });
        }
        if (g.Needs(1)) {
          const auto db = g.Into<T>(1);
          GateGradKernel(a.size(), dy, db.accumulate, db.data, [=](int64_t i) {
            const T r = std::max(T{0}, pa[i]);
            return r * r;
          });
        }
      },
      SquaredReluGateComposed);
  return y;
}

// y = max(0, a)² b: da = 2 dy max(0, a) b, db = dy max(0, a)². Equal shapes.
inline wengert::Tensor SquaredReluGate(const wengert::Tensor& a,
                                       const wengert::Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype() || !IsFloat(a.dtype())) {
    throw wengert::Error(absl::StrCat(
        "SquaredReluGate: got ", wengert::Describe(a), " and ",
        wengert::Describe(b), "; wanted floats of one shape and dtype"));
  }
  return a.dtype() == wengert::DType::kFloat32
             ? SquaredReluGateOf<float>(a, b)
             : SquaredReluGateOf<double>(a, b);
}

#endif  // WENGERT_EXAMPLES_CUSTOM_OP_SQUARED_RELU_GATE_H_
