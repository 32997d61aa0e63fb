// The inner part of the matrix product: vectors, a tile of C in registers, and
// the packing of panels. For gemm.cc.
#ifndef WENGERT_AUTOGRAD_KERNELS_GEMM_TILE_H_
#define WENGERT_AUTOGRAD_KERNELS_GEMM_TILE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace wengert::kernels::gemm {

// A tile of C, kTileRows x (kTileVectors vectors), fills the registers: with
// AVX-512 28 of 32 are sums, else 12 of 16.
#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
inline constexpr int kTileRows = 14;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
inline constexpr int kTileRows = 6;
#else
inline constexpr int kVectorBytes = 16;
inline constexpr int kTileRows = 6;
#endif
inline constexpr int kTileVectors = 2;

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
inline constexpr int kWidth = kVectorBytes / sizeof(T);
template <class T>
inline constexpr int kTileColumns = kTileVectors* kWidth<T>;
// Elements of A's panel from one k to the next: kTileRows in whole vectors.
template <class T>
inline constexpr int kPanelRows =
    (kTileRows + kWidth<T> - 1) / kWidth<T>* kWidth<T>;

template <class T>
Vector<T> Load(const T* p) {
  Vector<T> v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

template <class T>
void Store(T* p, Vector<T> v) {
  std::memcpy(p, &v, sizeof(v));
}

#if defined(__AVX__) && !defined(__AVX512F__)
// The first n elements of a vector for AVX's masked loads and stores.
template <class T>
__m256i FirstMask(int n) {
  using Integer = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  static constexpr Integer kOnes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  __m256i mask;
  std::memcpy(&mask, kOnes + 8 - n, sizeof(mask));
  return mask;
}
#endif

// The first n <= kWidth elements; the rest are 0 and are not touched.
template <class T>
Vector<T> LoadFirst(const T* p, int n) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
  } else {
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1), p);
  }
#elif defined(__AVX__)
  if constexpr (sizeof(T) == 4) {
    return _mm256_maskload_ps(p, FirstMask<T>(n));
  } else {
    return _mm256_maskload_pd(p, FirstMask<T>(n));
  }
#else
  Vector<T> v = {};
  for (int i = 0; i < n; ++i) v[i] = p[i];
  return v;
#endif
}

template <class T>
void StoreFirst(T* p, Vector<T> v, int n) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), v);
  } else {
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << n) - 1), v);
  }
#elif defined(__AVX__)
  if constexpr (sizeof(T) == 4) {
    _mm256_maskstore_ps(p, FirstMask<T>(n), v);
  } else {
    _mm256_maskstore_pd(p, FirstMask<T>(n), v);
  }
#else
  for (int i = 0; i < n; ++i) p[i] = v[i];
#endif
}

// a b + c, rounded once where the machine can.
template <class T>
Vector<T> MultiplyAdd(Vector<T> a, Vector<T> b, Vector<T> c) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    return _mm512_fmadd_ps(a, b, c);
  } else {
    return _mm512_fmadd_pd(a, b, c);
  }
#elif defined(__FMA__)
  if constexpr (sizeof(T) == 4) {
    return _mm256_fmadd_ps(a, b, c);
  } else {
    return _mm256_fmadd_pd(a, b, c);
  }
#else
  return a * b + c;
#endif
}

// C = alpha A B for a tile of kRows x n, kVectors - 1 whole vectors < n, plus
// the rows at `add` unless it is null: C itself, or one row for all.
// A at a[row * a_row + p * a_step]; B at b[p * b_step + column].
template <class T, int kRows, int kVectors>
void Tile(int64_t k, const T* a, int64_t a_row, int64_t a_step, const T* b,
          int64_t b_step, T alpha, const T* add, int64_t add_row, int n, T* c,
          int64_t ldc) {
  Vector<T> sum[kRows][kVectors] = {};
  // Rows are addressed as base + {0, 1, 2} a_row: few pointers to advance.
  const T* base[(kRows + 2) / 3];
  for (int i = 0; i < (kRows + 2) / 3; ++i) base[i] = a + 3 * i * a_row;
  const int last = n - (kVectors - 1) * kWidth<T>;  // columns of the last one
  for (int64_t p = 0; p < k; ++p) {
    Vector<T> row[kVectors];
#pragma GCC unroll 16
    for (int j = 0; j < kVectors - 1; ++j) row[j] = Load(b + j * kWidth<T>);
    row[kVectors - 1] = LoadFirst(b + (kVectors - 1) * kWidth<T>, last);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      // x - 0 is x, also for -0.
      const Vector<T> scalar = base[i / 3][i % 3 * a_row] - Vector<T>{};
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) {
        sum[i][j] = MultiplyAdd<T>(scalar, row[j], sum[i][j]);
      }
    }
    b += b_step;
    for (auto& pointer : base) pointer += a_step;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    T* to = c + i * ldc;
    const T* from = add + i * add_row;
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j, to += kWidth<T>, from += kWidth<T>) {
      Vector<T> v = alpha * sum[i][j];
      if (j < kVectors - 1 || last == kWidth<T>) {
        if (add != nullptr) v += Load(from);
        Store(to, v);
      } else {
        if (add != nullptr) v += LoadFirst(from, last);
        StoreFirst(to, v, last);
      }
    }
  }
}

