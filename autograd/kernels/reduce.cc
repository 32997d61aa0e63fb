#include "autograd/kernels/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "autograd/kernels/blocked_sum.h"
#include "autograd/kernels/extreme.h"
#include "autograd/kernels/gemm_tile.h"
#include "autograd/kernels/reduce_loop.h"
#include "autograd/kernels/strips.h"

namespace wengert::kernels {
namespace {

struct SumOf {
  static constexpr bool kFindsPlaces = false;
  SumOf Combine() const { return {}; }

  template <class T>
  static void Row(int64_t n, const T* x, T* y, int64_t*) {
    *y = BlockedSum<T>(n, [x](int64_t i) { return x[i]; });
  }

  static constexpr int64_t kShortRow = 32;
  // The same sums; for the shortest rows of vectors of rows.
  template <class T>
  static void ShortRows(int64_t rows, int64_t n, const T* x, bool accumulate,
                        T* y) {
    const auto run = [=](auto size) {  // an int64_t, or a constant
      const auto sum = [=](int64_t r) {
        const T* const row = x + r * size;
        if constexpr (std::is_same_v<decltype(size), int64_t>) {
          return BlockedSum<T>(size, [=](int64_t i) { return row[i]; });
        }
        T lane[4] = {};
        for (int i = 0; i < size; ++i) lane[i % 4] += row[i];
        return (lane[0] + lane[1]) + (lane[2] + lane[3]);
      };
      WriteRow(rows, accumulate, sum, y);
    };
    if (n == 2) return run(std::integral_constant<int64_t, 2>());
    if (n == 3) return run(std::integral_constant<int64_t, 3>());
    if (n == 4) return run(std::integral_constant<int64_t, 4>());
    if (n == 8) return run(std::integral_constant<int64_t, 8>());
    run(n);
  }

  static constexpr int64_t kFewRows = 4;
  // The same sums as those of Columns.
  template <class T>
  static void FewRows(int64_t outer, int64_t n, int64_t inner, const T* x,
                      bool accumulate, T* y) {
    const auto run = [=](auto size) {  // a constant
      ParallelFor(outer * inner, GrainOf(outer * inner, n),
                  [=](int64_t begin, int64_t end) {
                    for (int64_t at = begin; at < end;) {
                      const int64_t column = at % inner;
                      const int64_t width = std::min(inner - column, end - at);
                      const T* const from = x + at / inner * n * inner + column;
                      const auto sum = [=](int64_t j) {
                        T total = 0;
                        for (int i = 0; i < size; ++i) {
                          total += from[i * inner + j];
                        }
                        return total;
                      };
                      WriteRow(width, accumulate, sum, y + at);
                      at += width;
                    }
                  });
    };
    if (n == 2) return run(std::integral_constant<int, 2>());
    if (n == 3) return run(std::integral_constant<int, 3>());
    run(std::integral_constant<int, 4>());
  }

  template <class T>
  static void Columns(int64_t n, int64_t width, const T* x, int64_t stride,
                      T* y, int64_t*) {
    if (width >= kSumColumns) {
      const auto term = [=](int64_t r, int64_t j) { return x[r * stride + j]; };
      return BlockedRowSum(0, n, width, term, y);
    }
    // The same sums, vector by vector.
    for (int64_t j = 0; j < width; j += gemm::kWidth<T>) {
      const int part =
          static_cast<int>(std::min<int64_t>(gemm::kWidth<T>, width - j));
      SumVector(n, part, x + j, stride, y + j);
    }
  }

  // The sums of n <= kSumRows rows of `part` elements, at most a vector.
  template <class T>
  static void SumVector(int64_t n, int part, const T* x, int64_t stride, T* y) {
    gemm::Vector<T> total = {};
    for (int64_t begin = 0; begin < n; begin += kSumBlock) {
      gemm::Vector<T> sum = {};
      for (int64_t r = begin; r < std::min(n, begin + kSumBlock); ++r) {
        sum += gemm::LoadFirst(x + r * stride, part);
      }
      total += sum;
    }
    T elements[gemm::kWidth<T>];
    gemm::Store(elements, total);
    std::copy_n(elements, part, y);
  }
};

// Products in double, in which those of a few dozen floats cannot overflow on
// the way.
struct ProdOf {
  static constexpr bool kFindsPlaces = false;
  ProdOf Combine() const { return {}; }

