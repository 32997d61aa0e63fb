// Counter-based random numbers: each is a pure function of (seed, offset,
// element), so the result of an operation depends neither on the number of
// threads nor on the order of its elements, and can be drawn again in backward.
#ifndef WENGERT_AUTOGRAD_RANDOM_H_
#define WENGERT_AUTOGRAD_RANDOM_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace wengert {

// Philox 4x32-10: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011. Equal to Random123's philox4x32 with
// the low word of each argument first.
struct Philox {
  static constexpr int kRounds = 10;
  static constexpr uint32_t kFactor0 = 0xD2511F53, kFactor1 = 0xCD9E8D57;
  static constexpr uint32_t kKeyStep0 = 0x9E3779B9, kKeyStep1 = 0xBB67AE85;

  static constexpr std::array<uint32_t, 4> Block(uint64_t key,
                                                 uint64_t counter_lo,
                                                 uint64_t counter_hi) {
    uint32_t k0 = static_cast<uint32_t>(key);
    uint32_t k1 = static_cast<uint32_t>(key >> 32);
    uint32_t c0 = static_cast<uint32_t>(counter_lo);
    uint32_t c1 = static_cast<uint32_t>(counter_lo >> 32);
    uint32_t c2 = static_cast<uint32_t>(counter_hi);
    uint32_t c3 = static_cast<uint32_t>(counter_hi >> 32);
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t p0 = uint64_t{kFactor0} * c0;
      const uint64_t p1 = uint64_t{kFactor1} * c2;
      c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
      c1 = static_cast<uint32_t>(p1);
      c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c3 = static_cast<uint32_t>(p0);
      k0 += kKeyStep0;
      k1 += kKeyStep1;
    }
    return {c0, c1, c2, c3};
  }
};

// Hands out one offset per random operation. The caller owns it; a checkpoint
// saves seed and offset. Not for use by several threads at once.
class Generator {
 public:
  explicit Generator(uint64_t seed, uint64_t offset = 0)
      : seed_(seed), offset_(offset) {}

  uint64_t seed() const { return seed_; }
  uint64_t offset() const { return offset_; }
  void set_offset(uint64_t offset) { offset_ = offset; }

  // The offset of one random operation, with all its elements.
  uint64_t Take() { return offset_++; }

 private:
  uint64_t seed_;
  uint64_t offset_;
};

// 32 random bits: word element % 4 of Philox::Block(seed, element / 4, offset).
inline uint32_t RandomBits(uint64_t seed, uint64_t offset, uint64_t element) {
  return Philox::Block(seed, element / 4, offset)[element % 4];
}

// 64 random bits: words 2 * (element % 2) (low) and the next (high) of
// Philox::Block(seed, element / 2, offset).
inline uint64_t RandomBits64(uint64_t seed, uint64_t offset, uint64_t element) {
  const auto words = Philox::Block(seed, element / 2, offset);
  const uint64_t low = words[element % 2 * 2];
  return uint64_t{words[element % 2 * 2 + 1]} << 32 | low;
}

// Uniform in [0, 1): the upper 53 of RandomBits64, times 2^-53.
inline double Uniform01(uint64_t seed, uint64_t offset, uint64_t element) {
  return static_cast<double>(RandomBits64(seed, offset, element) >> 11) *
         0x1p-53;
}

// Uniform in {0, ..., n - 1} (RandomBits64 * n / 2^64: no value is likelier
// than another by more than n / 2^64). Throws Error unless n >= 1.
int64_t UniformInt(uint64_t seed, uint64_t offset, uint64_t element, int64_t n);

// y[i] = lo + (hi - lo) * Uniform01(seed, offset, i), within [lo, hi), the
// bounds rounded to T; all are lo where lo == hi. T is float or double, and the
// floats are the rounded doubles. Throws Error unless lo <= hi.
template <typename T>
void FillUniform(uint64_t seed, uint64_t offset, double lo, double hi,
                 int64_t n, T* y);

// y[i] normal with the given mean and standard deviation, by Box and Muller's
// method: elements 2k and 2k + 1 share one block. T as above. Throws Error
// unless stddev >= 0.
template <typename T>
void FillNormal(uint64_t seed, uint64_t offset, double mean, double stddev,
                int64_t n, T* y);

// The probability that a standard normal number lies in [a, b], a <= b, to a
// few roundings in far tails too.
double NormalProbability(double a, double b);

// y[i] normal, drawn from what lies in [lo, hi] (either may be infinite), by
// the inverse of the distribution at a uniform number from the upper 52 of
// RandomBits64(.., i): exact in far tails too. The bounds are rounded to T.
// Throws Error unless stddev > 0 and a part of more than 1e-300 of the
// distribution lies between them (to about 37 deviations off the mean).
template <typename T>
void FillTruncatedNormal(uint64_t seed, uint64_t offset, double mean,
                         double stddev, double lo, double hi, int64_t n, T* y);

// y[i] = 1 where Uniform01(seed, offset, i) < p[i], else 0.
template <typename T>
void FillBernoulli(uint64_t seed, uint64_t offset, int64_t n, const T* p, T* y);

// The numbers 0 .. n - 1 in random order (Fisher and Yates). Throws Error
// unless n >= 0.
std::vector<int64_t> Permutation(uint64_t seed, uint64_t offset, int64_t n);

// A seed for the stream called `name`, so that adding a stream changes no
// other. Parameters take theirs by full name.
uint64_t StreamKey(uint64_t seed, const std::string& name);

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_RANDOM_H_
