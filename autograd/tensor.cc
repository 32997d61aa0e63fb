#include "autograd/tensor.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/parameter.h"
#include "autograd/storage.h"

namespace wengert {
namespace {

// The header of a block, rounded so that the elements are 64-byte aligned.
constexpr size_t kHeader = (sizeof(TensorImpl) + 63) / 64 * 64;

TensorImpl* NewImpl(size_t bytes, const Shape& shape, DType dtype) {
  void* block = PoolAllocate(kHeader + bytes);
  return new (block)
      TensorImpl(dtype, shape, static_cast<char*>(block) + kHeader);
}

// Apart from what calls it, as other errors of functions that a step runs often
// are: making a message takes a frame that each call would pay for.
[[noreturn, gnu::noinline]] void ThrowTooLarge(const Shape& shape,
                                               DType dtype) {
  throw Error(absl::StrCat("Tensor: ", shape.ToString(), " of ", Name(dtype),
                           " is too large"));
}

}  // namespace

void Tensor::Free(TensorImpl* p) noexcept {
  TensorImpl* storage = p->storage;
  p->~TensorImpl();
  PoolFree(p);
  Tensor released(storage);  // drops the count
}

Tensor Tensor::Empty(const Shape& shape, DType dtype) {
  size_t bytes;
  if (__builtin_mul_overflow(static_cast<size_t>(shape.size()), ByteSize(dtype),
                             &bytes) ||
      bytes > SIZE_MAX / 2) {
    ThrowTooLarge(shape, dtype);
  }
  return Tensor(NewImpl(bytes, shape, dtype));
}

Tensor Tensor::Zeros(const Shape& shape, DType dtype) {
  Tensor y = Empty(shape, dtype);
  if (y.size() > 0) std::memset(y.p_->data, 0, y.size() * ByteSize(dtype));
  return y;
}

Tensor Tensor::Ones(const Shape& shape, DType dtype) {
  return Full(shape, 1, dtype);
}

Tensor Tensor::Full(const Shape& shape, double value, DType dtype) {
  Tensor y = Empty(shape, dtype);
  WithAny(dtype, [&](auto t) {
    using T = decltype(t);
    if (!Holds<T>(value)) {
      throw Error(absl::StrCat("Full: ", value, " for ", Name(dtype),
                               "; wanted a value of that dtype"));
    }
    kernels::Fill<T>(y.size(), static_cast<T>(value),
                     static_cast<T*>(y.p_->data));
  });
  return y;
}

Tensor Tensor::Scalar(double value, DType dtype) {
  return Full({}, value, dtype);
}

template <class T>
Tensor Tensor::From(const Shape& shape, const std::vector<T>& values) {
  if (static_cast<int64_t>(values.size()) != shape.size()) {
    throw Error(absl::StrCat("Tensor::From: ", values.size(),
                             " values for shape ", shape.ToString(),
                             "; wanted ", shape.size()));
  }
  Tensor y = Empty(shape, kDTypeOf<T>);
  std::copy(values.begin(), values.end(), static_cast<T*>(y.p_->data));
  return y;
}
template Tensor Tensor::From(const Shape&, const std::vector<float>&);
template Tensor Tensor::From(const Shape&, const std::vector<double>&);
template Tensor Tensor::From(const Shape&, const std::vector<int32_t>&);
template Tensor Tensor::From(const Shape&, const std::vector<int64_t>&);
template Tensor Tensor::From(const Shape&, const std::vector<bool>&);

Tensor Tensor::Alias(const Tensor& base, int64_t offset, const Shape& shape,
                     bool own_version) {
  TensorImpl* b = base.get("Alias");
  if (offset < 0 || offset > base.size() ||
      shape.size() > base.size() - offset) {
    throw Error(absl::StrCat("Tensor::Alias: elements [", offset, ", ", offset,
                             " + ", shape.size(), ") lie outside ",
                             Describe(base)));
  }
  Tensor y(NewImpl(0, shape, b->dtype));
  y.p_->data = static_cast<char*>(b->data) + offset * ByteSize(b->dtype);
  // A view of a view refers to the array itself, unless a parameter is between.
  TensorImpl* storage = b->storage && b->versioned != b ? b->storage : b;
  FetchAdd(storage->refs, 1, std::memory_order_relaxed);
  y.p_->storage = storage;
  if (!own_version) y.p_->versioned = b->versioned;
  return y;
}

std::vector<double> Tensor::ToVector() const {
  return WithAny(dtype(), [&](auto t) {
    const auto* x = data<decltype(t)>();
    return std::vector<double>(x, x + size());
  });
}

double Tensor::item() const {
  if (size() != 1) {
    throw Error(absl::StrCat("item: ", Describe(*this), " has ", size(),
                             " elements; wanted one"));
  }
  return WithAny(dtype(), [&](auto t) {
    return static_cast<double>(data<decltype(t)>()[0]);
  });
}

Tensor Tensor::Detach() const { return Alias(*this, 0, shape()); }

Tensor Tensor::Clone() const {
  Tensor y = Empty(shape(), dtype());
  if (size() > 0) {
    std::memcpy(y.p_->data, p_->data, size() * ByteSize(dtype()));
  }
  return y;
}

Tensor Tensor::grad() const {
  const Parameter* p = get("grad")->parameter;
  if (!p || p->state == Parameter::Grad::kNone) return {};
  return p->grad;
}

void Tensor::ThrowUndefined(const char* what) {
  throw Error(absl::StrCat(what,
                           ": the tensor is not defined; wanted one that "
                           "holds an array"));
}

void Tensor::ThrowType(DType wanted) const {
  throw Error(absl::StrCat("data: the elements of ", Describe(*this),
                           " were asked for as ", Name(wanted),
                           "; use To() to convert"));
}

std::string Describe(const Tensor& x) {
  if (!x.defined()) return "undefined";
  return absl::StrCat(Name(x.dtype()), " ", x.shape().ToString());
}

}  // namespace wengert
