// The functions that random fills apply to groups of numbers in double, written
// without branches, so that the compiler turns loops over them into vector
// code. Fused products are spelled out: the bits are the same everywhere.
#ifndef WENGERT_AUTOGRAD_RANDOM_MATH_H_
#define WENGERT_AUTOGRAD_RANDOM_MATH_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "absl/base/attributes.h"

namespace wengert::internal {

// Elements drawn at a time.
constexpr int kGroup = 32;

// x < 2^53 as a double: no processor before AVX-512 converts 64-bit integers by
// the vector.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline double ToDouble(uint64_t x) {
  const double high = std::bit_cast<double>(x >> 32 | 0x4530000000000000);
  const double low =
      std::bit_cast<double>((x & 0xFFFFFFFF) | uint64_t{0x4330000000000000});
  return (high - (0x1p84 + 0x1p52)) + low;
}

// ln x for a normal x > 0: x = 2^e m with m in [sqrt 1/2, sqrt 2), and
// ln m = 2 artanh((m - 1) / (m + 1)), by its series.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline double LogOf(double x) {
  constexpr uint64_t kRootHalf = 0x3FE6A09E667F3BCD, kOne = uint64_t{1} << 52;
  const uint64_t i = std::bit_cast<uint64_t>(x) - kRootHalf + 1023 * kOne;
  const double e =
      std::bit_cast<double>(i >> 52 | 0x4330000000000000) - (0x1p52 + 1023);
  const double m = std::bit_cast<double>((i & (kOne - 1)) + kRootHalf);
  const double s = (m - 1) / (m + 1), z = s * s;
  double sum = 1. / 23;
  sum = std::fma(sum, z, 1. / 21);
  sum = std::fma(sum, z, 1. / 19);
  sum = std::fma(sum, z, 1. / 17);
  sum = std::fma(sum, z, 1. / 15);
  sum = std::fma(sum, z, 1. / 13);
  sum = std::fma(sum, z, 1. / 11);
  sum = std::fma(sum, z, 1. / 9);
  sum = std::fma(sum, z, 1. / 7);
  sum = std::fma(sum, z, 1. / 5);
  sum = std::fma(sum, z, 1. / 3);
  return std::fma(e, std::numbers::ln2, std::fma(2 * s * z, sum, 2 * s));
}

// The cosine and sine of v turns, v in [0, 1): of the nearest quarter and what
// is left, at most 1/8, by their series.
struct Turn {
  double cosine, sine;
};
ABSL_ATTRIBUTE_ALWAYS_INLINE inline Turn TurnOf(double v) {
  const double rounded = 4 * v + 0x1.8p52;
  const uint64_t quarter = std::bit_cast<uint64_t>(rounded);
  const double x = (4 * v - (rounded - 0x1.8p52)) * (std::numbers::pi / 2);
  const double z = x * x;
  double s = 1, c = 1;
  s = std::fma(-z * (1. / 272), s, 1.0);
  s = std::fma(-z * (1. / 210), s, 1.0);
  s = std::fma(-z * (1. / 156), s, 1.0);
  s = std::fma(-z * (1. / 110), s, 1.0);
  s = std::fma(-z * (1. / 72), s, 1.0);
  s = std::fma(-z * (1. / 42), s, 1.0);
  s = std::fma(-z * (1. / 20), s, 1.0);
  s = std::fma(-z * (1. / 6), s, 1.0);
  s *= x;
  c = std::fma(-z * (1. / 240), c, 1.0);
  c = std::fma(-z * (1. / 182), c, 1.0);
  c = std::fma(-z * (1. / 132), c, 1.0);
  c = std::fma(-z * (1. / 90), c, 1.0);
  c = std::fma(-z * (1. / 56), c, 1.0);
  c = std::fma(-z * (1. / 30), c, 1.0);
  c = std::fma(-z * (1. / 12), c, 1.0);
  c = std::fma(-z * (1. / 2), c, 1.0);
  // An odd quarter has them exchanged; the signs follow.
  const auto sine = std::bit_cast<uint64_t>(s);
  const auto cosine = std::bit_cast<uint64_t>(c);
  const uint64_t exchange = (sine ^ cosine) & -(quarter & 1);
  return {std::bit_cast<double>(cosine ^ exchange ^ ((quarter + 1) & 2) << 62),
          std::bit_cast<double>(sine ^ exchange ^ (quarter & 2) << 62)};
}

