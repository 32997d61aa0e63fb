// The error function and the normal distribution in the manner of vecmath.h.
// Largest errors found, in units of the last place: Erf 1.2, Erfc of floats 4.3
// and of doubles 4, in the right tail too. For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_VECMATH_ERF_H_
#define WENGERT_AUTOGRAD_KERNELS_VECMATH_ERF_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "absl/base/attributes.h"
#include "autograd/kernels/vecmath.h"

namespace wengert::kernels {

// e^(c a^2), c a negative power of 2 and c a^2 >= -150 (-800), without what
// rounding a^2 would lose.
template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline ScaledExp<T> ExpOfSquare(T c, T a) {
  constexpr bool kFloat = std::is_same_v<T, float>;
  // ln 2 in two parts: a whole number times the first is exact.
  constexpr T kHigh = kFloat ? 0x1.62e4p-1 : 0x1.62e42feep-1;
  constexpr T kLow = kFloat ? 0x1.7f7d1cf8p-20f : 0x1.a39ef35793c76p-33;
  constexpr T kRound = kFloat ? 0x1.8p23 : 0x1.8p52;
  const T b = c * a;
  const T t = Fma<T>(a * b, 1.4426950408889634, kRound);
  const T n = t - kRound;
  const T r = Fma(-n, kLow, Fma(a, b, -n * kHigh));
  using Bits = std::conditional_t<kFloat, uint32_t, uint64_t>;
  return SmallExpParts(std::bit_cast<Bits>(t) - std::bit_cast<Bits>(kRound), r);
}

// e^(a^2) erfc(a) for w = sqrt(pi) a in [0, 22] (52). In the form p / (w p + u)
// a rounding of p matters the less the larger w is; the polynomials are by
// Remez' algorithm, their common factor is chosen for the least rounding, and
// at 0 they are equal, where erfc is 1.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline float ScaledErfc(float w) {
  float p = 0.00754009066f;
  p = Fma(p, w, 0.0874071775f);
  p = Fma(p, w, 0.471052401f);
  p = Fma(p, w, 1.35590336f);
  p = Fma(p, w, 1.84f);
  float u = 6.51948765e-7f;
  u = Fma(u, w, 0.0118030386f);
  u = Fma(u, w, 0.138362097f);
  u = Fma(u, w, 0.687285748f);
  u = Fma(u, w, 1.84f);
  return p / Fma(w, p, u);
}
ABSL_ATTRIBUTE_ALWAYS_INLINE inline double ScaledErfc(double w) {
  double p = 1.1464610511136127e-7;
  p = Fma(p, w, 4.2996019894490305e-6);
  p = Fma(p, w, 7.9652149922822284e-5);
  p = Fma(p, w, 0.00094600784435154198);
  p = Fma(p, w, 0.0079117976100156988);
  p = Fma(p, w, 0.048465445481839974);
  p = Fma(p, w, 0.21982578071389771);
  p = Fma(p, w, 0.7296017515281077);
  p = Fma(p, w, 1.7025812571873726);
  p = Fma(p, w, 2.5440628953534227);
  p = Fma(p, w, 1.88);
  double u = 1.8008568077797779e-7;
  u = Fma(u, w, 6.7537990147043485e-6);
  u = Fma(u, w, 0.00012455154833932588);
  u = Fma(u, w, 0.0014647679833822685);
  u = Fma(u, w, 0.012039197482068704);
  u = Fma(u, w, 0.071627657193892363);
  u = Fma(u, w, 0.3092930818841852);
  u = Fma(u, w, 0.94163181812747);
  u = Fma(u, w, 1.860908067404477);
  u = Fma(u, w, 1.88);
  return p / Fma(w, p, u);
}

template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T Erfc(T x) {
  const T a = Magnitude<T>(x, std::is_same_v<T, float> ? 12 : 28);
  const auto [m, s] = ExpOfSquare<T>(-1, a);
  const T y = ScaledErfc(a * T(1.7724538509055160)) * m;
  return Select(x < 0, Fma(y, -s, T{2}), y * s);
}

// erf(x) / x - 1 for z = x^2 <= 1.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline float ReducedErf(float z) {
  float p = 7.80690389e-05f;
  p = Fma(p, z, -0.00079978531f);
  p = Fma(p, z, 0.0051871622f);
  p = Fma(p, z, -0.0268533472f);
  p = Fma(p, z, 0.112835787f);
  p = Fma(p, z, -0.37612626f);
  return Fma(p, z, 0.128379166f);
}
ABSL_ATTRIBUTE_ALWAYS_INLINE inline double ReducedErf(double z) {
  double p = 5.9571761477489114e-11;
  p = Fma(p, z, -1.1372848856791674e-09);
  p = Fma(p, z, 1.4659775274047436e-08);
  p = Fma(p, z, -1.6350312701054695e-07);
  p = Fma(p, z, 1.6461000484121368e-06);
  p = Fma(p, z, -1.4925595266831182e-05);
  p = Fma(p, z, 0.00012055331111642711);
  p = Fma(p, z, -0.00085483269808337899);
  p = Fma(p, z, 0.0052239776248180145);
  p = Fma(p, z, -0.026866170645076793);
  p = Fma(p, z, 0.11283791670954879);
  p = Fma(p, z, -0.37612638903183748);
  return Fma(p, z, 0.12837916709551257);
}

template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T Erf(T x) {
  const T near = Fma(ReducedErf(x * x), x, x);
  const T a = std::fabs(x);
  return Select(a < 1, near, std::copysign(1 - Erfc(a), x));
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_VECMATH_ERF_H_