template <class T>
using TileFunction = void (*)(int64_t, const T*, int64_t, int64_t, const T*,
                              int64_t, T, const T*, int64_t, int, T*, int64_t);

template <class T, int kVectors, int... kRows>
TileFunction<T> TileOfRows(int rows, std::integer_sequence<int, kRows...>) {
  static constexpr TileFunction<T> kTable[] = {Tile<T, kRows + 1, kVectors>...};
  return kTable[rows - 1];
}

template <class T>
TileFunction<T> ChooseTile(int rows, int n) {
  constexpr auto kRows = std::make_integer_sequence<int, kTileRows>();
  return n > kWidth<T> ? TileOfRows<T, 2>(rows, kRows)
                       : TileOfRows<T, 1>(rows, kRows);
}

// Interleaves the low (kHigh = 0) or the high halves of a and b.
template <class T, int kHigh, int... kIndex>
Vector<T> Interleave(Vector<T> a, Vector<T> b,
                     std::integer_sequence<int, kIndex...>) {
  constexpr int kWide = kWidth<T>;
  return __builtin_shufflevector(
      a, b, (kIndex / 2 + kHigh * kWide / 2 + kIndex % 2 * kWide)...);
}

// Transposes kWidth vectors of kWidth elements. Interleaving i with
// i + kWidth / 2 rotates the bits of (row, column) by one; after log2 kWidth
// rounds row and column have changed places.
template <class T>
void Transpose(Vector<T>* v) {
  constexpr int kWide = kWidth<T>;
  constexpr auto kIndex = std::make_integer_sequence<int, kWide>();
#pragma GCC unroll 16
  for (int round = 1; round < kWide; round *= 2) {
    Vector<T> w[kWide];
#pragma GCC unroll 16
    for (int i = 0; i < kWide / 2; ++i) {
      w[2 * i] = Interleave<T, 0>(v[i], v[i + kWide / 2], kIndex);
      w[2 * i + 1] = Interleave<T, 1>(v[i], v[i + kWide / 2], kIndex);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kWide; ++i) v[i] = w[i];
  }
}

// to[i] = from[i] for i < n; any numbers up to whole vectors.
template <class T>
void CopyRow(int n, const T* from, T* to) {
  int i = 0;
  for (; i + kWidth<T> <= n; i += kWidth<T>) Store(to + i, Load(from + i));
  if (i < n) Store(to + i, LoadFirst(from + i, n - i));
}

// panel[p * stride + i] = x[p * ld + i], or x[i * ld + p] when `transpose`, for
// p < k and i < n; any numbers for n <= i < n rounded up to whole vectors.
template <class T>
void Pack(bool transpose, int64_t k, int n, const T* x, int64_t ld,
          int64_t stride, T* panel) {
  constexpr int kWide = kWidth<T>;
  if (!transpose) {
    for (int64_t p = 0; p < k; ++p) CopyRow(n, x + p * ld, panel + p * stride);
    return;
  }
  for (int i = 0; i < n; i += kWide) {
    const int width = std::min(kWide, n - i);
    for (int64_t p = 0; p < k; p += kWide) {
      const int depth = static_cast<int>(std::min<int64_t>(kWide, k - p));
      const T* from = x + i * ld + p;
      T* to = panel + p * stride + i;
      Vector<T> v[kWide];
      // Rows that are missing repeat the last one.
#pragma GCC unroll 16
      for (int j = 0; j < kWide; ++j) {
        v[j] = LoadFirst(from + std::min(j, width - 1) * ld, depth);
      }
      Transpose<T>(v);
#pragma GCC unroll 16
      for (int j = 0; j < kWide; ++j) {
        if (j < depth) Store(to + j * stride, v[j]);
      }
    }
  }
}

}  // namespace wengert::kernels::gemm

#endif  // WENGERT_AUTOGRAD_KERNELS_GEMM_TILE_H_
