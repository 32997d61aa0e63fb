#include "autograd/shape.h"

#include <algorithm>
#include <ostream>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/error.h"

namespace wengert {

namespace {

std::string Joined(absl::Span<const int64_t> dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ", "), "]");
}

}  // namespace

Shape::Shape(absl::Span<const int64_t> dims)
    : rank_(static_cast<int>(dims.size())) {
  bool empty = false;
  int64_t product = 1;  // of the dimensions that are not 0
  for (int64_t d : dims) {
    if (d < 0) {
      throw Error(absl::StrCat("Shape: ", Joined(dims),
                               " has a negative dimension; wanted >= 0"));
    }
    empty |= d == 0;
    if (d != 0 && __builtin_mul_overflow(product, d, &product)) {
      throw Error(absl::StrCat("Shape: ", Joined(dims),
                               " has more elements than 64 bits can count"));
    }
  }
  size_ = empty ? 0 : product;
  rank_ <= kFew ? CopyFew(dims.data()) : CopyMany(dims.data());
}

void Shape::CopyMany(const int64_t* dims) {
  many_ = new int64_t[rank_];
  std::copy_n(dims, rank_, many_);
}

void Shape::ThrowAxis(const char* op, int axis) const {
  throw Error(absl::StrCat(op, ": axis ", axis, " is out of range for shape ",
                           ToString(), "; wanted one in [", -rank_, ", ", rank_,
                           ")"));
}

std::string Shape::ToString() const { return Joined(dims()); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.ToString();
}

Shape Broadcast(const char* op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const int rank = std::max(a.rank(), b.rank());
  absl::InlinedVector<int64_t, 6> dims(rank);
  for (int i = 1; i <= rank; ++i) {
    const int64_t da = i <= a.rank() ? a[a.rank() - i] : 1;
    const int64_t db = i <= b.rank() ? b[b.rank() - i] : 1;
    if (da != db && da != 1 && db != 1) {
      throw Error(absl::StrCat(op, ": shapes ", a.ToString(), " and ",
                               b.ToString(), " do not broadcast: dimension ",
                               rank - i, " is ", da, " against ", db,
                               "; wanted equal or 1"));
    }
    dims[rank - i] = da == 1 ? db : da;
  }
  return Shape(dims);
}

bool BroadcastsTo(const Shape& from, const Shape& to) {
  if (from.rank() > to.rank()) return false;
  for (int i = 1; i <= from.rank(); ++i) {
    const int64_t d = from[from.rank() - i];
    if (d != 1 && d != to[to.rank() - i]) return false;
  }
  return true;
}

}  // namespace wengert
