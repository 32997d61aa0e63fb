#include "autograd/kernels/dropout.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "autograd/kernels/loop.h"
#include "autograd/kernels/vecmath.h"
#include "autograd/parallel.h"
#include "autograd/philox_lanes.h"

namespace wengert::kernels {
namespace {

constexpr int64_t kWords = 64;  // drawn at a time: those of 16 blocks

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
  const internal::PhiloxLanes philox(seed, offset);
  alignas(64) uint64_t bits[kWords / 2];
  uint32_t words[kWords];
  for (int64_t i = begin; i < end;) {
    const int64_t block = i / 4;
    for (int b = 0; b < kWords / 4; b += philox.kLanes) {
      philox.Draw(block + b, bits + 2 * b);
    }
    std::memcpy(words, bits, sizeof(words));  // the low half first
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
