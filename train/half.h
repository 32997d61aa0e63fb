// The two 16-bit floats that files hold, float16 (IEEE 754 binary16) and
// bfloat16 (the upper half of a float), as bits.
#ifndef WENGERT_TRAIN_HALF_H_
#define WENGERT_TRAIN_HALF_H_

#include <bit>
#include <cstdint>

namespace wengert::train {

// The nearest number of one sign bit, `exponent_bits` and `mantissa_bits`, 16
// in all; of two that are equally near, the even one. What is too large becomes
// an infinity; a NaN stays one.
inline uint16_t RoundToHalf(double x, int exponent_bits, int mantissa_bits) {
  constexpr int kMantissa = 52, kBias = 1023;  // of double
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const uint64_t sign = bits >> 63 << 15;
  const int exponent = static_cast<int>(bits >> kMantissa & 0x7FF);
  const uint64_t mantissa = bits & ((uint64_t{1} << kMantissa) - 1);
  const uint64_t infinity = ((uint64_t{1} << exponent_bits) - 1)
                            << mantissa_bits;
  if (exponent == 0x7FF) {
    const uint64_t quiet = uint64_t{1} << (mantissa_bits - 1);
    const uint64_t nan = quiet | mantissa >> (kMantissa - mantissa_bits);
    return static_cast<uint16_t>(sign | infinity | (mantissa ? nan : 0));
  }
  // The exponent field of the result; below 1 the number is subnormal, and
  // loses as many bits more.
  const int field = exponent - kBias + (1 << (exponent_bits - 1)) - 1;
  const int shift = kMantissa - mantissa_bits + (field < 1 ? 1 - field : 0);
  if (shift > kMantissa + 1 || exponent == 0) {  // less than half the smallest
    return static_cast<uint16_t>(sign);
  }
  const uint64_t full = mantissa | uint64_t{1} << kMantissa;
  const uint64_t half = uint64_t{1} << (shift - 1);
  const uint64_t rest = full & (2 * half - 1);
  uint64_t result = full >> shift;
  result += rest > half || (rest == half && (result & 1));
  // The leading 1 of a normal number adds one to the field, and so does what
  // rounding carries.
  if (field > 0) result += static_cast<uint64_t>(field - 1) << mantissa_bits;
  return static_cast<uint16_t>(sign | (result < infinity ? result : infinity));
}

inline uint16_t ToFloat16(double x) { return RoundToHalf(x, 5, 10); }
inline uint16_t ToBfloat16(double x) { return RoundToHalf(x, 8, 7); }

inline float FromBfloat16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

inline float FromFloat16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits} >> 15 << 31;
  const uint32_t rest = (uint32_t{bits} & 0x7FFF) << 13;
  // Float's bias is larger by 112. The product is exact, for a subnormal too.
  const bool finite = rest < 0x0F800000;
  const uint32_t magnitude =
      finite ? std::bit_cast<uint32_t>(std::bit_cast<float>(rest) * 0x1p112f)
             : rest | 0x7F800000;
  return std::bit_cast<float>(sign | magnitude);
}

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_HALF_H_
