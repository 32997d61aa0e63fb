#include "train/element_figures.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "train/half.h"

namespace wengert::train {
namespace {

// Micikevicius et al. 2022, "FP8 Formats for Deep Learning": E5M2 is the upper
// byte of a float16; E4M3 has bias 7, no infinity, and one NaN of each sign.
float FromE5M2(uint8_t bits) {
  return FromFloat16(static_cast<uint16_t>(bits << 8));
}
float FromE4M3(uint8_t bits) {
  const int field = bits >> 3 & 15, mantissa = bits & 7;
  const bool nan = field == 15 && mantissa == 7;
  const float magnitude =
      nan ? std::numeric_limits<float>::quiet_NaN()
          : std::ldexp(static_cast<float>(mantissa + (field > 0 ? 8 : 0)),
                       std::max(field, 1) - 10);
  return bits >> 7 ? -magnitude : magnitude;
}

// Calls f(read), where read(bytes, i) is element i of such an array.
template <class F>
void WithReader(ElementType type, F f) {
  const auto read = [&]<class T>(T, auto decode) {
    f([decode](absl::Span<const uint8_t> bytes, int64_t i) -> long double {
      T x;
      std::memcpy(&x, bytes.data() + i * sizeof(T), sizeof(T));
      return decode(x);
    });
  };
  const auto plain = [](auto x) { return x; };
  switch (type) {
    case ElementType::kBool:
      return read(uint8_t{}, [](uint8_t x) { return x != 0; });
    case ElementType::kU8:
      return read(uint8_t{}, plain);
    case ElementType::kI8:
      return read(int8_t{}, plain);
    case ElementType::kF8E5M2:
      return read(uint8_t{}, FromE5M2);
    case ElementType::kF8E4M3:
      return read(uint8_t{}, FromE4M3);
    case ElementType::kI16:
      return read(int16_t{}, plain);
    case ElementType::kU16:
      return read(uint16_t{}, plain);
    case ElementType::kF16:
      return read(uint16_t{}, FromFloat16);
    case ElementType::kBF16:
      return read(uint16_t{}, FromBfloat16);
    case ElementType::kI32:
      return read(int32_t{}, plain);
    case ElementType::kU32:
      return read(uint32_t{}, plain);
    case ElementType::kF32:
      return read(float{}, plain);
    case ElementType::kI64:
      return read(int64_t{}, plain);
    case ElementType::kU64:
      return read(uint64_t{}, plain);
    case ElementType::kF64:
      return read(double{}, plain);
  }
}

void Add(ElementFigures& f, long double x) {
  ++f.count;
  if (!std::isfinite(x)) {
    ++f.not_finite;
    return;
  }
  f.sum += x;
  f.squares += x * x;
  f.max = std::max(f.max, std::abs(x));
}

}  // namespace

ElementFigures& ElementFigures::operator+=(const ElementFigures& o) {
  count += o.count;
  not_finite += o.not_finite;
  sum += o.sum;
  squares += o.squares;
  max = std::max(max, o.max);
  return *this;
}

long double ElementFigures::norm() const { return std::sqrt(squares); }

long double ElementFigures::mean() const {
  const int64_t n = count - not_finite;
  return n > 0 ? sum / static_cast<long double>(n) : 0;
}

ElementFigures FiguresOf(const SafetensorsFile::Entry& x) {
  ElementFigures f;
  WithReader(x.type, [&](auto read) {
    for (int64_t i = 0; i < x.shape.size(); ++i) Add(f, read(x.bytes, i));
  });
  return f;
}

ElementDifference Compare(const SafetensorsFile::Entry& a,
                          const SafetensorsFile::Entry& b) {
  ElementDifference d;
  if (a.bytes == b.bytes) {
    d.same_bits = true;
    d.figures.count = a.shape.size();
    return d;
  }
  WithReader(a.type, [&](auto read) {
    for (int64_t i = 0; i < a.shape.size(); ++i) {
      const long double x = read(a.bytes, i), y = read(b.bytes, i);
      const bool equal = x == y || (std::isnan(x) && std::isnan(y));
      d.differing += !equal;
      Add(d.figures, equal ? 0 : x - y);
    }
  });
  return d;
}

}  // namespace wengert::train
