#include "autograd/kernels/rotary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <type_traits>

#include "absl/base/attributes.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/scratch.h"
#include "autograd/kernels/vecmath.h"
#include "autograd/parallel.h"

namespace wengert::kernels {
namespace {

struct CosSin {
  double cos, sin;
};

// For |angle| up to 2^30, without branches: a multiple of pi/2 is taken off in
// two parts, and the rest goes through Taylor's series, whose next term is
// below 1e-17.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline CosSin CosSinOf(double angle) {
  constexpr double kRound = 0x1.8p52;  // adding it rounds to an integer
  constexpr double kHalfPi = std::numbers::pi / 2;
  constexpr double kRest = 6.123233995736766e-17;  // pi/2 - kHalfPi
  const double shifted = Fma(angle, 2 / std::numbers::pi, kRound);
  const double n = shifted - kRound;
  const double r = Fma(-n, kRest, Fma(-n, kHalfPi, angle));
  const double z = r * r;
  double s = 1 / 355687428096000.0;  // 17!
  s = Fma(s, z, -1 / 1307674368000.0);
  s = Fma(s, z, 1 / 6227020800.0);
  s = Fma(s, z, -1 / 39916800.0);
  s = Fma(s, z, 1 / 362880.0);
  s = Fma(s, z, -1 / 5040.0);
  s = Fma(s, z, 1 / 120.0);
  s = Fma(s, z, -1 / 6.0);
  s = Fma(s * z, r, r);
  double c = 1 / 20922789888000.0;  // 16!
  c = Fma(c, z, -1 / 87178291200.0);
  c = Fma(c, z, 1 / 479001600.0);
  c = Fma(c, z, -1 / 3628800.0);
  c = Fma(c, z, 1 / 40320.0);
  c = Fma(c, z, -1 / 720.0);
  c = Fma(c, z, 1 / 24.0);
  c = Fma(c, z, -0.5);
  c = Fma(c, z, 1.0);
  const uint64_t quadrant = std::bit_cast<uint64_t>(shifted);
  const bool odd = quadrant & 1;
  const auto negate_if = [](uint64_t bit, double v) {
    return std::bit_cast<double>(std::bit_cast<uint64_t>(v) ^ (bit << 63));
  };
  return {negate_if((quadrant + 1) >> 1 & 1, Select(odd, s, c)),
          negate_if(quadrant >> 1 & 1, Select(odd, c, s))};
}

void CosSinRow(int64_t position, int64_t pairs, const double* frequency,
               double* cos, double* sin) {
  const double p = static_cast<double>(position);
  WENGERT_INDEPENDENT
  for (int64_t i = 0; i < pairs; ++i) {
    const CosSin v = CosSinOf(p * frequency[i]);
    cos[i] = v.cos;
    sin[i] = v.sin;
  }
}

}  // namespace

