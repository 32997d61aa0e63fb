// Dimensions of an array: row-major, any rank; rank 0 (a scalar) and zero-size
// dimensions included. Broadcasting is NumPy's.
#ifndef WENGERT_AUTOGRAD_SHAPE_H_
#define WENGERT_AUTOGRAD_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <new>
#include <string>
#include <utility>

#include "absl/types/span.h"

namespace wengert {

class Shape {
 public:
  Shape() = default;
  // Throws on a negative dimension or when the element count overflows.
  Shape(std::initializer_list<int64_t> dims)
      : Shape(absl::MakeConstSpan(dims.begin(), dims.size())) {}
  explicit Shape(absl::Span<const int64_t> dims);
  Shape(const Shape& o) : rank_(o.rank_), size_(o.size_) {
    rank_ <= kFew ? CopyFew(o.few_) : CopyMany(o.many_);
  }
  Shape(Shape&& o) noexcept : rank_(o.rank_), size_(o.size_) {
    rank_ <= kFew ? CopyFew(o.few_) : TakeMany(o);
  }
  Shape& operator=(const Shape& o) { return *this = Shape(o); }
  Shape& operator=(Shape&& o) noexcept {
    if (this == &o) return *this;
    this->~Shape();
    return *new (this) Shape(std::move(o));
  }
  ~Shape() {
    if (rank_ > kFew) delete[] many_;
  }

  int rank() const { return rank_; }
  // Number of elements: the product of the dimensions, 1 for rank 0.
  int64_t size() const { return size_; }
  // `axis` counts from the end when negative; throws when out of range.
  int64_t dim(int axis) const { return data()[CheckAxis("Shape::dim", axis)]; }
  int64_t operator[](int axis) const { return data()[axis]; }
  absl::Span<const int64_t> dims() const {
    return {data(), static_cast<size_t>(rank_)};
  }

  // The axis in [0, rank) that `axis` (may be negative) names, or an Error
  // that starts with `op`.
  int CheckAxis(const char* op, int axis) const {
    if (axis < -rank_ || axis >= rank_) ThrowAxis(op, axis);
    return axis < 0 ? axis + rank_ : axis;
  }

  // "[2, 3]"
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_ || a.size_ != b.size_) return false;
    const int64_t *x = a.data(), *y = b.data();
    for (int i = 0; i < a.rank_; ++i) {
      if (x[i] != y[i]) return false;
    }
    return true;
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  static constexpr int kFew = 6;

  const int64_t* data() const { return rank_ <= kFew ? few_ : many_; }
  // One dimension at a time: a wide load that follows narrow stores waits until
  // they have left the processor's store buffer, and shapes are copied as soon
  // as they are made.
  void CopyFew(const int64_t* dims) {
    for (int i = 0, n = rank_; i < n; ++i) {
      few_[i] = dims[i];
      asm volatile("" : : : "memory");  // no memcpy in place of the loop
    }
  }
  void CopyMany(const int64_t* dims);
  void TakeMany(Shape& o) {
    many_ = o.many_;
    o.rank_ = 0;
    o.size_ = 1;
  }
  [[noreturn]] void ThrowAxis(const char* op, int axis) const;

  int rank_ = 0;
  int64_t size_ = 1;
  union {
    int64_t few_[kFew];  // of rank up to kFew
    int64_t* many_;      // of a higher one
  };
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

// The shape to which `a` and `b` broadcast (aligned at the right, a dimension
// of 1 repeats), or an Error that starts with `op` and gives both shapes.
Shape Broadcast(const char* op, const Shape& a, const Shape& b);

// Whether `from` broadcasts to exactly `to`.
bool BroadcastsTo(const Shape& from, const Shape& to);

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_SHAPE_H_
