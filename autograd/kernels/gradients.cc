#include "autograd/kernels/gradients.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "absl/base/attributes.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/map.h"
#include "autograd/kernels/vecmath.h"
#include "autograd/kernels/vecmath_erf.h"
#include "autograd/kernels/vecmath_pow.h"
#include "autograd/kernels/vecmath_trig.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

// 2/sqrt(pi) e^(-x^2)
template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T ErfSlope(T x) {
  const auto [m, s] =
      ExpOfSquare<T>(-1, Magnitude<T>(x, std::is_same_v<T, float> ? 12 : 28));
  return T(1.1283791670955126) * m * s;
}

// The same of sigmoid: neither tail loses digits.
template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T SigmoidSlope(T x) {
  const auto [m, s] = ExpOfMinus(std::fabs(x));
  const T inverse = 1 / Fma(m, s, T{1});
  return m * inverse * inverse * s;
}

}  // namespace

template <class T>
void ApplyGrad(Unary f, int64_t n, const T* from, const T* dy, bool accumulate,
               T* dx) {
  // pass(x, dy), or pass(y, dy), is dx.
  const auto map = [=](auto pass) {
    MapInto(n, accumulate, dx, [=](int64_t i) ABSL_ATTRIBUTE_ALWAYS_INLINE {
      return pass(from[i], dy[i]);
    });
  };
  const auto map_within = [=](auto near, auto far) {
    const auto write = [=](auto to) {
      ForEachWithin(
          T{kSinLimit<T>}, n, from,
          [=](int64_t i) ABSL_ATTRIBUTE_ALWAYS_INLINE {
            to(dx + i, dy[i] * near(from[i]));
          },
          [=](int64_t i) { to(dx + i, dy[i] * far(from[i])); });
    };
    accumulate
        ? write([](T* to, T d) ABSL_ATTRIBUTE_ALWAYS_INLINE { *to += d; })
        : write([](T* to, T d) ABSL_ATTRIBUTE_ALWAYS_INLINE { *to = d; });
  };
  switch (f) {
    case Unary::kExp:
      return map([](T y, T d) { return d * y; });
    case Unary::kLog:
      return map([](T x, T d) { return d / x; });
    case Unary::kTanh:
      return map([](T y, T d) { return d * Fma(-y, y, T{1}); });
    case Unary::kErf:
      return map([](T x, T d) { return d * ErfSlope(x); });
    case Unary::kErfc:
      return map([](T x, T d) { return d * -ErfSlope(x); });
    case Unary::kSqrt:
      return map([](T y, T d) { return d / (2 * y); });
    case Unary::kRsqrt:
      return map([](T y, T d) { return d * (T(-0.5) * (y * y * y)); });
    case Unary::kSquare:
      return map([](T x, T d) { return d * (2 * x); });
    case Unary::kSigmoid:
      return map([](T x, T d) { return d * SigmoidSlope(x); });
    case Unary::kExpm1:
      return map([](T x, T d) { return d * Exp(x); });
    case Unary::kLog1p:
      return map([](T x, T d) { return d / (1 + x); });
    case Unary::kSin:
      return map_within([](T x) { return Cos(x); },
                        [](T x) { return std::cos(x); });
    case Unary::kCos:
      return map_within([](T x) { return -Sin(x); },
                        [](T x) { return -std::sin(x); });
    default:
      return;
  }
}

template <class T>
void PowScalarGrad(int64_t n, const T* x, double p, const T* dy,
                   bool accumulate, T* dx) {
  if (p == 0) {
    if (!accumulate) Fill<T>(n, 0, dx);
    return;
  }
  WithPower<T>(p - 1, [=](auto power) {
    MapInto(n, accumulate, dx,
            [=, scale = static_cast<T>(p)](int64_t i)
                ABSL_ATTRIBUTE_ALWAYS_INLINE {
                  return dy[i] * (scale * power(x[i]));
                });
  });
}

template <class T>
void ApplyGrad(Binary op, int64_t n, const T* a, const T* b, const T* y,
               const T* dy, bool add_da, T* da, bool add_db, T* db) {
  // to_a(i) is da. In blocks, so that the second output finds the inputs
  // in the first-level cache.
  const auto map = [=](auto to_a, auto to_b) {
    constexpr int64_t kBlock = 1024;
    ParallelFor(n, GrainOf(n, 1), [=](int64_t begin, int64_t end) {
      const auto write = [=](int64_t i, int64_t m, bool add, T* to, auto f) {
        if (to == nullptr) return;
        WriteRow(
            m, add,
            [=](int64_t k) ABSL_ATTRIBUTE_ALWAYS_INLINE { return f(i + k); },
            to + i);
      };
      for (int64_t i = begin; i < end; i += kBlock) {
        const int64_t m = std::min(kBlock, end - i);
        write(i, m, add_da, da, to_a);
        write(i, m, add_db, db, to_b);
      }
    });
  };
  switch (op) {
    case Binary::kMul:
      return map([=](int64_t i) { return dy[i] * b[i]; },
                 [=](int64_t i) { return dy[i] * a[i]; });
    case Binary::kDiv:
      return map([=](int64_t i) { return dy[i] / b[i]; },
                 [=](int64_t i) { return -(dy[i] / b[i] * (a[i] / b[i])); });
    case Binary::kMax:
      return map([=](int64_t i) { return Select(a[i] < b[i], T{0}, dy[i]); },
                 [=](int64_t i) { return Select(a[i] < b[i], dy[i], T{0}); });
    case Binary::kMin:
      return map([=](int64_t i) { return Select(a[i] > b[i], T{0}, dy[i]); },
                 [=](int64_t i) { return Select(a[i] > b[i], dy[i], T{0}); });
    case Binary::kAtan2:
      return map(
          [=](int64_t i) { return dy[i] * ReciprocalReal(b[i], a[i]); },
          [=](int64_t i) { return -(dy[i] * ReciprocalReal(a[i], b[i])); });
    case Binary::kPow:
      return map(
          [=](int64_t i) ABSL_ATTRIBUTE_ALWAYS_INLINE {
            // For p = 0 of y, which is 1 there: the product is 0.
            const T p = b[i], base = Select(p == 0, y[i], a[i]);
            return dy[i] * (p * Pow(base, double{p} - 1));
          },
          [=](int64_t i) ABSL_ATTRIBUTE_ALWAYS_INLINE {
            const bool flat = (a[i] == 0) & (b[i] >= 0);
            return dy[i] * (y[i] * Log(Select(flat, T{1}, a[i])));
          });
    default:
      return;
  }
}

template void ApplyGrad(Unary, int64_t, const float*, const float*, bool,
                        float*);
template void PowScalarGrad(int64_t, const float*, double, const float*, bool,
                            float*);
template void ApplyGrad(Binary, int64_t, const float*, const float*,
                        const float*, const float*, bool, float*, bool, float*);

template void ApplyGrad(Unary, int64_t, const double*, const double*, bool,
                        double*);
template void PowScalarGrad(int64_t, const double*, double, const double*, bool,
                            double*);
template void ApplyGrad(Binary, int64_t, const double*, const double*,
                        const double*, const double*, bool, double*, bool,
                        double*);

}  // namespace wengert::kernels
