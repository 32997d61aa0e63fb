#include "autograd/gradcheck_judge.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace wengert::internal {
namespace {

// Lets part of a variable move while it lives, and puts it back.
class Moving {
 public:
  Moving(Tensor x, int64_t begin, int64_t end)
      : x_(std::move(x)),
        begin_(begin),
        start_(x_.data<double>() + begin, x_.data<double>() + end) {}
  ~Moving() { MoveTo(start_); }
  Moving(const Moving&) = delete;
  Moving& operator=(const Moving&) = delete;

  const std::vector<double>& start() const { return start_; }
  void MoveTo(const std::vector<double>& values) {
    std::copy(values.begin(), values.end(), x_.mutable_data<double>() + begin_);
  }

 private:
  Tensor x_;
  int64_t begin_;
  std::vector<double> start_;
};

// A function may return its variable itself, which moves.
std::vector<Tensor> Copies(std::vector<Tensor> values) {
  for (Tensor& x : values) x = x.Clone();
  return values;
}

}  // namespace

Tensor RandomWeights(const Shape& shape, uint64_t seed, uint64_t offset) {
  Tensor y = Tensor::Empty(shape, DType::kFloat64);
  double* p = y.mutable_data<double>();
  for (int64_t i = 0; i < y.size(); ++i) {
    const double u = Uniform01(seed, offset, i);
    p[i] = u < 0.5 ? -0.5 - 2 * u : 2 * u - 0.5;
  }
  return y;
}

std::string IndexOf(const Shape& shape, int64_t flat) {
  std::vector<int64_t> index(shape.rank());
  for (int i = shape.rank(); i-- > 0;) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return absl::StrCat("[", absl::StrJoin(index, ", "), "]");
}

void GradientJudge::Fail(const std::string& why) {
  report_.ok = false;
  report_.message = absl::StrCat(options_.name, ": ", why);
  report_.worst = HUGE_VAL;
}

double GradientJudge::Allowed(double a, double b) const {
  return options_.atol + options_.rtol * std::max(std::abs(a), std::abs(b));
}

// The difference of a pair that should be equal, over what is allowed.
double GradientJudge::Excess(double a, double b) const {
  const double excess = std::abs(a - b) / Allowed(a, b);
  return std::isfinite(excess) ? excess : HUGE_VAL;
}

void GradientJudge::Note(const std::string& what, const Variable& v, int64_t i,
                         const char* a_name, double a, const char* b_name,
                         double b) {
  const double excess = Excess(a, b);
  if (excess <= report_.worst) return;
  report_.worst = excess;
  if (excess <= 1) return;
  report_.ok = false;
  report_.message = absl::StrFormat(
      "%s: %s by %s, float64 %s, at index %s: %s %.12g, %s %.12g (difference "
      "%.3g, allowed %.3g)",
      options_.name, what, v.name, v.x.shape().ToString(),
      IndexOf(v.x.shape(), i), a_name, a, b_name, b, a - b, Allowed(a, b));
}

void GradientJudge::Compare(const std::string& what, const Variable& v,
                            const char* a_name, const Tensor& a,
                            const char* b_name, const Tensor& b) {
  for (int64_t i = 0; i < a.size(); ++i) {
    Note(what, v, i, a_name, a.data<double>()[i], b_name, b.data<double>()[i]);
  }
}

void GradientJudge::CheckDifferences(GradientClaim claim) {
  claim.gradients = Copies(std::move(claim.gradients));
  for (size_t v = 0; v < claim.variables.size(); ++v) {
    const Variable& variable = claim.variables[v];
    const int64_t n = variable.x.size();
    for (int k = 0; k < options_.directions && n > 0; ++k) {
      CheckDirection(claim, v,
                     RandomWeights({n}, options_.seed, 1000 + 100 * v + k));
    }
    if (options_.directions > 0) continue;
    const Tensor ones = Tensor::Ones({n}, DType::kFloat64);
    for (int64_t i = 0; i < n; ++i) {
      const Slopes s = SlopesAlong(claim, v, ones, i, i + 1);
      Note(claim.what, variable, i, "numeric", s.numeric, "analytic",
           s.analytic);
    }
  }
}

// Where the slopes along d differ, finds an element at which they do.
void GradientJudge::CheckDirection(const GradientClaim& claim, size_t v,
                                   const Tensor& d) {
  int64_t begin = 0, end = d.size();
  Slopes s = SlopesAlong(claim, v, d, begin, end);
  const double excess = Excess(s.numeric, s.analytic);
  if (excess <= 1) {
    report_.worst = std::max(report_.worst, excess);
    return;
  }
  while (end - begin > 1) {  // into the half that is further off
    const int64_t middle = (begin + end) / 2;
    const Slopes left = SlopesAlong(claim, v, d, begin, middle);
    const Slopes right = SlopesAlong(claim, v, d, middle, end);
    const bool go_left = !(std::abs(left.numeric - left.analytic) <
                           std::abs(right.numeric - right.analytic));
    s = go_left ? left : right;
    (go_left ? end : begin) = middle;
  }
  const double step = d.data<double>()[begin];
  const Variable& variable = claim.variables[v];
  Note(claim.what, variable, begin, "numeric", s.numeric / step, "analytic",
       s.analytic / step);
  if (report_.ok) {
    Fail(absl::StrCat(claim.what, " by ", variable.name,
                      " along a random direction; each element alone passes"));
  }
}

// The slope of the claimed sum where elements [begin, end) of variable v move
// along d, as measured and as the gradient has it.
GradientJudge::Slopes GradientJudge::SlopesAlong(const GradientClaim& claim,
                                                 size_t v, const Tensor& d,
                                                 int64_t begin,
                                                 int64_t end) const {
  Moving x(claim.variables[v].x, begin, end);
  std::vector<double> low = x.start(), high = x.start();
  Slopes slopes{0, 0};
  for (int64_t i = begin; i < end; ++i) {
    const double h = options_.step * d.data<double>()[i];
    double &lo = low[i - begin], &hi = high[i - begin];
    lo -= h;
    hi += h;
    // hi - lo is the step as it was rounded.
    slopes.analytic += claim.gradients[v].data<double>()[i] * (hi - lo);
  }
  x.MoveTo(low);
  const std::vector<Tensor> below = Copies(claim.value());
  x.MoveTo(high);
  const std::vector<Tensor> above = claim.value();
  for (size_t k = 0; k < below.size(); ++k) {
    for (int64_t i = 0; i < below[k].size(); ++i) {
      slopes.numeric +=
          claim.cotangents[k].data<double>()[i] *
          (above[k].data<double>()[i] - below[k].data<double>()[i]);
    }
  }
  slopes.analytic /= 2 * options_.step;
  slopes.numeric /= 2 * options_.step;
  return slopes;
}

}  // namespace wengert::internal
