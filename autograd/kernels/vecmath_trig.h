// sin, cos and the angle of a point, in the manner of vecmath.h. Largest errors
// found, in units of the last place: of floats, which are computed in double
// and rounded once, 0.51; of doubles, Sin and Cos 0.78, Atan2 1.95. For .cc
// files.
#ifndef WENGERT_AUTOGRAD_KERNELS_VECMATH_TRIG_H_
#define WENGERT_AUTOGRAD_KERNELS_VECMATH_TRIG_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "absl/base/attributes.h"
#include "autograd/kernels/vecmath.h"

namespace wengert::kernels {

// Sin and Cos hold for |x| up to here; beyond, where the turns that are taken
// away need more digits of pi, libm has its say.
template <class T>
inline constexpr T kSinLimit = std::is_same_v<T, float> ? 0x1p30 : 0x1p26;

// pi/2 = kHalfPi1 + kHalfPi2 + kHalfPi3 to 160 bits.
inline constexpr double kHalfPi1 = 0x1.921fb54442d18p+0;
inline constexpr double kHalfPi2 = 0x1.1a62633145c07p-54;
inline constexpr double kHalfPi3 = -0x1.f1976b7ed8fbcp-110;

// For rounding to whole numbers; the low bits of the sum hold the number.
inline constexpr double kRoundDouble = 0x1.8p52;

// y with its sign turned where the lowest bit of `bits` is set.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline double FlipSign(double y, uint64_t bits) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(y) ^ (bits << 63));
}

// sin r for |r| <= pi/2 to 33 bits.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline double SinForFloat(double r) {
  const double z = r * r;
  double p = -2.407828263191349e-08;
  p = Fma(p, z, 2.7536381067442063e-06);
  p = Fma(p, z, -0.00019841085469334525);
  p = Fma(p, z, 0.008333332764254275);
  p = Fma(p, z, -0.16666666663853422);
  return r * Fma(p, z, 1.0);
}

// x = k pi + r: sin x = (-1)^k sin r
ABSL_ATTRIBUTE_ALWAYS_INLINE inline float Sin(float x) {
  const double t = Fma<double>(x, 0x1.45f306dc9c883p-2, kRoundDouble);
  const double k = t - kRoundDouble;
  const double r = Fma(-k, 2 * kHalfPi2, Fma<double>(-k, 2 * kHalfPi1, x));
  return static_cast<float>(
      FlipSign(SinForFloat(r), std::bit_cast<uint64_t>(t)));
}

// x = (k + 1/2) pi + r: cos x = -(-1)^k sin r
ABSL_ATTRIBUTE_ALWAYS_INLINE inline float Cos(float x) {
  const double t = Fma<double>(x, 0x1.45f306dc9c883p-2, -0.5) + kRoundDouble;
  const double k = 2 * (t - kRoundDouble) + 1;
  const double r = Fma(-k, kHalfPi2, Fma<double>(-k, kHalfPi1, x));
  return static_cast<float>(
      FlipSign(SinForFloat(r), ~std::bit_cast<uint64_t>(t)));
}

// Both at r + low, |r| <= pi/4, |low| <= ulp(r).
struct SinCosPair {
  double sin, cos;
};
ABSL_ATTRIBUTE_ALWAYS_INLINE inline SinCosPair ReducedSinCos(double r,
                                                             double low) {
  const double z = r * r;
  double p = -7.586576588171073e-13;
  p = Fma(p, z, 1.6058529572267877e-10);
  p = Fma(p, z, -2.5052106219521895e-08);
  p = Fma(p, z, 2.755731921930192e-06);
  p = Fma(p, z, -0.00019841269841265017);
  p = Fma(p, z, 0.008333333333333331);
  p = Fma(p, z, -0.16666666666666666);
  double q = -1.1382456778061306e-11;
  q = Fma(q, z, 2.0876143827993133e-09);
  q = Fma(q, z, -2.7557317260008837e-07);
  q = Fma(q, z, 2.480158729874307e-05);
  q = Fma(q, z, -0.0013888888888887382);
  q = Fma(q, z, 0.041666666666666664);
  // 1 - z/2 is rounded to `head`; what that loses goes with the small terms.
  const double half = 0.5 * z, head = 1 - half;
  const double tail = Fma(z * z, q, ((1 - head) - half) - r * low);
  return {r + Fma(r * z, p, Fma(-half, low, low)), head + tail};
}

