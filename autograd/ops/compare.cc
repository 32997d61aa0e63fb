// Comparisons and logic: bool arrays, which carry no gradients.
#include "autograd/kernels/broadcast.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/ops.h"
#include "autograd/ops/op_util.h"

namespace wengert {
namespace {

using kernels::Compare;
using kernels::Logic;
using kernels::Predicate;

Tensor Compared(const char* op, Compare kind, const Tensor& a,
                const Tensor& b) {
  if (!a.defined() || !b.defined() || a.dtype() != b.dtype()) {
    Throw(op, "got ", Describe(a), " and ", Describe(b),
          "; wanted operands of one dtype");
  }
  Tensor y = Tensor::Empty(Broadcast(op, a.shape(), b.shape()), DType::kBool);
  WithAny(a.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::Apply(kind, y.shape().dims(), a.data<T>(), a.shape().dims(),
                   b.data<T>(), b.shape().dims(), Out<bool>(y));
  });
  return y;
}

bool IsBool(const Tensor& x) {
  return x.defined() && x.dtype() == DType::kBool;
}

Tensor Combined(const char* op, Logic kind, const Tensor& a, const Tensor& b) {
  if (!IsBool(a) || !IsBool(b)) {
    Throw(op, "got ", Describe(a), " and ", Describe(b), "; wanted bool");
  }
  Tensor y = Tensor::Empty(Broadcast(op, a.shape(), b.shape()), DType::kBool);
  kernels::Apply(kind, y.shape().dims(), a.data<bool>(), a.shape().dims(),
                 b.data<bool>(), b.shape().dims(), Out<bool>(y));
  return y;
}

Tensor Judged(const char* op, Predicate kind, const Tensor& x) {
  const DType dtype = CheckFloats(op, {x});
  Tensor y = Tensor::Empty(x.shape(), DType::kBool);
  WithFloat(dtype, [&](auto t) {
    using T = decltype(t);
    kernels::Apply(kind, x.size(), x.data<T>(), Out<bool>(y));
  });
  return y;
}

}  // namespace

Tensor Equal(const Tensor& a, const Tensor& b) {
  return Compared("Equal", Compare::kEq, a, b);
}
Tensor NotEqual(const Tensor& a, const Tensor& b) {
  return Compared("NotEqual", Compare::kNe, a, b);
}
Tensor Less(const Tensor& a, const Tensor& b) {
  return Compared("Less", Compare::kLt, a, b);
}
Tensor LessEqual(const Tensor& a, const Tensor& b) {
  return Compared("LessEqual", Compare::kLe, a, b);
}
Tensor Greater(const Tensor& a, const Tensor& b) {
  return Compared("Greater", Compare::kGt, a, b);
}
Tensor GreaterEqual(const Tensor& a, const Tensor& b) {
  return Compared("GreaterEqual", Compare::kGe, a, b);
}

Tensor LogicalAnd(const Tensor& a, const Tensor& b) {
  return Combined("LogicalAnd", Logic::kAnd, a, b);
}
Tensor LogicalOr(const Tensor& a, const Tensor& b) {
  return Combined("LogicalOr", Logic::kOr, a, b);
}
Tensor LogicalXor(const Tensor& a, const Tensor& b) {
  return Combined("LogicalXor", Logic::kXor, a, b);
}
Tensor LogicalNot(const Tensor& x) {
  if (!IsBool(x)) Throw("LogicalNot", "got ", Describe(x), "; wanted bool");
  return Equal(x, Tensor::Full({}, false, DType::kBool));
}

Tensor IsNan(const Tensor& x) { return Judged("IsNan", Predicate::kNan, x); }
Tensor IsInf(const Tensor& x) { return Judged("IsInf", Predicate::kInf, x); }
Tensor IsFinite(const Tensor& x) {
  return Judged("IsFinite", Predicate::kFinite, x);
}

}  // namespace wengert
