// x^p in the manner of vecmath.h, with the special cases of C's pow. Largest
// errors found, in units of the last place: of floats 0.51, which are computed
// in double, of doubles 0.79 (a result that is a
// double is exact). For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_VECMATH_POW_H_
#define WENGERT_AUTOGRAD_KERNELS_VECMATH_POW_H_

#include <bit>
#include <cmath>
#include <cstdint>

#include "absl/base/attributes.h"
#include "autograd/kernels/vecmath.h"

namespace wengert::kernels {

// hi + lo, |lo| <= ulp(hi) / 2 or so.
struct DoubleDouble {
  double hi, lo;
};

// ln a to 66 bits or so, for a > 0: e ln 2 + 2 s + 2/3 s^3 + .., where all but
// the tail of the series is carried in two parts.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline DoubleDouble LogParts(double a) {
  const bool denormal = a < 0x1p-1022;
  auto [e, f] = ReduceLog(Select(denormal, a * 0x1p54, a));
  e -= Select(denormal, 54.0, 0.0);
  // s = f / (2 + f)
  const double d = 2 + f, d_lo = f - (d - 2);
  const double inverse = 1 / d;
  const double s = f * inverse;
  const double s_lo = Fma(-s, d_lo, Fma(-s, d, f)) * inverse;
  const double z = s * s, z_lo = Fma(s, s, -z) + 2 * s * s_lo;
  double t = 0.11723178623876518;
  t = Fma(t, z, 0.11706236339491206);
  t = Fma(t, z, 0.1333480469384731);
  t = Fma(t, z, 0.1538459496251843);
  t = Fma(t, z, 0.18181818335392802);
  t = Fma(t, z, 0.22222222221655885);
  t = Fma(t, z, 0.28571428571429364);
  t = Fma(t, z, 0.4);
  // c = 2/3 + z t
  constexpr double kTwoThirds = 0x1.5555555555555p-1;
  const double tail = z * t;
  const double c = kTwoThirds + tail;
  const double c_lo =
      ((kTwoThirds - c) + tail) + Fma(z_lo, 0.4, 0x1.5555555555555p-55);
  // v = s z c
  const double g = s * z, g_lo = Fma(s, z, -g) + Fma(s, z_lo, s_lo * z);
  const double v = g * c, v_lo = Fma(g, c, -v) + Fma(g, c_lo, g_lo * c);
  // The sum, from the largest down.
  const double whole = e * 0x1.62e42fefa39efp-1;
  const double whole_lo =
      Fma(e, 0x1.abc9e3b39803fp-56, Fma(e, 0x1.62e42fefa39efp-1, -whole));
  const double sum1 = whole + 2 * s, lost1 = 2 * s - (sum1 - whole);
  const double sum2 = sum1 + v, lost2 = v - (sum2 - sum1);
  const double lo = lost1 + (lost2 + (whole_lo + Fma(2.0, s_lo, v_lo)));
  const double hi = sum2 + lo;
  return {hi, lo - (hi - sum2)};
}

// a^p for finite a > 0, where the result of double is not exact in one part.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline double PowOfPositive(double a, double p) {
  const auto [hi, lo] = LogParts(a);
  const double x = p * hi;
  const double low = Fma(p, lo, Fma(p, hi, -x));
  // Beyond, the result is 0 or infinite and `low` may be no number.
  const auto [m, s] = ExpParts(x, Select(std::fabs(x) < 1400, low, 0.0));
  return m * s;
}

// Likewise, to 32 bits.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline float PowOfPositive(float a, double p) {
  const auto [e, f] = ReduceLog(a);  // a denormal float is a normal double
  const double s = f / (2 + f);
  const double z = s * s;
  double w = 0.23330581938241893;
  w = Fma(w, z, 0.2855081659971155);
  w = Fma(w, z, 0.40000121876972);
  w = Fma(w, z, 0.6666666655445165);
  const double log = Fma(e, 0x1.62e42fefa39efp-1, s * Fma(z, w, 2.0));
  const auto [n, r] = ReduceExp(ClampMagnitude(p * log, 200.0));
  double q = 0.00019890990824673654;
  q = Fma(q, r, 0.0013933649996309251);
  q = Fma(q, r, 0.0083333109254809);
  q = Fma(q, r, 0.041666464925285904);
  q = Fma(q, r, 0.16666666681623232);
  q = Fma(q, r, 0.500000001346581);
  return static_cast<float>(Fma(q * r, r, 1 + r) * PowerOfTwo(n));
}

template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T Pow(T x, double p) {
  constexpr T kInf = HUGE_VAL;
  const T a = std::fabs(x);
  // At 0 and infinity by the sign of p: there the logarithm is infinite.
  T y = PowOfPositive(a, p);
  y = Select((a == 0) | (a == kInf), Select((a == 0) == (p > 0), T{0}, kInf),
             y);
  y = Select(a == 1, T{1}, y);
  y = Select((a != a) | (p != p), T(a + p), y);
  const bool whole = std::trunc(p) == p;
  const bool odd = whole & (std::trunc(0.5 * p) != 0.5 * p);
  y = Select(odd & (std::copysign(T{1}, x) < 0), -y, y);
  y = Select((x < 0) & (a < kInf) & !whole, T(NAN), y);
  return Select((p == 0) | (x == 1), T{1}, y);
}

// use(f) with f(x) = x^p: powers that are seen often are a few operations.
template <class T, class Use>
void WithPower(double p, Use use) {
  if (p == 0) return use([](T) { return T{1}; });
  if (p == 1) return use([](T x) { return x; });
  if (p == 2) return use([](T x) { return x * x; });
  if (p == 3) return use([](T x) { return x * x * x; });
  if (p == -1) return use([](T x) { return 1 / x; });
  if (p == -2) return use([](T x) { return (1 / x) * (1 / x); });
  if (p == 0.5) return use([](T x) { return std::sqrt(x); });
  if (p == -0.5) return use([](T x) { return 1 / std::sqrt(x); });
  if (p == -1.5) return use([](T x) { return 1 / x / std::sqrt(x); });
  use([p](T x) { return Pow(x, p); });
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_VECMATH_POW_H_