// The sine of x + quarters pi/2.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline double SinOfQuarters(double x,
                                                         uint64_t quarters) {
  const double t = Fma(x, 0x1.45f306dc9c883p-1, kRoundDouble);
  const double k = t - kRoundDouble;
  // x - k pi/2 in two parts: the first difference is exact.
  const double r0 = Fma(-k, kHalfPi1, x);
  const double w = k * kHalfPi2;
  const double r = r0 - w;
  const double back = r - r0;
  const double lost = (r0 - (r - back)) - (w + back);
  const double low = lost - Fma(k, kHalfPi3, Fma(k, kHalfPi2, -w));
  const auto [sin, cos] = ReducedSinCos(r, low);
  const uint64_t quadrant = std::bit_cast<uint64_t>(t) + quarters;
  return FlipSign(Select((quadrant & 1) != 0, cos, sin), quadrant >> 1);
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline double Sin(double x) {
  return Select(x == 0, x, SinOfQuarters(x, 0));  // -0 too
}
ABSL_ATTRIBUTE_ALWAYS_INLINE inline double Cos(double x) {
  return SinOfQuarters(x, 1);
}

// atan(t) - t for |t| <= tan(pi/8), to 33 bits of atan(t) or all.
template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline double ReducedAtan(double t) {
  const double z = t * t;
  double p;
  if constexpr (std::is_same_v<T, float>) {
    p = 0.05047937432040091;
    p = Fma(p, z, -0.08624598215196126);
    p = Fma(p, z, 0.11071354571201351);
    p = Fma(p, z, -0.14284150629730288);
    p = Fma(p, z, 0.1999997724823353);
    p = Fma(p, z, -0.3333333327922454);
  } else {
    p = 0.016284375050043393;
    p = Fma(p, z, -0.03456931506332609);
    p = Fma(p, z, 0.045515447340221615);
    p = Fma(p, z, -0.05230443640686948);
    p = Fma(p, z, 0.05878927554473807);
    p = Fma(p, z, -0.0666642476020052);
    p = Fma(p, z, 0.07692296368042296);
    p = Fma(p, z, -0.09090908753259112);
    p = Fma(p, z, 0.11111111105150588);
    p = Fma(p, z, -0.14285714285659779);
    p = Fma(p, z, 0.19999999999999804);
    p = Fma(p, z, -0.3333333333333333);
  }
  return t * z * p;
}

// The angle of (x, y) in [-pi, pi], -0 and infinities as in C.
template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T Atan2(T y_given, T x_given) {
  const double x = x_given, y = y_given;
  const double ax = std::fabs(x), ay = std::fabs(y);
  const bool steep = ay > ax;
  double large = Select(steep, ay, ax), small = Select(steep, ax, ay);
  // The angle below the diagonal is atan(small / large); where that is above
  // tan(pi/8), it is pi/4 - atan((large - small) / (large + small)).
  const double scale = Select(large > 0x1p1020, 0.25, 1.0);
  large *= scale;
  small *= scale;
  const bool infinite = (small == HUGE_VAL) & (large == HUGE_VAL);
  const bool wide = (small > 0.41421356237309503 * large) | infinite;
  double t =
      Select(wide, small - large, small) / Select(wide, large + small, large);
  t = Select((ax + ay == 0) | infinite, 0.0, t);
  // The rest is k quarters of pi and +-atan(t).
  double k = Select(wide, 1.0, 0.0), sign = 1;
  k = Select(steep, 2 - k, k);
  sign = Select(steep, -sign, sign);
  const bool left = std::copysign(1.0, x) < 0;
  k = Select(left, 4 - k, k);
  sign = Select(left, -sign, sign);
  const double rest = Fma(k, kHalfPi2 / 2, sign * ReducedAtan<T>(t));
  // k pi/4 + t has an exact error term, since t is the smaller.
  const double base = k * (kHalfPi1 / 2);
  const double angle = base + Fma(sign, t, Fma(k, kHalfPi1 / 2, -base) + rest);
  return static_cast<T>(std::copysign(angle, y));
}

// The real part of 1 / (a + ib): 0 at (0, 0) and at infinity.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline float ReciprocalReal(float a, float b) {
  const double u = a, v = b, square = u * u + v * v;
  const double y = u / square;
  return static_cast<float>(
      Select((square == 0) | (square == HUGE_VAL), 0.0, y));
}
// Scaled, so that no square overflows.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline double ReciprocalReal(double a, double b) {
  const double x = std::fabs(a), y = std::fabs(b), large = Select(y > x, y, x);
  const double u = a / large, v = b / large;
  const double r = u / (u * u + v * v) / large;
  const bool limit = ((large == 0) | (large == HUGE_VAL)) & (a == a) & (b == b);
  return Select(limit, 0.0, r);
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_VECMATH_TRIG_H_
