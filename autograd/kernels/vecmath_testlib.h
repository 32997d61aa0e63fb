// Errors of elementary functions, in units of the last place.
#ifndef WENGERT_AUTOGRAD_KERNELS_VECMATH_TESTLIB_H_
#define WENGERT_AUTOGRAD_KERNELS_VECMATH_TESTLIB_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "autograd/random.h"
#include "gtest/gtest.h"

namespace wengert::kernels {

// The distance between numbers of type T at x.
template <class T>
long double Ulp(long double x) {
  using Limits = std::numeric_limits<T>;
  int exponent;
  std::frexp(std::fmax(std::fabs(x), (long double){Limits::min()}), &exponent);
  return std::ldexp(1.0L, exponent - Limits::digits);
}

// Numbers where functions have their edges.
template <class T>
std::vector<T> SpecialNumbers() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> all = {Limits::quiet_NaN()};
  for (T x : {T{0}, T{1}, T{2}, T{3}, T{0.5}, T{1e20}, Limits::min(),
              Limits::denorm_min(), Limits::max(), Limits::infinity()}) {
    all.push_back(x);
    all.push_back(-x);
  }
  return all;
}

// Number i of a sequence over all bit patterns.
template <class T>
T AnyNumber(uint64_t seed, uint64_t i) {
  const auto block = Philox::Block(seed, i, 0);
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(block[0]);
  } else {
    return std::bit_cast<double>(uint64_t{block[0]} << 32 | block[1]);
  }
}

// Fails unless `got` is within max_ulp of `want`; where that is no number, is
// infinite as a T or is 0, `got` must be just that. `at` describes the
// arguments.
template <class T, class At>
void ExpectWithinUlp(T got, long double want, double max_ulp, const At& at) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(want)) {
    ASSERT_TRUE(std::isnan(got)) << at() << ": " << got;
  } else if (std::isinf(rounded) || std::isinf(got) || want == 0) {
    ASSERT_EQ(got, rounded) << at();
    ASSERT_EQ(std::signbit(got), std::signbit(rounded)) << at();
  } else {
    ASSERT_LE(std::fabs(got - want) / Ulp<T>(want), max_ulp)
        << at() << ": " << got << " for " << want;
  }
}

// f(x) and reference(x) at the special numbers, over all numbers and over
// [lo, hi].
template <class T, class F, class Reference>
void CheckFunction(F f, Reference reference, double lo, double hi,
                   double max_ulp) {
  constexpr int64_t kN = 100000;
  std::vector<T> all = SpecialNumbers<T>();
  for (int64_t i = 0; i < kN; ++i) {
    all.push_back(AnyNumber<T>(1, i));
    all.push_back(static_cast<T>(lo + (hi - lo) * Uniform01(2, 0, i)));
  }
  for (T x : all) {
    ExpectWithinUlp<T>(f(x), reference(static_cast<long double>(x)), max_ulp,
                       [&] { return x; });
    if (testing::Test::HasFatalFailure()) return;
  }
}

// f(x, y) likewise, at every pair of special numbers, over all numbers and with
// both in [lo, hi].
template <class T, class F, class Reference>
void CheckFunction2(F f, Reference reference, double lo, double hi,
                    double max_ulp) {
  const auto check = [&](T x, T y) {
    ExpectWithinUlp<T>(
        f(x, y),
        reference(static_cast<long double>(x), static_cast<long double>(y)),
        max_ulp, [&] { return testing::PrintToString(std::pair(x, y)); });
  };
  for (T x : SpecialNumbers<T>()) {
    for (T y : SpecialNumbers<T>()) check(x, y);
  }
  for (int64_t i = 0; i < 100000; ++i) {
    const T x = AnyNumber<T>(1, i);
    check(x, AnyNumber<T>(2, i));
    const T u = static_cast<T>(lo + (hi - lo) * Uniform01(3, 0, i));
    check(u, static_cast<T>(lo + (hi - lo) * Uniform01(4, 0, i)));
    check(x, x * u);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_VECMATH_TESTLIB_H_
