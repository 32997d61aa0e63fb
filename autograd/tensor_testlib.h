// What tests of every folder share.
#ifndef WENGERT_AUTOGRAD_TENSOR_TESTLIB_H_
#define WENGERT_AUTOGRAD_TENSOR_TESTLIB_H_

#include <cstring>
#include <string>

#include "absl/functional/function_ref.h"
#include "autograd/error.h"
#include "autograd/tensor.h"
#include "gtest/gtest.h"

namespace wengert {

// The text of the Error that f must throw.
inline std::string ErrorOf(absl::FunctionRef<void()> f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

// Equal shapes, dtypes and bits.
inline bool SameBits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         (a.size() == 0 || std::memcmp(a.impl()->data, b.impl()->data,
                                       a.size() * ByteSize(a.dtype())) == 0);
}

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_TENSOR_TESTLIB_H_
