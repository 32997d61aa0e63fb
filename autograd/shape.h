// Dimensions of an array: row-major, any rank; rank 0 (a scalar) and zero-size
// dimensions included. Broadcasting is NumPy's.
#ifndef WENGERT_AUTOGRAD_SHAPE_H_
#define WENGERT_AUTOGRAD_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace wengert {

class Shape {
 public:
  Shape() = default;
  // Throws on a negative dimension or when the element count overflows.
  Shape(std::initializer_list<int64_t> dims)
      : Shape(absl::MakeConstSpan(dims.begin(), dims.size())) {}
  explicit Shape(absl::Span<const int64_t> dims);

  int rank() const { return static_cast<int>(dims_.size()); }
  // Number of elements: the product of the dimensions, 1 for rank 0.
  int64_t size() const { return size_; }
  // `axis` counts from the end when negative; throws when out of range.
  int64_t dim(int axis) const { return dims_[CheckAxis("Shape::dim", axis)]; }
  int64_t operator[](int axis) const { return dims_[axis]; }
  absl::Span<const int64_t> dims() const { return dims_; }

  // The axis in [0, rank) that `axis` (may be negative) names, or an Error
  // that starts with `op`.
  int CheckAxis(const char* op, int axis) const;

  // "[2, 3]"
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.dims_ == b.dims_;
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  absl::InlinedVector<int64_t, 6> dims_;
  int64_t size_ = 1;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

// The shape to which `a` and `b` broadcast (aligned at the right, a dimension
// of 1 repeats), or an Error that starts with `op` and gives both shapes.
Shape Broadcast(const char* op, const Shape& a, const Shape& b);

// Whether `from` broadcasts to exactly `to`.
bool BroadcastsTo(const Shape& from, const Shape& to);

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_SHAPE_H_
