#include "autograd/kernels/vector_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/base/attributes.h"
#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/middle_loop.h"
#include "autograd/kernels/reduce_loop.h"
#include "autograd/kernels/vecmath.h"

namespace wengert::kernels {
namespace {

// |x|^p for p = 1, for p = 2, and for any other, by exp(p log |x|): where the
// largest |x| is 1 (the smallest for p < 0), p log |x| is not positive, and
// terms that count have a small exponent, so nothing is lost.
struct First {
  template <class T>
  ABSL_ATTRIBUTE_ALWAYS_INLINE T operator()(T a) const {
    return a;
  }
};
struct Second {
  template <class T>
  ABSL_ATTRIBUTE_ALWAYS_INLINE T operator()(T a) const {
    return a * a;
  }
};
template <class T>
struct Power {
  T p;
  ABSL_ATTRIBUTE_ALWAYS_INLINE T operator()(T a) const {
    const auto [m, s] = ExpOfMinus(-p * Log(a));
    return m * s;
  }
};

// The norm of norms is the norm, so it is its own Combine().
template <class Term>
struct NormOf {
  static constexpr bool kFindsPlaces = false;
  double p;
  Term term;
  NormOf Combine() const { return *this; }

  template <class T>
  T Root(T sum) const {
    if (p == 1) return sum;
    if (p == 2) return std::sqrt(sum);
    return static_cast<T>(std::pow(static_cast<double>(sum), 1 / p));
  }

  // Whether a plain sum of |x|^p has lost nothing to a range that is too small.
  template <class T>
  bool IsSafe(T sum) const {
    if (p == 1) return true;
    constexpr double kLeast = sizeof(T) == 4 ? 0x1p-100 : 0x1p-960;
    return p == 2 && sum >= static_cast<T>(kLeast) &&
           sum <= std::numeric_limits<T>::max();
  }

  // |x| is divided by the largest, or by the smallest where p < 0: the largest
  // term is then 1.
  template <class T>
  T Least() const {
    return p > 0 ? T(0) : std::numeric_limits<T>::infinity();
  }
  template <class T>
  ABSL_ATTRIBUTE_ALWAYS_INLINE T Wider(T scale, T x) const {
    const T a = std::fabs(x), sign = p > 0 ? 1 : -1;  // no branch in a loop
    const bool further = a * sign > scale * sign;
    return Select(further | ((a != a) & (scale == scale)), a, scale);
  }

  template <class T>
  void Row(int64_t n, const T* x, T* y, int64_t*) const {
    if (p == 1 || p == 2) {
      const auto plain = [=, this](int64_t i) { return term(std::fabs(x[i])); };
      const T sum = BlockedSum<T>(n, plain);
      *y = Root(sum);
      if (IsSafe(sum)) return;
    }
    constexpr int kLanes = 32;
    T scales[kLanes];
    std::fill_n(scales, kLanes, Least<T>());
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) scales[l] = Wider(scales[l], x[i + l]);
    }
    for (int l = 0; i < n; ++i, ++l) scales[l] = Wider(scales[l], x[i]);
    T scale = scales[0];
    for (int l = 1; l < kLanes; ++l) scale = Wider(scale, scales[l]);
    *y = scale;  // 0, infinity or NaN stays
    if (!(scale > 0 && scale < std::numeric_limits<T>::infinity())) return;
    const auto scaled = [=, this](int64_t i) {
      return term(std::fabs(x[i]) / scale);
    };
    *y = scale * Root(BlockedSum<T>(n, scaled));
  }

  template <class T>
  void Columns(int64_t n, int64_t width, const T* x, int64_t stride, T* y,
               int64_t*) const {
    alignas(64) T sum[kStripColumns];
    bool safe = false;
    if (p == 1 || p == 2) {
      const auto plain = [=, this](int64_t r, int64_t j) {
        return term(std::fabs(x[r * stride + j]));
      };
      BlockedRowSum(0, n, width, plain, sum);
      safe = true;
      for (int64_t j = 0; j < width; ++j) safe &= IsSafe(sum[j]);
    }
    if (!safe) return ScaledColumns(n, width, x, stride, sum, y);
    for (int64_t j = 0; j < width; ++j) y[j] = Root(sum[j]);
  }