template <class T>
void RotaryAngles(int64_t length, int64_t pairs, int64_t offset, double base,
                  T* cos, T* sin) {
  const Scratch<double> frequencies(pairs);
  double* const frequency = frequencies.data();
  for (int64_t i = 0; i < pairs; ++i) {
    frequency[i] =
        std::pow(base, -static_cast<double>(i) / static_cast<double>(pairs));
  }
  if constexpr (std::is_same_v<T, double>) {
    ParallelFor(length, GrainOf(length, 8 * pairs),
                [=](int64_t begin, int64_t end) {
                  for (int64_t t = begin; t < end; ++t) {
                    CosSinRow(offset + t, pairs, frequency, cos + t * pairs,
                              sin + t * pairs);
                  }
                });
  } else {
    // For float the angle of position p is that of p - p % kStep and that of
    // p % kStep together.
    constexpr int64_t kStep = 16;
    const Scratch<double> near(2 * kStep * pairs);
    double *const near_cos = near.data(), *const near_sin =
                                              near_cos + kStep * pairs;
    for (int64_t k = 0; k < kStep; ++k) {
      if (length < kStep && (k - offset % kStep + kStep) % kStep >= length) {
        continue;  // no position needs it
      }
      CosSinRow(k, pairs, frequency, near_cos + k * pairs,
                near_sin + k * pairs);
    }
    const int64_t first = offset / kStep;
    const int64_t blocks = CeilDiv(offset + length, kStep) - first;
    ParallelFor(
        blocks, GrainOf(blocks, 2 * kStep * pairs),
        [=](int64_t begin, int64_t end) {
          const Scratch<double> far(2 * pairs);
          double *const far_cos = far.data(), *const far_sin = far_cos + pairs;
          for (int64_t q = first + begin; q < first + end; ++q) {
            CosSinRow(q * kStep, pairs, frequency, far_cos, far_sin);
            const int64_t last = std::min(offset + length, (q + 1) * kStep);
            for (int64_t p = std::max(offset, q * kStep); p < last; ++p) {
              const double* const c = near_cos + p % kStep * pairs;
              const double* const s = near_sin + p % kStep * pairs;
              T* const to_cos = cos + (p - offset) * pairs;
              T* const to_sin = sin + (p - offset) * pairs;
              WENGERT_INDEPENDENT
              for (int64_t i = 0; i < pairs; ++i) {
                to_cos[i] =
                    static_cast<T>(Fma(far_cos[i], c[i], -far_sin[i] * s[i]));
                to_sin[i] =
                    static_cast<T>(Fma(far_sin[i], c[i], far_cos[i] * s[i]));
              }
            }
          }
        });
  }
}

template <class T>
void Rotary(const RotarySizes& sizes, bool inverse, const T* cos, const T* sin,
            const T* x, bool accumulate, T* y) {
  const auto [batch, length, heads, width, pairs, interleaved] = sizes;
  const int64_t rows = batch * length;
  const T sign = inverse ? -1 : 1;
  const auto turn_row = [=, pairs = pairs](const T* c, const T* s,
                                           const T* from, T* to, auto step,
                                           int64_t distance, auto add) {
    WENGERT_INDEPENDENT
    for (int64_t i = 0; i < pairs; ++i) {
      const T a = from[i * step], b = from[i * step + distance];
      const T turn = sign * s[i];
      const T first = a * c[i] - b * turn, second = b * c[i] + a * turn;
      T *const y0 = to + i * step, *const y1 = y0 + distance;
      *y0 = add ? *y0 + first : first;
      *y1 = add ? *y1 + second : second;
    }
  };
  using One = std::integral_constant<int64_t, 1>;
  using Two = std::integral_constant<int64_t, 2>;
  const auto turn = [=, pairs = pairs, interleaved = interleaved](
                        const T* c, const T* s, const T* from, T* to,
                        auto add) {
    interleaved ? turn_row(c, s, from, to, Two(), 1, add)
                : turn_row(c, s, from, to, One(), pairs, add);
  };
  const auto run = [=, length = length, heads = heads, width = width,
                    pairs = pairs](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T *const c = cos + r % length * pairs, *const s =
                                                       sin + r % length * pairs;
      for (int64_t h = 0; h < heads; ++h) {
        const T* const from = x + (r * heads + h) * width;
        T* const to = y + (r * heads + h) * width;
        accumulate ? turn(c, s, from, to, std::true_type())
                   : turn(c, s, from, to, std::false_type());
        const auto rest = [=](int64_t j) { return from[2 * pairs + j]; };
        WriteRow(width - 2 * pairs, accumulate, rest, to + 2 * pairs);
      }
    }
  };
  ParallelFor(rows, GrainOf(rows, heads * width), run);
}

template void RotaryAngles(int64_t, int64_t, int64_t, double, float*, float*);
template void RotaryAngles(int64_t, int64_t, int64_t, double, double*, double*);
template void Rotary(const RotarySizes&, bool, const float*, const float*,
                     const float*, bool, float*);
template void Rotary(const RotarySizes&, bool, const double*, const double*,
                     const double*, bool, double*);

}  // namespace wengert::kernels
