// What operations share: checks that name the operation and the shapes.
#ifndef WENGERT_AUTOGRAD_OPS_OP_UTIL_H_
#define WENGERT_AUTOGRAD_OPS_OP_UTIL_H_

#include <functional>
#include <initializer_list>
#include <string>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/tensor.h"

namespace wengert {

template <class... Parts>
[[noreturn]] void Throw(const char* op, const Parts&... parts) {
  throw Error(absl::StrCat(op, ": ", parts...));
}

using Operands = std::initializer_list<std::reference_wrapper<const Tensor>>;

// Throws unless the operands, and those optional ones that are defined, are
// floats of one dtype, which it returns.
inline DType CheckFloats(const char* op, Operands operands,
                         Operands optional = {}) {
  const Tensor& first = *operands.begin();
  const auto fits = [&](const Tensor& x) {
    return x.defined() && IsFloat(x.dtype()) && x.dtype() == first.dtype();
  };
  bool all = true;
  for (const Tensor& x : operands) all = all && fits(x);
  for (const Tensor& x : optional) all = all && (!x.defined() || fits(x));
  if (all) return first.dtype();
  std::string got;
  for (const Operands& list : {operands, optional}) {
    for (const Tensor& x : list) {
      absl::StrAppend(&got, got.empty() ? "" : ", ", Describe(x));
    }
  }
  Throw(op, "got ", got, "; wanted float32 or float64, all of one dtype");
}

inline void CheckDefined(const char* op, const Tensor& x) {
  if (!x.defined()) Throw(op, "the operand is undefined; wanted an array");
}

// For an operation that fills the fresh array it returns.
template <class T>
T* Out(Tensor& y) {
  return static_cast<T*>(y.impl()->data);
}

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_OPS_OP_UTIL_H_
