// Stores that go past the caches, for results that none of them would hold:
// what they write over is not read first. For .cc files.
#ifndef WENGERT_AUTOGRAD_KERNELS_STREAM_H_
#define WENGERT_AUTOGRAD_KERNELS_STREAM_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "autograd/kernels/loop.h"

#ifdef __AVX__
#include <immintrin.h>
#endif

namespace wengert::kernels {

// Whether a result of n numbers is streamed: from 32 MiB on.
template <class T>
bool IsStreamed(int64_t n) {
  return n * int64_t{sizeof(T)} >= int64_t{1} << 25;
}

inline constexpr int64_t kLineBytes = 64;
// Rows apart have a part of a line at each end: shorter ones are copied.
inline constexpr int64_t kStreamedRowBytes = 4 * kLineBytes;

// Copies a line to where one begins.
inline void StreamLine(const void* x, void* y) {
#ifdef __AVX__
  const __m256i* const from = static_cast<const __m256i*>(x);
  const __m256i low = _mm256_loadu_si256(from);
  const __m256i high = _mm256_loadu_si256(from + 1);
  _mm256_stream_si256(static_cast<__m256i*>(y), low);
  _mm256_stream_si256(static_cast<__m256i*>(y) + 1, high);
#else
  std::memcpy(y, x, kLineBytes);
#endif
}

// Before other threads may read what this one has streamed.
inline void EndStream() {
#ifdef __AVX__
  _mm_sfence();
#endif
}

// y = x for n elements.
template <class T>
void StreamRow(int64_t n, const T* x, T* y) {
  constexpr int64_t kSize = sizeof(T), kLine = kLineBytes / kSize;
  if (n * kSize < kStreamedRowBytes) {
    std::copy_n(x, n, y);
    return;
  }
  const auto past = reinterpret_cast<uintptr_t>(y) % kLineBytes / sizeof(T);
  int64_t i = std::min<int64_t>(n, past == 0 ? 0 : kLine - past);
  std::copy_n(x, i, y);
  for (; i + kLine <= n; i += kLine) StreamLine(x + i, y + i);
  std::copy_n(x + i, n - i, y + i);
}

// y[i] = value(i) for i < n, by way of a buffer if `streamed`. (`value` is a
// copy, which bytes that are written cannot change.)
template <class T, class Value>
void WriteRowOrStream(int64_t n, bool streamed, Value value, T* y) {
  constexpr int64_t kBuffer = 4096 / sizeof(T);
  alignas(kLineBytes) T buffer[kBuffer];
  streamed = streamed && n * int64_t{sizeof(T)} >= kStreamedRowBytes;
  const int64_t chunk = streamed ? kBuffer : n;
  for (int64_t at = 0; at < n; at += chunk) {
    const int64_t count = std::min(chunk, n - at);
    T* const to = streamed ? buffer : y + at;
    WENGERT_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) to[i] = value(at + i);
    if (streamed) StreamRow(count, buffer, y + at);
  }
}

}  // namespace wengert::kernels

#endif  // WENGERT_AUTOGRAD_KERNELS_STREAM_H_
