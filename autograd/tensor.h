// Tensor: a cheap handle on an immutable, contiguous, row-major array.
//
// Copying a Tensor copies the handle. There are no strides; Reshape and
// leading-dimension slices share storage, all else is a new array. Operations
// never write to their inputs; a caller who writes uses mutable_data, which
// bumps the version that backward passes check.
#ifndef WENGERT_AUTOGRAD_TENSOR_H_
#define WENGERT_AUTOGRAD_TENSOR_H_

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "autograd/dtype.h"
#include "autograd/fetch_add.h"
#include "autograd/shape.h"

namespace wengert {

struct Parameter;

// What a handle points to. Lives in one pooled block with its elements behind
// it, unless `storage` lends it memory. For the tape and the stores.
struct TensorImpl {
  TensorImpl(DType t, const Shape& s, void* d) : dtype(t), data(d), shape(s) {}

  std::atomic<int32_t> refs{1};
  DType dtype;
  bool frozen = false;  // a parameter that tapes take for a constant
  void* data;
  TensorImpl* storage = nullptr;  // whose memory `data` lies in; counted
  TensorImpl* versioned = this;   // whose version counts for this memory
  std::atomic<uint64_t> version{0};
  Parameter* parameter = nullptr;  // set by a parameter store
  uint64_t tape = 0;               // the tape that recorded it, 0 = none
  int64_t slot = 0;                // and where; written once
  // Last: what the tape asks for lies in the one cache line above.
  Shape shape;
};

class Tensor {
 public:
  // A handle on nothing: defined() is false.
  Tensor() = default;
  Tensor(const Tensor& o) : p_(o.p_) {
    if (p_) FetchAdd(p_->refs, 1, std::memory_order_relaxed);
  }
  Tensor(Tensor&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Tensor& operator=(Tensor o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Tensor() {
    if (!p_) return;
    // Who holds the only handle needs no locked instruction: nobody else can
    // copy it.
    if (p_->refs.load(std::memory_order_acquire) == 1 ||
        FetchAdd(p_->refs, -1, std::memory_order_acq_rel) == 1) {
      Free(p_);
    }
  }

  // Elements are uninitialised.
  static Tensor Empty(const Shape& shape, DType dtype = DType::kFloat32);
  static Tensor Zeros(const Shape& shape, DType dtype = DType::kFloat32);
  static Tensor Ones(const Shape& shape, DType dtype = DType::kFloat32);
  // An integer array takes a whole value within its range.
  static Tensor Full(const Shape& shape, double value,
                     DType dtype = DType::kFloat32);
  static Tensor Scalar(double value, DType dtype = DType::kFloat32);
  // The values in row-major order; throws unless there are shape.size().
  template <class T>
  static Tensor From(const Shape& shape, const std::vector<T>& values);
  template <class T = float>
  static Tensor Of(const Shape& shape,
                   std::initializer_list<std::type_identity_t<T>> values) {
    return From(shape, std::vector<T>(values));
  }
  // Elements [offset, offset + shape.size()) of `base`, sharing its memory.
  // With `own_version`, writes to it are counted apart from the base's.
  static Tensor Alias(const Tensor& base, int64_t offset, const Shape& shape,
                      bool own_version = false);

  bool defined() const { return p_ != nullptr; }
  const Shape& shape() const { return get("shape")->shape; }
  DType dtype() const { return get("dtype")->dtype; }
  int rank() const { return shape().rank(); }
  int64_t size() const { return shape().size(); }
  // `axis` counts from the end when negative.
  int64_t dim(int axis) const { return shape().dim(axis); }

  // The elements in row-major order. T must be the tensor's own type.
  template <class T>
  const T* data() const {
    CheckType(kDTypeOf<T>);
    return static_cast<const T*>(p_->data);
  }
  template <class T>
  absl::Span<const T> span() const {
    // Not {..}, which of bools would be a list of two.
    return absl::MakeConstSpan(data<T>(), size());
  }
  // For writing: every record that saved this memory refuses to go backward.
  template <class T>
  T* mutable_data() {
    CheckType(kDTypeOf<T>);
    FetchAdd(p_->versioned->version, 1, std::memory_order_relaxed);
    return static_cast<T*>(p_->data);
  }
  // All elements, converted.
  std::vector<double> ToVector() const;
  // The only element, converted; throws unless size() is 1.
  double item() const;
  uint64_t version() const {
    return get("version")->versioned->version.load(std::memory_order_relaxed);
  }

  // The same values under no tape: gradients stop here. Shares memory.
  Tensor Detach() const;
  // A copy in memory of its own, under no tape.
  Tensor Clone() const;
  // Converts; the gradient is converted back. Differentiable between floats.
  Tensor To(DType dtype) const;
  // A parameter's gathered gradient; not defined when it has none.
  Tensor grad() const;

  // NumPy's form; long arrays are shortened.
  std::string ToString() const;

  // Whether no other handle or view can see this memory.
  bool unique() const {
    const auto alone = [](const TensorImpl* p) {
      return p->refs.load(std::memory_order_acquire) == 1;
    };
    return alone(get("unique")) && !p_->parameter &&
           (!p_->storage || alone(p_->storage));
  }
  TensorImpl* impl() const { return p_; }

 private:
  explicit Tensor(TensorImpl* p) : p_(p) {}
  static void Free(TensorImpl* p) noexcept;
  TensorImpl* get(const char* what) const {
    if (!p_) ThrowUndefined(what);
    return p_;
  }
  [[noreturn]] static void ThrowUndefined(const char* what);
  void CheckType(DType wanted) const {
    if (get("data")->dtype != wanted) ThrowType(wanted);
  }
  [[noreturn]] void ThrowType(DType wanted) const;

  TensorImpl* p_ = nullptr;
};

extern template Tensor Tensor::From(const Shape&, const std::vector<float>&);
extern template Tensor Tensor::From(const Shape&, const std::vector<double>&);
extern template Tensor Tensor::From(const Shape&, const std::vector<int32_t>&);
extern template Tensor Tensor::From(const Shape&, const std::vector<int64_t>&);
extern template Tensor Tensor::From(const Shape&, const std::vector<bool>&);

std::ostream& operator<<(std::ostream& out, const Tensor& x);

// "float32 [2, 3]": how messages name an operand.
std::string Describe(const Tensor& x);

// Throws Error in the name of `op` unless an array of the dtype can be filled
// with the value: an integer one takes whole values within its range.
void CheckFillValue(const char* op, double value, DType dtype);

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_TENSOR_H_
