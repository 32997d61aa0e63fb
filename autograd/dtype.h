// Element types, and the step from a dtype to a C++ type.
#ifndef WENGERT_AUTOGRAD_DTYPE_H_
#define WENGERT_AUTOGRAD_DTYPE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace wengert {

enum class DType : uint8_t { kFloat32, kFloat64, kInt32, kInt64, kBool };

inline bool IsFloat(DType d) { return d <= DType::kFloat64; }

// "float32"
inline const char* Name(DType dtype) {
  static constexpr const char* kNames[] = {"float32", "float64", "int32",
                                           "int64", "bool"};
  return kNames[static_cast<int>(dtype)];
}

template <class T>
inline constexpr DType kDTypeOf = [] {
  static_assert(sizeof(T) == 0, "float, double, int32_t, int64_t or bool");
  return DType::kBool;
}();
template <>
inline constexpr DType kDTypeOf<float> = DType::kFloat32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kFloat64;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::kInt32;
template <>
inline constexpr DType kDTypeOf<int64_t> = DType::kInt64;
template <>
inline constexpr DType kDTypeOf<bool> = DType::kBool;

// Whether `value` is one of an integer T, not between two or beyond all; any
// value goes for the other types.
template <class T>
bool Holds(double value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    // The bound itself is no T, but a double.
    const double bound = -static_cast<double>(std::numeric_limits<T>::min());
    return value >= -bound && value < bound && value == std::trunc(value);
  }
  return true;
}
// f(float{}) or f(double{}).
template <class F>
decltype(auto) WithFloat(DType dtype, F f) {
  return dtype == DType::kFloat32 ? f(float{}) : f(double{});
}

// f(T{}) with the C++ type of any dtype.
template <class F>
decltype(auto) WithAny(DType dtype, F f) {
  switch (dtype) {
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat64:
      return f(double{});
    case DType::kInt32:
      return f(int32_t{});
    case DType::kInt64:
      return f(int64_t{});
    default:
      return f(bool{});
  }
}

// Bytes of one element.
inline size_t ByteSize(DType dtype) {
  return WithAny(dtype, [](auto t) { return sizeof(t); });
}

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_DTYPE_H_
