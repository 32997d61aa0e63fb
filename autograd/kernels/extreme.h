// The reductions to the largest or the smallest element and its place, whose
// loops are in reduce_loop.h. For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_EXTREME_H_
#define WENGERT_AUTOGRAD_KERNELS_EXTREME_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/base/attributes.h"
#include "autograd/kernels/gemm_tile.h"
#include "autograd/kernels/row_sums.h"
#include "autograd/kernels/strips.h"

namespace wengert::kernels {

// Lane by lane, the best of what was seen, the smallest if kMin, and its place.
template <bool kMin, class T>
struct BestLanes {
  // As wide as T, so that one mask serves both.
  using Index = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  using Values = gemm::Vector<T>;
  using Places = gemm::Vector<Index>;
  static constexpr int kWidth = gemm::kWidth<T>;

  Values value;
  Places place;

  // 0, 1, 2, ..
  static Places Count() {
    Places places;
    for (int l = 0; l < kWidth; ++l) places[l] = l;
    return places;
  }

  // What comes later has to be better; the first NaN wins over every number.
  void See(Values v, Places at) {
    const auto beats = Beats(v, value);
    value = beats ? v : value;
    place = beats ? at : place;
  }

  // The first place of the best of all lanes of n > 0.
  static Index FirstOfBest(int n, const BestLanes* lanes) {
    const auto better = [](Values a, Values b) { return Beats(a, b) ? a : b; };
    Values best = lanes[0].value;
    for (int v = 1; v < n; ++v) best = better(lanes[v].value, best);
    best = Fold(best, better);
    const auto lesser = [](Places a, Places b) { return a < b ? a : b; };
    Places first = Places{} + std::numeric_limits<Index>::max();
    for (int v = 0; v < n; ++v) {
      const auto same =
          (lanes[v].value == best) | ~(Ordered(lanes[v].value) | Ordered(best));
      first = same ? lesser(lanes[v].place, first) : first;
    }
    return Fold(first, lesser)[0];
  }

 private:
  static auto Ordered(Values v) { return v == v; }
  static auto Beats(Values v, Values best) {
    return (kMin ? ~(v >= best) : ~(v <= best)) & Ordered(best);
  }

  // f of all lanes, in each.
  template <int kShift = kWidth / 2, class V, class F>
  static V Fold(V v, F f) {
    if constexpr (kShift == 0) {
      return v;
    } else {
      return Fold<kShift / 2>(f(v, Turned<kShift>(v)), f);
    }
  }

  template <int kShift, class V>
  static V Turned(V v) {
    return [v]<int... l>(std::integer_sequence<int, l...>) {
      return __builtin_shufflevector(v, v, (l + kShift) % kWidth...);
    }
    (std::make_integer_sequence<int, kWidth>());
  }
};

template <bool kMin>
struct ExtremeOf {
  static constexpr bool kFindsPlaces = true;
  ExtremeOf Combine() const { return {}; }

  template <class T>
  static void Row(int64_t n, const T* x, T* y, int64_t* at) {
    const int64_t first = n < gemm::kWidth<T> ? FindShort(n, x) : Find(n, x);
    *y = x[first];
    if (at != nullptr) *at = first;
  }

  template <class T>
  static int64_t FindShort(int64_t n, const T* x) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; ++i) {
      const bool beyond = kMin ? x[i] < x[best] : x[i] > x[best];
      if (beyond || (x[i] != x[i] && x[best] == x[best])) best = i;
    }
    return best;
  }

  template <class T>
  static int64_t Find(int64_t n, const T* x) {
    using Lanes = BestLanes<kMin, T>;
    using Index = typename Lanes::Index;
    constexpr int kWidth = Lanes::kWidth, kVectors = 4;  // to wait for none
    Lanes best[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      best[v] = {gemm::Load(x), typename Lanes::Places{} - v * kWidth};
    }
    // So far the place of a vector's first lane, less where in `best` it is.
    const auto see = [&](int v, int64_t from, int64_t i) {
      best[v].See(gemm::Load(x + from),
                  typename Lanes::Places{} + static_cast<Index>(i));
    };
    int64_t i = 0;
    for (; i + kVectors * kWidth <= n; i += kVectors * kWidth) {
      for (int v = 0; v < kVectors; ++v) see(v, i + v * kWidth, i);
    }
    for (; i + kWidth <= n; i += kWidth) see(0, i, i);
    if (i < n) see(0, n - kWidth, n - kWidth);  // some for the second time
    for (int v = 0; v < kVectors; ++v) {
      best[v].place += Lanes::Count() + static_cast<Index>(v * kWidth);
    }
    return Lanes::FirstOfBest(kVectors, best);
  }

  template <class T>
  static void Columns(int64_t n, int64_t width, const T* x, int64_t stride,
                      T* y, int64_t* at) {
    using Lanes = BestLanes<kMin, T>;
    using Index = typename Lanes::Index;
    alignas(64) Index places[kStripColumns];
    std::fill_n(places, CeilDiv(width, Lanes::kWidth) * Lanes::kWidth, 0);
    std::copy_n(x, width, y);
    constexpr int64_t kRows = 4;  // at once, each a stream from memory
    for (int64_t r = 1; r < n; r += kRows) {
      const int64_t rows = std::min(kRows, n - r);
      ForEachVector<T>(0, width, [&](auto j) ABSL_ATTRIBUTE_ALWAYS_INLINE {
        Lanes best{j.Load(y), gemm::Load(places + j.j)};
        for (int64_t q = r; q < r + rows; ++q) {
          best.See(j.Load(x + q * stride),
                   typename Lanes::Places{} + static_cast<Index>(q));
        }
        j.Store(y, best.value);
        gemm::Store(places + j.j, best.place);
      });
    }
    if (at != nullptr) std::copy_n(places, width, at);
  }
};

using MaxOf = ExtremeOf<false>;
using MinOf = ExtremeOf<true>;

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_EXTREME_H_