// The polynomial with these coefficients, the constant first.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline double Polynomial(const double (&c)[8],
                                                      double x) {
  double sum = std::fma(c[7], x, c[6]);
  sum = std::fma(sum, x, c[5]);
  sum = std::fma(sum, x, c[4]);
  sum = std::fma(sum, x, c[3]);
  sum = std::fma(sum, x, c[2]);
  sum = std::fma(sum, x, c[1]);
  return std::fma(sum, x, c[0]);
}

// z with P(normal < z) = p for a group of p in [1e-307, 1/2], to about 1e-15 of
// z: M. Wichura, "Algorithm AS 241", Applied Statistics 37 (1988). Loop by
// loop, so that no branch chooses among the three forms.
inline void NormalQuantiles(const double* p, double* z) {
  constexpr double kMiddle[] = {
      3.3871328727963666080e0,  1.3314166789178437745e+2,
      1.9715909503065514427e+3, 1.3731693765509461125e+4,
      4.5921953931549871457e+4, 6.7265770927008700853e+4,
      3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr double kMiddleBelow[] = {1,
                                     4.2313330701600911252e+1,
                                     6.8718700749205790830e+2,
                                     5.3941960214247511077e+3,
                                     2.1213794301586595867e+4,
                                     3.9307895800092710610e+4,
                                     2.8729085735721942674e+4,
                                     5.2264952788528545610e+3};
  constexpr double kTail[] = {
      1.42343711074968357734e0,  4.63033784615654529590e0,
      5.76949722146069140550e0,  3.64784832476320460504e0,
      1.27045825245236838258e0,  2.41780725177450611770e-1,
      2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double kTailBelow[] = {1,
                                   2.05319162663775882187e0,
                                   1.67638483018380384940e0,
                                   6.89767334985100004550e-1,
                                   1.48103976427480074590e-1,
                                   1.51986665636164571966e-2,
                                   5.47593808499534494600e-4,
                                   1.05075007164441684324e-9};
  constexpr double kFar[] = {
      6.65790464350110377720e0,  5.46378491116411436990e0,
      1.78482653991729133580e0,  2.96560571828504891230e-1,
      2.65321895265761230930e-2, 1.24266094738807843860e-3,
      2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double kFarBelow[] = {1,
                                  5.99832206555887937690e-1,
                                  1.36929880922735805310e-1,
                                  1.48753612908506148525e-2,
                                  7.86869131145613259100e-4,
                                  1.84631831751005468180e-5,
                                  1.42151175831644588870e-7,
                                  2.04426310338993978564e-15};
  double root[kGroup], middle[kGroup], tail[kGroup], far[kGroup];
  for (int l = 0; l < kGroup; ++l) root[l] = std::sqrt(-LogOf(p[l]));
  for (int l = 0; l < kGroup; ++l) {
    const double q = p[l] - 0.5, x = 0.180625 - q * q;
    middle[l] = q * (Polynomial(kMiddle, x) / Polynomial(kMiddleBelow, x));
  }
  for (int l = 0; l < kGroup; ++l) {
    const double x = root[l] - 1.6;
    tail[l] = -Polynomial(kTail, x) / Polynomial(kTailBelow, x);
  }
  for (int l = 0; l < kGroup; ++l) {
    const double x = root[l] - 5;
    far[l] = -Polynomial(kFar, x) / Polynomial(kFarBelow, x);
  }
  for (int l = 0; l < kGroup; ++l) {
    const double outer = root[l] <= 5 ? tail[l] : far[l];
    z[l] = p[l] >= 0.075 ? middle[l] : outer;
  }
}

}  // namespace wengert::internal

#endif  // WENGERT_AUTOGRAD_RANDOM_MATH_H_