  // The columns whose plain sum is safe keep it.
  template <class T>
  void ScaledColumns(int64_t n, int64_t width, const T* x, int64_t stride,
                     const T* plain, T* y) const {
    alignas(64) T scale[kStripColumns], divisor[kStripColumns],
        sum[kStripColumns];
    std::fill_n(scale, width, Least<T>());
    const auto widen = [=, this](T scale, int64_t r, int64_t j) {
      return Wider(scale, x[r * stride + j]);
    };
    FoldRows(0, n, width, widen, scale);
    const auto usable = [&](int64_t j) {
      return scale[j] > 0 && scale[j] < std::numeric_limits<T>::infinity();
    };
    for (int64_t j = 0; j < width; ++j) divisor[j] = usable(j) ? scale[j] : 1;
    const T* d = divisor;
    const auto scaled = [=, this](int64_t r, int64_t j) {
      return term(std::fabs(x[r * stride + j]) / d[j]);
    };
    BlockedRowSum(0, n, width, scaled, sum);
    for (int64_t j = 0; j < width; ++j) {
      if ((p == 1 || p == 2) && IsSafe(plain[j])) {
        y[j] = Root(plain[j]);
      } else {
        y[j] = usable(j) ? scale[j] * Root(sum[j]) : scale[j];
      }
    }
  }
};

// What an element's gradient needs of its slice.
template <class T>
struct Slice {
  T y, dy;
};

}  // namespace

template <class T>
void VectorNorm(int64_t outer, int64_t n, int64_t inner, double p, const T* x,
                T* y) {
  const auto run = [&](auto term) {
    ReduceMiddle(NormOf<decltype(term)>{p, term}, outer, n, inner, x, nullptr,
                 false, y, nullptr);
  };
  if (p == 1) return run(First());
  if (p == 2) return run(Second());
  run(Power<T>{static_cast<T>(p)});
}

template <class T>
void VectorNormGrad(int64_t outer, int64_t n, int64_t inner, double p,
                    const T* x, const T* y, const T* dy, bool accumulate,
                    T* dx) {
  const auto of = [=](int64_t s) { return Slice<T>{y[s], dy[s]}; };
  const auto run = [&](auto value) {
    WriteMiddle(outer, n, inner, accumulate, of, value, dx);
  };
  if (p == 1) {
    return run([=](int64_t i, Slice<T> s) {
      const T v = x[i];  // NaN stays
      return Select(v > 0, s.dy, Select(v < 0, -s.dy, v * 0));
    });
  }
  if (p == 2) {
    return run([=](int64_t i, Slice<T> s) {
      return Select<T>(s.y == 0, 0, s.dy * (x[i] / s.y));
    });
  }
  const T rest = static_cast<T>(p - 1);
  run([=](int64_t i, Slice<T> s) ABSL_ATTRIBUTE_ALWAYS_INLINE {
    const T v = x[i];
    const T slope = std::copysign(Exp(rest * Log(std::fabs(v) / s.y)), v);
    return Select<T>((v == 0) | (s.y == 0), 0, s.dy * slope);
  });
}

template void VectorNorm(int64_t, int64_t, int64_t, double, const float*,
                         float*);
template void VectorNorm(int64_t, int64_t, int64_t, double, const double*,
                         double*);
template void VectorNormGrad(int64_t, int64_t, int64_t, double, const float*,
                             const float*, const float*, bool, float*);
template void VectorNormGrad(int64_t, int64_t, int64_t, double, const double*,
                             const double*, const double*, bool, double*);

}  // namespace wengert::kernels
