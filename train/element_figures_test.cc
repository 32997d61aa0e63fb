#include "train/element_figures.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "train/half.h"

namespace wengert::train {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// An entry over bytes that it owns, which start at an odd address.
template <class T>
class Array {
 public:
  Array(ElementType type, const std::vector<T>& values)
      : bytes_(1 + values.size() * sizeof(T)) {
    if (!values.empty()) {
      std::memcpy(bytes_.data() + 1, values.data(), values.size() * sizeof(T));
    }
    entry = {"x", type, Shape{static_cast<int64_t>(values.size())},
             absl::MakeConstSpan(bytes_).subspan(1)};
  }
  SafetensorsFile::Entry entry;

 private:
  std::vector<uint8_t> bytes_;
};

template <class T>
void Expect345(ElementType type, const std::vector<T>& values) {
  const Array<T> x(type, values);
  const ElementFigures f = FiguresOf(x.entry);
  EXPECT_EQ(f.count, 2) << ElementName(type);
  EXPECT_EQ(f.norm(), 5) << ElementName(type);
  EXPECT_EQ(f.mean(), 3.5) << ElementName(type);
  EXPECT_EQ(f.max, 4) << ElementName(type);
}

TEST(ElementFigures, OfEveryType) {
  Expect345<uint8_t>(ElementType::kU8, {3, 4});
  Expect345<int8_t>(ElementType::kI8, {3, 4});
  Expect345<int16_t>(ElementType::kI16, {3, 4});
  Expect345<uint16_t>(ElementType::kU16, {3, 4});
  Expect345<int32_t>(ElementType::kI32, {3, 4});
  Expect345<uint32_t>(ElementType::kU32, {3, 4});
  Expect345<int64_t>(ElementType::kI64, {3, 4});
  Expect345<uint64_t>(ElementType::kU64, {3, 4});
  Expect345<float>(ElementType::kF32, {3, 4});
  Expect345<double>(ElementType::kF64, {3, 4});
  Expect345<uint16_t>(ElementType::kF16, {ToFloat16(3), ToFloat16(4)});
  Expect345<uint16_t>(ElementType::kBF16, {ToBfloat16(3), ToBfloat16(4)});
  Expect345<uint8_t>(ElementType::kF8E5M2, {0x42, 0x44});  // 1.5 * 2, 4
  Expect345<uint8_t>(ElementType::kF8E4M3, {0x44, 0x48});
  const Array<uint8_t> bools(ElementType::kBool, {0, 1, 2});
  EXPECT_EQ(FiguresOf(bools.entry).sum, 2);
  const Array<int8_t> negative(ElementType::kI8, {-128, 1});
  EXPECT_EQ(FiguresOf(negative.entry).max, 128);
}

// Largest, smallest, subnormal and special numbers of the 8-bit floats.
TEST(ElementFigures, EightBitFloats) {
  const auto value = [](ElementType type, uint8_t bits) {
    const Array<uint8_t> x(type, {bits});
    const ElementFigures f = FiguresOf(x.entry);
    return f.not_finite > 0 ? kNan : static_cast<double>(f.sum);
  };
  EXPECT_EQ(value(ElementType::kF8E4M3, 0x7E), 448);
  EXPECT_EQ(value(ElementType::kF8E4M3, 0xFE), -448);
  EXPECT_EQ(value(ElementType::kF8E4M3, 0x08), std::ldexp(1, -6));
  EXPECT_EQ(value(ElementType::kF8E4M3, 0x01), std::ldexp(1, -9));
  EXPECT_TRUE(std::isnan(value(ElementType::kF8E4M3, 0xFF)));
  EXPECT_EQ(value(ElementType::kF8E5M2, 0x7B), 57344);
  EXPECT_EQ(value(ElementType::kF8E5M2, 0x01), std::ldexp(1, -16));
  EXPECT_TRUE(std::isnan(value(ElementType::kF8E5M2, 0x7C)));
}

TEST(ElementFigures, LeaveOutWhatIsNotFinite) {
  const Array<double> x(ElementType::kF64, {kNan, -2, kInfinity, 1});
  const ElementFigures f = FiguresOf(x.entry);
  EXPECT_EQ(f.count, 4);
  EXPECT_EQ(f.not_finite, 2);
  EXPECT_EQ(f.max, 2);
  EXPECT_EQ(f.mean(), -.5);
  const Array<double> none(ElementType::kF64, {});
  EXPECT_EQ(FiguresOf(none.entry).norm(), 0);
  EXPECT_EQ(FiguresOf(none.entry).mean(), 0);
  ElementFigures sum = f;
  sum += f;
  EXPECT_EQ(sum.count, 8);
  EXPECT_EQ(sum.not_finite, 4);
  EXPECT_EQ(sum.squares, 10);
  EXPECT_EQ(sum.mean(), -.5);
}

// Squares beyond double's range, and integers beyond its precision.
TEST(ElementFigures, HoldLargeNumbers) {
  const Array<double> x(ElementType::kF64, {1e200, 0});
  EXPECT_NEAR(static_cast<double>(FiguresOf(x.entry).norm()) / 1e200, 1, 1e-15);
  const Array<uint64_t> a(ElementType::kU64, {~uint64_t{0}});
  const Array<uint64_t> b(ElementType::kU64, {~uint64_t{0} - 1});
  EXPECT_EQ(Compare(a.entry, b.entry).figures.max, 1);
}

TEST(ElementDifference, CountsAndMeasures) {
  const Array<float> a(ElementType::kF32, {1, 2, 3, 0.f});
  const Array<float> b(ElementType::kF32, {1, 5, -1, -0.f});
  const ElementDifference d = Compare(a.entry, b.entry);
  EXPECT_FALSE(d.same_bits);
  EXPECT_EQ(d.differing, 2);
  EXPECT_EQ(d.figures.count, 4);
  EXPECT_EQ(d.figures.max, 4);
  EXPECT_EQ(d.figures.norm(), 5);
  const Array<float> copy(ElementType::kF32, {1, 2, 3, 0.f});
  EXPECT_TRUE(Compare(a.entry, copy.entry).same_bits);
  const Array<float> zero(ElementType::kF32, {0.f}),
      minus(ElementType::kF32, {-0.f});
  EXPECT_FALSE(Compare(zero.entry, minus.entry).same_bits);
  EXPECT_EQ(Compare(zero.entry, minus.entry).differing, 0);
}

TEST(ElementDifference, OfWhatIsNotFinite) {
  const Array<double> a(ElementType::kF64, {kNan, kInfinity, kInfinity, 1, 0});
  const Array<double> b(ElementType::kF64,
                        {-kNan, kInfinity, -kInfinity, kNan, 2});
  const ElementDifference d = Compare(a.entry, b.entry);
  EXPECT_EQ(d.differing, 3);
  EXPECT_EQ(d.figures.not_finite, 2);
  EXPECT_EQ(d.figures.max, 2);
}

}  // namespace
}  // namespace wengert::train
