// Philox blocks drawn side by side in the lanes of vectors. For .cc files.
#ifndef WENGERT_AUTOGRAD_PHILOX_LANES_H_
#define WENGERT_AUTOGRAD_PHILOX_LANES_H_

#include <cstdint>
#include <cstring>
#include <utility>

#include "autograd/random.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace wengert::internal {

// Draws of one seed and offset, the same bits as Philox::Block's.
class PhiloxLanes {
 public:
#if defined(__AVX512F__)
  static constexpr int kLanes = 8;
#elif defined(__AVX2__)
  static constexpr int kLanes = 4;
#else
  static constexpr int kLanes = 2;
#endif

  PhiloxLanes(uint64_t seed, uint64_t offset) : offset_(offset) {
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = seed >> 32;
    for (int round = 0; round < Philox::kRounds; ++round) {
      key0_[round] = Lanes{} + k0;
      key1_[round] = Lanes{} + k1;
      k0 += Philox::kKeyStep0;
      k1 += Philox::kKeyStep1;
    }
  }

  // bits[2l] and bits[2l + 1] are words 0, 1 and 2, 3 of
  // Philox::Block(seed, block + l, offset), l < kLanes, the first of two words
  // in the low half: RandomBits64 of elements 2 block on.
  void Draw(uint64_t block, uint64_t* bits) const {
    // Philox works on the low halves; what stands in the high ones is of no
    // account.
    Lanes c0 = Index(kIndex) + block, c1 = c0 >> 32;
    Lanes c2 = Lanes{} + offset_, c3 = c2 >> 32;
#pragma GCC unroll 10
    for (int round = 0; round < Philox::kRounds; ++round) {
      const Lanes p0 = MultiplyLow(c0, Philox::kFactor0);
      const Lanes p1 = MultiplyLow(c2, Philox::kFactor1);
      c0 = (p1 >> 32) ^ c1 ^ key0_[round];
      c1 = p1;
      c2 = (p0 >> 32) ^ c3 ^ key1_[round];
      c3 = p0;
    }
    constexpr uint64_t kLow = 0xffffffff;
    const Lanes first = (c0 & kLow) | (c1 << 32);
    const Lanes second = (c2 & kLow) | (c3 << 32);
    const Lanes pairs[2] = {Interleave<0>(first, second, kIndex),
                            Interleave<kLanes / 2>(first, second, kIndex)};
    std::memcpy(bits, pairs, sizeof(pairs));
  }

 private:
  typedef uint64_t Lanes __attribute__((vector_size(8 * kLanes)));
  static constexpr auto kIndex = std::make_integer_sequence<int, kLanes>();

  template <int... kI>
  static Lanes Index(std::integer_sequence<int, kI...>) {
    return Lanes{kI...};
  }

  // kLanes elements of a[i], b[i], a[i + 1], .. from i on.
  template <int i, int... kI>
  static Lanes Interleave(Lanes a, Lanes b, std::integer_sequence<int, kI...>) {
    return __builtin_shufflevector(a, b, (i + kI / 2 + kI % 2 * kLanes)...);
  }

  // The product of the low halves.
  static Lanes MultiplyLow(Lanes a, uint32_t b) {
    const Lanes factor = Lanes{} + b;
#if defined(__AVX512F__)
    // With all lanes chosen: g++ warns of what it takes for the others else.
    return reinterpret_cast<Lanes>(_mm512_maskz_mul_epu32(
        0xff, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(factor)));
#elif defined(__AVX2__)
    return reinterpret_cast<Lanes>(_mm256_mul_epu32(
        reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(factor)));
#else
    return (a & 0xffffffff) * factor;
#endif
  }

  uint64_t offset_;
  Lanes key0_[Philox::kRounds], key1_[Philox::kRounds];
};

}  // namespace wengert::internal

#endif  // WENGERT_AUTOGRAD_PHILOX_LANES_H_
