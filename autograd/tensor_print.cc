// Prints arrays as NumPy does: brackets for dimensions, columns aligned, the
// middle of a long dimension left out.
#include <algorithm>
#include <cmath>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/tensor.h"

namespace wengert {
namespace {

constexpr int64_t kLong = 1000;  // more elements than this are shortened
constexpr int64_t kEdge = 3;     // to so many at each end of a dimension

class Printer {
 public:
  explicit Printer(const Tensor& x)
      : x_(x), values_(x.ToVector()), shorten_(x.size() > kLong) {
    Visit(0, 0, [&](int64_t i) {
      const double v = values_[i];
      if (std::isfinite(v) && v != 0) {
        const double a = std::abs(v);
        scientific_ |= a >= 1e8 || a < 1e-4;
      }
    });
    Visit(0, 0, [&](int64_t i) { width_ = std::max(width_, Cell(i).size()); });
  }

  std::string Print() {
    Write(0, 0);
    return std::move(out_);
  }

 private:
  std::string Cell(int64_t i) const {
    // A double does not hold each of them.
    if (x_.dtype() == DType::kInt64) return absl::StrCat(x_.data<int64_t>()[i]);
    const double v = values_[i];
    if (x_.dtype() == DType::kBool) return v != 0 ? "true" : "false";
    if (!IsFloat(x_.dtype())) return absl::StrFormat("%.0f", v);
    if (std::isnan(v)) return "nan";  // whatever its sign bit
    if (std::isinf(v)) return absl::StrFormat("%f", v);
    return scientific_ ? absl::StrFormat("%.4e", v)
                       : absl::StrFormat("%.4f", v);
  }

  bool Skipped(int axis, int64_t i) const {
    return shorten_ && x_.shape()[axis] > 2 * kEdge && i >= kEdge &&
           i < x_.shape()[axis] - kEdge;
  }

  // Calls f with the place of every element that is shown.
  template <class F>
  void Visit(int axis, int64_t index, F f) const {
    if (axis == x_.rank()) {
      f(index);
      return;
    }
    for (int64_t i = 0; i < x_.shape()[axis]; ++i) {
      if (!Skipped(axis, i)) Visit(axis + 1, index * x_.shape()[axis] + i, f);
    }
  }

  void Write(int axis, int64_t index) {
    if (axis == x_.rank()) {
      absl::StrAppend(
          &out_, absl::StrFormat("%*s", static_cast<int>(width_), Cell(index)));
      return;
    }
    const bool last = axis + 1 == x_.rank();
    out_ += '[';
    for (int64_t i = 0; i < x_.shape()[axis]; ++i) {
      if (i > 0) {
        out_ += last ? ", " : ",\n" + std::string(axis + 1, ' ');
      }
      if (Skipped(axis, i)) {
        out_ += "...";
        i = x_.shape()[axis] - kEdge - 1;
      } else {
        Write(axis + 1, index * x_.shape()[axis] + i);
      }
    }
    out_ += ']';
  }

  const Tensor& x_;
  const std::vector<double> values_;
  const bool shorten_;
  bool scientific_ = false;
  size_t width_ = 0;
  std::string out_;
};

}  // namespace

std::string Tensor::ToString() const {
  if (!defined()) return "undefined";
  return absl::StrCat(Printer(*this).Print(), " ", Describe(*this));
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) {
  return out << x.ToString();
}

}  // namespace wengert
