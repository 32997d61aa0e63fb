#include "autograd/kernels/rotary.h"

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

template <class T>
class RotaryTest : public testing::Test {
 protected:
  static constexpr double kTolerance = std::is_same_v<T, float> ? 5e-7 : 1e-13;
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(RotaryTest, Types);

template <class T>
struct Angles {
  std::vector<T> cos, sin;
};
template <class T>
Angles<T> AnglesOf(int64_t length, int64_t pairs, int64_t offset) {
  Angles<T> a = {std::vector<T>(length * pairs, T(NAN)),
                 std::vector<T>(length * pairs, T(NAN))};
  RotaryAngles<T>(length, pairs, offset, 10000, a.cos.data(), a.sin.data());
  return a;
}

TYPED_TEST(RotaryTest, AnglesAreCosAndSin) {
  for (int64_t pairs : {0, 1, 7, 16, 33}) {
    for (int64_t offset : {0, 5, 16, 100000}) {
      for (int64_t length : {0, 1, 3, 16, 50}) {
        const auto a = AnglesOf<TypeParam>(length, pairs, offset);
        for (int64_t t = 0; t < length; ++t) {
          for (int64_t i = 0; i < pairs; ++i) {
            const double frequency =
                std::pow(10000., -static_cast<double>(i) / pairs);
            const double angle = static_cast<double>(offset + t) * frequency;
            // An angle of 1e5 in double is known to 1e-11.
            const double tolerance = this->kTolerance + 2e-16 * angle;
            ASSERT_NEAR(a.cos[t * pairs + i], std::cos(angle), tolerance);
            ASSERT_NEAR(a.sin[t * pairs + i], std::sin(angle), tolerance);
          }
        }
      }
    }
  }
}

TYPED_TEST(RotaryTest, AnglesDependOnPositionAndPairAlone) {
  const auto far = AnglesOf<TypeParam>(9, 5, 40);
  const auto all = AnglesOf<TypeParam>(60, 5, 0);
  ExpectSameBits(far.cos, {all.cos.begin() + 200, all.cos.begin() + 245});
  ExpectSameBits(far.sin, {all.sin.begin() + 200, all.sin.begin() + 245});
}

TYPED_TEST(RotaryTest, TurnsPairsAndLeavesTheRest) {
  using T = TypeParam;
  for (const bool interleaved : {false, true}) {
    for (const bool inverse : {false, true}) {
      for (int64_t pairs : {0, 1, 5, 8, 16, 19}) {
        for (int64_t rest : {0, 3}) {
          const RotarySizes s = {2, 3, 2, 2 * pairs + rest, pairs, interleaved};
          const int64_t n = s.batch * s.length * s.heads * s.width;
          const auto x = RandomVector<T>(n, 1);
          const auto c = RandomVector<T>(s.length * pairs, 2, -1, 1);
          const auto v = RandomVector<T>(s.length * pairs, 3, -1, 1);
          std::vector<T> y(n, T(NAN)), sum(n, T(10)), in_place = x;
          Rotary<T>(s, inverse, c.data(), v.data(), x.data(), false, y.data());
          Rotary<T>(s, inverse, c.data(), v.data(), x.data(), true, sum.data());
          Rotary<T>(s, inverse, c.data(), v.data(), in_place.data(), false,
                    in_place.data());
          ExpectSameBits(in_place, y);
          std::vector<double> expected(x.begin(), x.end());
          for (int64_t row = 0; row < s.batch * s.length * s.heads; ++row) {
            const int64_t t = row / s.heads % s.length;
            for (int64_t i = 0; i < pairs; ++i) {
              const int64_t first = row * s.width + (interleaved ? 2 * i : i);
              const int64_t second = first + (interleaved ? 1 : pairs);
              const double cos = c[t * pairs + i];
              const double sin = v[t * pairs + i] * (inverse ? -1. : 1.);
              const double a = x[first], b = x[second];
              expected[first] = a * cos - b * sin;
              expected[second] = b * cos + a * sin;
            }
          }
          for (int64_t i = 0; i < n; ++i) {
            ASSERT_NEAR(y[i], expected[i], this->kTolerance) << i;
            ASSERT_NEAR(sum[i], 10 + expected[i], 4 * this->kTolerance) << i;
          }
        }
      }
    }
  }
}

TYPED_TEST(RotaryTest, NanStaysInItsPair) {
  using T = TypeParam;
  const RotarySizes s = {1, 1, 1, 40, 20, false};
  std::vector<T> x(40, 1), y(40);
  x[23] = T(NAN);
  const std::vector<T> half(20, T(0.5));
  Rotary<T>(s, false, half.data(), half.data(), x.data(), false, y.data());
  for (int i = 0; i < 40; ++i) EXPECT_EQ(std::isnan(y[i]), i % 20 == 3) << i;
}

TEST(RotaryBitsTest, SameBitsForAnyNumberOfThreads) {
  const RotarySizes s = {2, 301, 3, 34, 16, true};
  const auto x = RandomVector<float>(2 * 301 * 3 * 34, 1);
  ExpectSameBitsForAnyThreads([&] {
    const auto a = AnglesOf<float>(301, 16, 3);
    std::vector<float> y(x.size());
    Rotary<float>(s, false, a.cos.data(), a.sin.data(), x.data(), false,
                  y.data());
    y.insert(y.end(), a.cos.begin(), a.cos.end());
    y.insert(y.end(), a.sin.begin(), a.sin.end());
    return y;
  });
}

}  // namespace
}  // namespace wengert::kernels
