// Conversions to and from 16-bit floats.
#include "train/half.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace wengert::train {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Half, KnownValues) {
  EXPECT_EQ(FromFloat16(0x3C00), 1.0f);
  EXPECT_EQ(FromFloat16(0xC000), -2.0f);
  EXPECT_EQ(FromFloat16(0x7BFF), 65504.0f);
  EXPECT_EQ(FromFloat16(0x0400), 0x1p-14f);  // the smallest normal number
  EXPECT_EQ(FromFloat16(0x0001), 0x1p-24f);  // and the smallest of all
  EXPECT_EQ(FromFloat16(0x7C00), kInfinity);
  EXPECT_TRUE(std::isnan(FromFloat16(0x7E00)));
  EXPECT_TRUE(std::signbit(FromFloat16(0x8000)));
  EXPECT_EQ(FromBfloat16(0x3F80), 1.0f);
  EXPECT_EQ(FromBfloat16(0xC040), -3.0f);
  EXPECT_EQ(FromBfloat16(0x0001), 0x1p-133f);
  EXPECT_EQ(FromBfloat16(0xFF80), -kInfinity);
}

TEST(Half, EveryValueComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if (std::isnan(FromFloat16(half))) {
      EXPECT_TRUE(std::isnan(FromFloat16(ToFloat16(FromFloat16(half)))));
    } else {
      ASSERT_EQ(ToFloat16(FromFloat16(half)), half);
    }
    if (std::isnan(FromBfloat16(half))) {
      EXPECT_TRUE(std::isnan(FromBfloat16(ToBfloat16(FromBfloat16(half)))));
    } else {
      ASSERT_EQ(ToBfloat16(FromBfloat16(half)), half);
    }
  }
}

// Between each two neighbours: the middle goes to the even one, what lies
// beside it to the nearer.
template <class From, class To>
void ExpectNearestEven(From from, To to, uint16_t infinity, double beyond) {
  for (uint16_t bits = 0; bits < infinity; ++bits) {
    const uint16_t next = bits + 1;
    const double low = from(bits);
    const double high = next == infinity ? beyond : double{from(next)};
    const double middle = (low + high) / 2;
    ASSERT_EQ(to(middle), bits % 2 == 0 ? bits : next) << low;
    ASSERT_EQ(to(std::nextafter(middle, 0)), bits) << low;
    ASSERT_EQ(to(std::nextafter(middle, kInfinity)), next) << low;
    ASSERT_EQ(to(-middle), 0x8000 | (bits % 2 == 0 ? bits : next)) << low;
  }
}

TEST(Half, RoundsToNearestEven) {
  ExpectNearestEven(FromFloat16, ToFloat16, 0x7C00, 65536);
  ExpectNearestEven(FromBfloat16, ToBfloat16, 0x7F80, 0x1p128);
}

TEST(Half, Extremes) {
  EXPECT_EQ(ToFloat16(1e300), 0x7C00);
  EXPECT_EQ(ToFloat16(-kInfinity), 0xFC00);
  EXPECT_EQ(ToFloat16(1e-300), 0);
  EXPECT_EQ(ToFloat16(-std::numeric_limits<double>::denorm_min()), 0x8000);
  EXPECT_EQ(ToBfloat16(1e300), 0x7F80);
  EXPECT_EQ(ToBfloat16(0x1p-149), 0);
  // A NaN whose payload lies in the bits that are cut off.
  const double nan = std::bit_cast<double>(uint64_t{0x7FF0000000000001});
  EXPECT_TRUE(std::isnan(FromFloat16(ToFloat16(nan))));
  EXPECT_TRUE(std::isnan(FromBfloat16(ToBfloat16(nan))));
}

}  // namespace
}  // namespace wengert::train
