#include "autograd/kernels/piecewise.h"

#include <cmath>

#include "autograd/kernels/map.h"
#include "autograd/kernels/vecmath.h"

namespace wengert::kernels {
namespace {

// ln(1 + e^z), whose left tail is e^z.
template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T SoftplusOne(T z) {
  const auto [m, s] = ExpOfMinus(std::fabs(z));
  return Select(z < 0, T{0}, z) + Log1pOfUnit(m * s);
}

}  // namespace

template <class T>
void Apply(const Piecewise& f, int64_t n, const T* x, T* y) {
  const T a = static_cast<T>(f.a), b = static_cast<T>(f.b);
  switch (f.kind) {
    case Piecewise::kAbs:
      return Map(n, x, y, [](T v) { return std::fabs(v); });
    case Piecewise::kClamp:
      return Map(n, x, y, [=](T v) {
        v = Select(v <= a, a, v);
        return Select(v >= b, b, v);
      });
    case Piecewise::kLeakyRelu:
      return Map(n, x, y, [=](T v) { return Select(v > 0, v, a * v); });
    case Piecewise::kElu:
      return Map(n, x, y, [=](T v) { return Select(v > 0, v, a * Expm1(v)); });
    case Piecewise::kSoftplus:
      return Map(n, x, y, [=, inverse = 1 / a](T v) {
        return SoftplusOne(a * v) * inverse;
      });
  }
}

template <class T>
void ApplyGrad(const Piecewise& f, int64_t n, const T* x, const T* dy,
               bool accumulate, T* dx) {
  const T a = static_cast<T>(f.a), b = static_cast<T>(f.b);
  const auto pass = [=](auto rule) {
    MapInto(n, accumulate, dx, [=](int64_t i) ABSL_ATTRIBUTE_ALWAYS_INLINE {
      return rule(x[i], dy[i]);
    });
  };
  switch (f.kind) {
    case Piecewise::kAbs:
      return pass([](T v, T d) {
        return Select(v > 0, d, Select(v < 0, -d, Select(v == 0, T{0}, v)));
      });
    case Piecewise::kClamp:
      return pass([=](T v, T d) { return Select((v > a) & (v < b), d, T{0}); });
    case Piecewise::kLeakyRelu:
      return pass([=](T v, T d) { return Select(v > 0, d, a * d); });
    case Piecewise::kElu:
      return pass([=](T v, T d) { return Select(v > 0, d, d * (a * Exp(v))); });
    case Piecewise::kSoftplus:
      return pass([=](T v, T d) { return d * Sigmoid(a * v); });
  }
}

template void Apply(const Piecewise&, int64_t, const float*, float*);
template void Apply(const Piecewise&, int64_t, const double*, double*);
template void ApplyGrad(const Piecewise&, int64_t, const float*, const float*,
                        bool, float*);
template void ApplyGrad(const Piecewise&, int64_t, const double*, const double*,
                        bool, double*);

}  // namespace wengert::kernels