  template <class T>
  static void Row(int64_t n, const T* x, T* y, int64_t*) {
    constexpr int kLanes = 16;
    double product[kLanes];
    std::fill_n(product, kLanes, 1.0);
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) product[l] *= x[i + l];
    }
    for (int l = 0; i < n; ++i, ++l) product[l] *= x[i];
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int l = 0; l < width; ++l) product[l] *= product[l + width];
    }
    *y = static_cast<T>(product[0]);
  }
  template <class T>
  static void Columns(int64_t n, int64_t width, const T* x, int64_t stride,
                      T* y, int64_t*) {
    alignas(64) double product[kStripColumns];
    std::fill_n(product, width, 1.0);
    const auto multiply = [=](double p, int64_t r, int64_t j) {
      return p * x[r * stride + j];
    };
    FoldRows(0, n, width, multiply, product);
    for (int64_t j = 0; j < width; ++j) y[j] = static_cast<T>(product[j]);
  }
};

// Whether one is `wanted`; the answer is `wanted` if so.
template <bool wanted>
struct FindOf {
  static constexpr bool kFindsPlaces = false;
  FindOf Combine() const { return {}; }

  static void Row(int64_t n, const bool* x, bool* y, int64_t*) {
    *y = (n > 0 && std::memchr(x, wanted, n) != nullptr) == wanted;
  }
  static void Columns(int64_t n, int64_t width, const bool* x, int64_t stride,
                      bool* y, int64_t*) {
    std::fill_n(y, width, !wanted);
    const auto find = [=](bool found, int64_t r, int64_t j) {
      return wanted ? found | x[r * stride + j] : found & x[r * stride + j];
    };
    FoldRows(0, n, width, find, y);
  }
};

}  // namespace

template <class T>
void Sum(Dims dims, absl::Span<const bool> keep, const T* x, bool accumulate,
         T* y) {
  Reduce(SumOf(), dims, keep, x, accumulate, y, nullptr);
}

template <class T>
void Max(Dims dims, absl::Span<const bool> keep, const T* x, T* y,
         int64_t* arg) {
  Reduce(MaxOf(), dims, keep, x, false, y, arg);
}

template <class T>
void Min(Dims dims, absl::Span<const bool> keep, const T* x, T* y,
         int64_t* arg) {
  Reduce(MinOf(), dims, keep, x, false, y, arg);
}

template <class T>
void Prod(Dims dims, absl::Span<const bool> keep, const T* x, T* y) {
  Reduce(ProdOf(), dims, keep, x, false, y, nullptr);
}

void Any(Dims dims, absl::Span<const bool> keep, const bool* x, bool* y) {
  Reduce(FindOf<true>(), dims, keep, x, false, y, nullptr);
}

void All(Dims dims, absl::Span<const bool> keep, const bool* x, bool* y) {
  Reduce(FindOf<false>(), dims, keep, x, false, y, nullptr);
}

template void Sum(Dims, absl::Span<const bool>, const float*, bool, float*);
template void Max(Dims, absl::Span<const bool>, const float*, float*, int64_t*);
template void Min(Dims, absl::Span<const bool>, const float*, float*, int64_t*);
template void Prod(Dims, absl::Span<const bool>, const float*, float*);
template void Sum(Dims, absl::Span<const bool>, const double*, bool, double*);
template void Max(Dims, absl::Span<const bool>, const double*, double*,
                  int64_t*);
template void Min(Dims, absl::Span<const bool>, const double*, double*,
                  int64_t*);
template void Prod(Dims, absl::Span<const bool>, const double*, double*);

}  // namespace wengert::kernels
