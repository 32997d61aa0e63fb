#include "autograd/kernels/dropout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "autograd/kernels/gemm_tile.h"
#include "autograd/kernels/loop.h"
#include "autograd/kernels/vecmath.h"
#include "autograd/parallel.h"
#include "autograd/random.h"

namespace wengert::kernels {
namespace {

// A 64-bit number for each of some Philox blocks, side by side. Philox works on
// their low halves; what stands in the high halves is of no account.
using Lanes = gemm::Vector<uint64_t>;
constexpr int kLanes = gemm::kWidth<uint64_t>;
constexpr int64_t kBlocks = 16;  // drawn at a time
constexpr int64_t kWords = 4 * kBlocks;

// The product of the low halves.
Lanes MultiplyLow(Lanes a, uint32_t b) {
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

// Draws of one seed and offset.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t offset) : offset_(offset) {
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = seed >> 32;
    for (int round = 0; round < Philox::kRounds; ++round) {
      key0_[round] = Lanes{} + k0;
      key1_[round] = Lanes{} + k1;
      k0 += Philox::kKeyStep0;
      k1 += Philox::kKeyStep1;
    }
  }

  // The words of elements [4 block, 4 block + kWords).
  void Draw(uint64_t block, uint32_t* words) const {
    for (int64_t b = 0; b < kBlocks; b += kLanes) {
      DrawLanes(block + b, words + 4 * b);
    }
  }

 private:
  // The words of Philox::Block(seed, block + l, offset), l < kLanes.
  void DrawLanes(uint64_t block, uint32_t* words) const {
    static constexpr auto kIndex = [] {
      std::array<uint64_t, kLanes> index;
      std::iota(index.begin(), index.end(), 0);
      return index;
    }();
    Lanes c0 = gemm::Load(kIndex.data()) + block, c1 = c0 >> 32;
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
    const Lanes first = (c0 & kLow) | (c1 << 32);  // words 0 and 1
    const Lanes second = (c2 & kLow) | (c3 << 32);
    constexpr auto kOrder = std::make_integer_sequence<int, kLanes>();
    const Lanes pairs[2] = {
        gemm::Interleave<uint64_t, 0>(first, second, kOrder),
        gemm::Interleave<uint64_t, 1>(first, second, kOrder)};
    std::memcpy(words, pairs, sizeof(pairs));
  }

  uint64_t offset_;
  Lanes key0_[Philox::kRounds], key1_[Philox::kRounds];
};

// Which words keep their element: those of at least round(p 2^32), compared in
// 32 bits as vectors want it.
struct Keep {
  explicit Keep(double p) {
    const int64_t least = std::llround(p * 0x1p32);
    all = least == 0;
    last_dropped = static_cast<uint32_t>(least - 1);
  }
  bool operator()(uint32_t word) const { return (word > last_dropped) | all; }
  bool all;
  uint32_t last_dropped;
};

// use(i, n, words) for the n <= kWords elements from i on, with their words,
// for all elements [begin, end).
template <class Use>
void ForEachDraw(uint64_t seed, uint64_t offset, int64_t begin, int64_t end,
                 Use use) {
  const Draws draws(seed, offset);
  alignas(64) uint32_t words[kWords];
  for (int64_t i = begin; i < end;) {
    const int64_t block = i / 4;
    draws.Draw(block, words);
    const int64_t n = std::min(end, 4 * block + kWords) - i;
    use(i, n, words + i % 4);
    i += n;
  }
}

// What to multiply by: 1 / (1 - p), of no use at p = 1.
double Scale(double p) { return p < 1 ? 1 / (1 - p) : 0; }

}  // namespace

template <class T>
void Dropout(int64_t n, double p, uint64_t seed, uint64_t offset, const T* x,
             bool accumulate, T* y) {
  const Keep keep(p);
  const T scale = static_cast<T>(Scale(p));
  ParallelFor(n, GrainOf(n, 1), [=](int64_t begin, int64_t end) {
    ForEachDraw(seed, offset, begin, end,
                [=](int64_t at, int64_t count, const uint32_t* words) {
                  WENGERT_INDEPENDENT
                  for (int64_t i = 0; i < count; ++i) {
                    const T kept =
                        Select<T>(keep(words[i]), x[at + i] * scale, 0);
                    y[at + i] = accumulate ? y[at + i] + kept : kept;
                  }
                });
  });
}

template <class T>
void DropoutMaskRow(uint64_t seed, uint64_t offset, int64_t first_element,
                    int64_t n, double p, T* scale) {
  const Keep keep(p);
  const T kept = static_cast<T>(Scale(p));
  ForEachDraw(seed, offset, first_element, first_element + n,
              [=](int64_t at, int64_t count, const uint32_t* words) {
                for (int64_t i = 0; i < count; ++i) {
                  scale[at - first_element + i] =
                      Select<T>(keep(words[i]), kept, 0);
                }
              });
}

template void Dropout(int64_t, double, uint64_t, uint64_t, const float*, bool,
                      float*);
template void Dropout(int64_t, double, uint64_t, uint64_t, const double*, bool,
                      double*);
template void DropoutMaskRow(uint64_t, uint64_t, int64_t, int64_t, double,
                             float*);
template void DropoutMaskRow(uint64_t, uint64_t, int64_t, int64_t, double,
                             double*);

}  // namespace wengert::kernels
