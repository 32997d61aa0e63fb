#include "examples/custom_op/squared_relu_gate.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/parallel.h"

using namespace wengert;

namespace {

// The kernels: raw rows, no tensors. Each element has one writer, so the result
// does not depend on the number of threads.
constexpr int64_t kGrain = 1 << 14;  // elements in a chunk

template <class T>
void GateKernel(int64_t n, const T* a, const T* b, T* y) {
  ParallelFor(n, kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T r = std::max(T{0}, a[i]);
      y[i] = r * r * b[i];
    }
  });
}

// dx = dy slope, or dx += the same when `accumulate`, for either input.
template <class T, class Slope>
void GateGradKernel(int64_t n, const T* dy, bool accumulate, T* dx,
                    Slope slope) {
  ParallelFor(n, kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      dx[i] = (accumulate ? dx[i] : T{0}) + dy[i] * slope(i);
    }
  });
}

template <class T>
Tensor SquaredReluGateOf(const Tensor& a, const Tensor& b) {
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

}  // namespace

Tensor SquaredReluGateComposed(const Tensor& a, const Tensor& b) {
  return Square(Relu(a)) * b;
}

// y = max(0, a)² b: da = 2 dy max(0, a) b, db = dy max(0, a)²
Tensor SquaredReluGate(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype() || !IsFloat(a.dtype())) {
    throw Error(absl::StrCat("SquaredReluGate: got ", Describe(a), " and ",
                             Describe(b),
                             "; wanted floats of one shape and dtype"));
  }
  return a.dtype() == DType::kFloat32 ? SquaredReluGateOf<float>(a, b)
                                      : SquaredReluGateOf<double>(a, b);
}
