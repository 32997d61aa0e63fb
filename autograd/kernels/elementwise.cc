#include "autograd/kernels/elementwise.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>

#include "autograd/kernels/map.h"
#include "autograd/kernels/vecmath.h"
#include "autograd/kernels/vecmath_erf.h"
#include "autograd/kernels/vecmath_pow.h"
#include "autograd/kernels/vecmath_trig.h"

namespace wengert::kernels {
namespace {

// dx = dy f'(x), or dx += dy f'(x), and y = f(x) unless it is null.
template <class T, class F, class Slope>
void MapGrad(int64_t n, const T* x, const T* dy, bool accumulate, T* dx, T* y,
             F f, Slope slope) {
  const auto run = [&](auto sum) {
    if (y != nullptr) {
      ForEach(n, [=](int64_t i) ABSL_ATTRIBUTE_ALWAYS_INLINE {
        const T v = x[i];
        y[i] = f(v);
        dx[i] = sum(dy[i], slope(v), dx + i);
      });
    } else {
      ForEach(n, [=](int64_t i) ABSL_ATTRIBUTE_ALWAYS_INLINE {
        dx[i] = sum(dy[i], slope(x[i]), dx + i);
      });
    }
  };
  if (accumulate) {
    run([](T d, T s, const T* old)
            ABSL_ATTRIBUTE_ALWAYS_INLINE { return Fma(d, s, *old); });
  } else {
    run([](T d, T s, const T*) ABSL_ATTRIBUTE_ALWAYS_INLINE { return d * s; });
  }
}

// x sigma(v) where v has the sign of x: SiLU has v = x. `near` is x, or where
// that is very negative a number so far out that the product is 0.
template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T TimesSigmoid(T x, T near, T v) {
  const auto [m, s] = ExpOfMinus(std::fabs(v));
  return Select(x < 0, (near * m) * s, x) / (1 + m * s);
}

// sigma(v) (1 + w (1 - sigma(v))): the derivative of x sigma(v), w = x dv/dx.
template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T TimesSigmoidSlope(T v, T w) {
  const auto [m, s] = ExpOfMinus(std::fabs(v));
  const T inverse = 1 / (1 + m * s);
  const bool left = v < 0;
  const T rest = Select<T>(left, 1, m * s) * inverse;  // 1 - sigma(v)
  return Select<T>(left, m, 1) * inverse * Fma(w, rest, T{1}) *
         Select<T>(left, s, 1);
}

// At this distance from 0 SiLU and its slope have reached their limits.
template <class T>
inline constexpr T kSiluFar = std::is_same_v<T, float> ? 150 : 800;
template <class T>
inline constexpr T kGeluTanhFar = std::is_same_v<T, float> ? 13 : 25;
template <class T>
inline constexpr T kGeluFar = std::is_same_v<T, float> ? 16 : 40;

// 2u = x (kTwoU1 + kTwoU3 x^2) in the tanh form of GELU.
inline constexpr double kTwoU1 = 1.5957691216057308;  // 2 sqrt(2 / pi)
inline constexpr double kTwoU3 = 0.071354816272600250;

template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T GeluTanhOne(T x) {
  const T near = ClampMagnitude(x, kGeluTanhFar<T>);
  const T v = near * Fma<T>(near * near, kTwoU3, kTwoU1);
  return TimesSigmoid(x, near, v);
}

template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T GeluTanhSlope(T x) {
  const T near = ClampMagnitude(x, kGeluTanhFar<T>);
  const T v = near * Fma<T>(near * near, kTwoU3, kTwoU1);
  const T w = near * Fma<T>(near * near, 3 * kTwoU3, kTwoU1);
  return TimesSigmoidSlope(v, w);
}

template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T SiluOne(T x) {
  return TimesSigmoid(x, ClampMagnitude(x, kSiluFar<T>), x);
}

template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T ReluOne(T x) {
  return Select(x <= 0, T(0), x);
}

// At the magnitude a of x the standard normal distribution has the mass
// tail * s above a and the density density * s; s is a power of two.
template <class T>
struct Normal {
  T a, tail, density, s;
};

template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline Normal<T> NormalAt(T x) {
  const T a = Magnitude(x, kGeluFar<T>);
  const auto [m, s] = ExpOfSquare<T>(-0.5, a);
  const T twice_tail = ScaledErfc(a * T(1.2533141373155003)) * m;
  return {a, twice_tail, T(0.79788456080286536) * m, s / 2};
}

// max(0, x) - a * mass
template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T GeluOne(T x) {
  const auto [a, tail, density, s] = NormalAt(x);
  return Fma(a * tail, -s, ReluOne(x));
}

template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T GeluSlope(T x) {
  const auto [a, tail, density, s] = NormalAt(x);
  const T left = Fma(-a, density, tail) * s;  // the slope at -a
  return Select(x < 0, left, 1 - left);
}

template <class To, class From>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline To ConvertOne(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> &&
                !std::is_same_v<To, bool>) {
    // Out of range, the cast itself is undefined.
    constexpr From kMin = static_cast<From>(std::numeric_limits<To>::min());
    return static_cast<To>(Select(x >= kMin && x < -kMin, x, kMin));
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace

template <class T>
void Apply(Unary op, int64_t n, const T* x, T* y) {
  switch (op) {
    case Unary::kExp:
      return Map(n, x, y, [](T v) { return Exp(v); });
    case Unary::kLog:
      return Map(n, x, y, [](T v) { return Log(v); });
    case Unary::kTanh:
      return Map(n, x, y, [](T v) { return Tanh(v); });
    case Unary::kErf:
      return Map(n, x, y, [](T v) { return Erf(v); });
    case Unary::kErfc:
      return Map(n, x, y, [](T v) { return Erfc(v); });
    case Unary::kSqrt:
      return Map(n, x, y, [](T v) { return std::sqrt(v); });
    case Unary::kRsqrt:
      return Map(n, x, y, [](T v) { return 1 / std::sqrt(v); });
    case Unary::kSquare:
      return Map(n, x, y, [](T v) { return v * v; });
    case Unary::kSigmoid:
      return Map(n, x, y, [](T v) { return Sigmoid(v); });
    case Unary::kExpm1:
      return Map(n, x, y, [](T v) { return Expm1(v); });
    case Unary::kLog1p:
      return Map(n, x, y, [](T v) { return Log1p(v); });
    case Unary::kSin:
      return ForEachWithin(
          T{kSinLimit<T>}, n, x,
          [=](int64_t i) ABSL_ATTRIBUTE_ALWAYS_INLINE { y[i] = Sin(x[i]); },
          [=](int64_t i) { y[i] = std::sin(x[i]); });
    case Unary::kCos:
      return ForEachWithin(
          T{kSinLimit<T>}, n, x,
          [=](int64_t i) ABSL_ATTRIBUTE_ALWAYS_INLINE { y[i] = Cos(x[i]); },
          [=](int64_t i) { y[i] = std::cos(x[i]); });
    case Unary::kSign:
      return Map(n, x, y, [](T v) {
        return Select(v > 0, T{1}, Select(v < 0, T{-1}, v));
      });
    case Unary::kFloor:
      return Map(n, x, y, [](T v) { return std::floor(v); });
    case Unary::kCeil:
      return Map(n, x, y, [](T v) { return std::ceil(v); });
    case Unary::kTrunc:
      return Map(n, x, y, [](T v) { return std::trunc(v); });
    case Unary::kRound:
      return Map(n, x, y, [](T v) { return std::nearbyint(v); });
  }
}

template <class T>
void Apply(Predicate op, int64_t n, const T* x, bool* y) {
  switch (op) {
    case Predicate::kNan:
      return Map(n, x, y, [](T v) { return v != v; });
    case Predicate::kInf:
      return Map(n, x, y, [](T v) { return std::fabs(v) == T(HUGE_VAL); });
    case Predicate::kFinite:
      return Map(n, x, y, [](T v) { return std::fabs(v) < T(HUGE_VAL); });
  }
}

template <class T>
void Affine(int64_t n, T a, T b, const T* x, T* y) {
  Map(n, x, y, [a, b](T v) { return Fma(a, v, b); });
}

template <class T>
void PowScalar(int64_t n, const T* x, double p, T* y) {
  WithPower<T>(p, [=](auto power) { Map(n, x, y, power); });
}

template <class T>
void Accumulate(int64_t n, const T* x, T* y) {
  ForEach(n, [=](int64_t i) ABSL_ATTRIBUTE_ALWAYS_INLINE { y[i] += x[i]; });
}

template <class T>
void Fill(int64_t n, T value, T* y) {
  ForEach(n, [=](int64_t i) ABSL_ATTRIBUTE_ALWAYS_INLINE { y[i] = value; });
}

template <class From, class To>
void Convert(int64_t n, const From* x, To* y) {
  // Loads of bytes become vectors where loads of bools do not.
  using Loaded = std::conditional_t<std::is_same_v<From, bool>, uint8_t, From>;
  const Loaded* loaded = reinterpret_cast<const Loaded*>(x);
  ForEach(n, [=](int64_t i) ABSL_ATTRIBUTE_ALWAYS_INLINE {
    y[i] = ConvertOne<To>(loaded[i]);
  });
}

template <class T>
bool AllFinite(int64_t n, const T* x) {
  std::atomic<bool> all = true;
  ParallelFor(n, GrainOf(n, 1), [x, &all](int64_t begin, int64_t end) {
    int bad = 0;
    for (int64_t i = begin; i < end; ++i) {
      bad |= !(std::fabs(x[i]) <= std::numeric_limits<T>::max());
    }
    if (bad) all.store(false, std::memory_order_relaxed);
  });
  return all;
}

template <class T>
void Apply(Activation f, int64_t n, const T* x, T* y) {
  switch (f) {
    case Activation::kRelu:
      return Map(n, x, y, [](T v) { return ReluOne(v); });
    case Activation::kGelu:
      return Map(n, x, y, [](T v) { return GeluOne(v); });
    case Activation::kGeluTanh:
      return Map(n, x, y, [](T v) { return GeluTanhOne(v); });
    case Activation::kSilu:
      return Map(n, x, y, [](T v) { return SiluOne(v); });
  }
}

template <class T>
void ApplyGrad(Activation f, int64_t n, const T* x, const T* dy,
               bool accumulate, T* dx, T* y) {
  switch (f) {
    case Activation::kRelu:
      return ForEach(n, [=](int64_t i) ABSL_ATTRIBUTE_ALWAYS_INLINE {
        const T v = x[i], passed = Select(v > 0, dy[i], T(0));
        if (y != nullptr) y[i] = ReluOne(v);
        dx[i] = accumulate ? dx[i] + passed : passed;
      });
    case Activation::kGelu:
      return MapGrad(
          n, x, dy, accumulate, dx, y, [](T v) { return GeluOne(v); },
          [](T v) { return GeluSlope(v); });
    case Activation::kGeluTanh:
      return MapGrad(
          n, x, dy, accumulate, dx, y, [](T v) { return GeluTanhOne(v); },
          [](T v) { return GeluTanhSlope(v); });
    case Activation::kSilu:
      return MapGrad(
          n, x, dy, accumulate, dx, y, [](T v) { return SiluOne(v); },
          [](T v) {
            return TimesSigmoidSlope(v, ClampMagnitude(v, kSiluFar<T>));
          });
  }
}

template void Apply(Unary, int64_t, const float*, float*);
template void Apply(Predicate, int64_t, const float*, bool*);
template void Affine(int64_t, float, float, const float*, float*);
template void PowScalar(int64_t, const float*, double, float*);
template void Accumulate(int64_t, const float*, float*);
template bool AllFinite(int64_t, const float*);
template void Apply(Activation, int64_t, const float*, float*);
template void ApplyGrad(Activation, int64_t, const float*, const float*, bool,
                        float*, float*);

template void Apply(Unary, int64_t, const double*, double*);
template void Apply(Predicate, int64_t, const double*, bool*);
template void Affine(int64_t, double, double, const double*, double*);
template void PowScalar(int64_t, const double*, double, double*);
template void Accumulate(int64_t, const double*, double*);
template bool AllFinite(int64_t, const double*);
template void Apply(Activation, int64_t, const double*, double*);
template void ApplyGrad(Activation, int64_t, const double*, const double*, bool,
                        double*, double*);

template void Fill(int64_t, float, float*);
template void Fill(int64_t, double, double*);
template void Fill(int64_t, int32_t, int32_t*);
template void Fill(int64_t, int64_t, int64_t*);
template void Fill(int64_t, bool, bool*);

template void Convert(int64_t, const float*, float*);
template void Convert(int64_t, const float*, double*);
template void Convert(int64_t, const float*, int32_t*);
template void Convert(int64_t, const float*, int64_t*);
template void Convert(int64_t, const float*, bool*);
template void Convert(int64_t, const double*, float*);
template void Convert(int64_t, const double*, double*);
template void Convert(int64_t, const double*, int32_t*);
template void Convert(int64_t, const double*, int64_t*);
template void Convert(int64_t, const double*, bool*);
template void Convert(int64_t, const int32_t*, float*);
template void Convert(int64_t, const int32_t*, double*);
template void Convert(int64_t, const int32_t*, int32_t*);
template void Convert(int64_t, const int32_t*, int64_t*);
template void Convert(int64_t, const int32_t*, bool*);
template void Convert(int64_t, const int64_t*, float*);
template void Convert(int64_t, const int64_t*, double*);
template void Convert(int64_t, const int64_t*, int32_t*);
template void Convert(int64_t, const int64_t*, int64_t*);
template void Convert(int64_t, const int64_t*, bool*);
template void Convert(int64_t, const bool*, float*);
template void Convert(int64_t, const bool*, double*);
template void Convert(int64_t, const bool*, int32_t*);
template void Convert(int64_t, const bool*, int64_t*);
template void Convert(int64_t, const bool*, bool*);

}  // namespace wengert::kernels
