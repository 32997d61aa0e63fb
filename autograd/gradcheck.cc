#include "autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/error.h"
#include "autograd/ops.h"

namespace wengert {
namespace {

using Values = std::vector<Tensor>;

// A tensor by which the function is differentiated.
struct Variable {
  Tensor x;
  std::string name;
};

// Something that should hold: the gradients of sum_i cotangents_i · value()_i
// by the variables.
struct Claim {
  const char* what;
  std::vector<Variable> variables;
  std::function<Values()> value;
  Values cotangents;
  Values gradients;
};

// Elements of either sign and of size 1/2 to 3/2: none is near 0, no two are
// alike, so that no fault hides in a symmetry.
Tensor Random(const Shape& shape, uint64_t seed, uint64_t offset) {
  Tensor y = Tensor::Empty(shape, DType::kFloat64);
  double* p = y.mutable_data<double>();
  for (int64_t i = 0; i < y.size(); ++i) {
    const double u = Uniform01(seed, offset, i);
    p[i] = u < 0.5 ? -0.5 - 2 * u : 2 * u - 0.5;
  }
  return y;
}

// "[1, 2]", the index of the flat-th element.
std::string IndexOf(const Shape& shape, int64_t flat) {
  absl::InlinedVector<int64_t, 6> index(shape.rank());
  for (int i = shape.rank(); i-- > 0;) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  std::string all;
  for (int64_t i : index) absl::StrAppend(&all, all.empty() ? "" : ", ", i);
  return absl::StrCat("[", all, "]");
}

// In memory of their own: a function may return its input, which moves.
Values Copies(Values values) {
  for (Tensor& x : values) x = x.Clone();
  return values;
}

// Puts part of a variable back when it goes.
class Restore {
 public:
  Restore(Tensor x, int64_t begin, int64_t end)
      : x_(std::move(x)),
        begin_(begin),
        values_(x_.data<double>() + begin, x_.data<double>() + end) {}
  ~Restore() {
    std::copy(values_.begin(), values_.end(),
              x_.mutable_data<double>() + begin_);
  }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;
  const std::vector<double>& values() const { return values_; }

 private:
  Tensor x_;
  int64_t begin_;
  std::vector<double> values_;
};

class Checker {
 public:
  Checker(const GradCheckFunction& f, absl::Span<const Tensor> inputs,
          GradCheckOptions options);
  GradCheckReport Run();

 private:
  struct Slopes {
    double numeric, analytic;
  };

  // A tape of the kind that was asked for, with the generator at its start.
  void Open(std::optional<Tape>& tape);
  Tensor Call();
  Tensor Value();
  Values Gradients(const std::vector<bool>& of, bool shared);
  Values SecondGradients(const Values& first, const Values& weights);

  void CheckSubsets(const Values& all);
  void CheckBackward(const Values& all);
  void CheckSecondOrder(const Values& all);
  void CheckClaim(const Claim& claim);
  Slopes SlopesAlong(const Claim& claim, size_t v, const Tensor& direction,
                     int64_t begin, int64_t end);
  void Compare(const std::string& what, const char* a_name, const char* b_name,
               const Variable& v, const Tensor& a, const Tensor& b);
  // Notes a pair that should be equal; at `index` of v.
  void Judge(const std::string& what, const Variable& v, int64_t index,
             const char* a_name, double a, const char* b_name, double b);
  void Fail(const std::string& why);
  // The difference of a pair that should be equal, over what is allowed.
  double Excess(double a, double b) const {
    const double size = std::max(std::abs(a), std::abs(b));
    const double error =
        std::abs(a - b) / (options_.atol + options_.rtol * size);
    return std::isfinite(error) ? error : HUGE_VAL;
  }

  const GradCheckFunction& f_;
  GradCheckOptions options_;
  uint64_t start_ = 0;  // the generator's offset
  std::vector<Tensor> inputs_;
  std::vector<Variable> variables_;
  Tensor cotangent_;
  GradCheckReport report_;
};

Checker::Checker(const GradCheckFunction& f, absl::Span<const Tensor> inputs,
                 GradCheckOptions options)
    : f_(f), options_(std::move(options)) {
  const auto fail = [&](const auto&... why) {
    throw Error(absl::StrCat("GradCheck of ", options_.name, ": ", why...));
  };
  const size_t n = inputs.size();
  if (options_.order != 1 && options_.order != 2) {
    fail("order ", options_.order, "; wanted 1 or 2");
  }
  if (!options_.wanted.empty() && options_.wanted.size() != n) {
    fail("`wanted` has ", options_.wanted.size(), " entries for ", n,
         " inputs");
  }
  if (options_.generator) start_ = options_.generator->offset();
  for (size_t i = 0; i < n; ++i) {
    const auto same = std::find_if(
        inputs.begin(), inputs.begin() + i,
        [&](const Tensor& x) { return x.impl() == inputs[i].impl(); });
    const bool first = same == inputs.begin() + i;
    inputs_.push_back(!first ? inputs_[same - inputs.begin()]
                      : inputs[i].defined() && !inputs[i].impl()->parameter
                          ? inputs[i].Clone()
                          : inputs[i]);
    const bool is_double =
        inputs[i].defined() && inputs[i].dtype() == DType::kFloat64;
    const std::string name =
        absl::StrCat("input ", i,
                     i < options_.input_names.size()
                         ? absl::StrCat(" (", options_.input_names[i], ")")
                         : "");
    if (options_.wanted.empty() ? is_double : options_.wanted[i]) {
      if (!is_double) {
        fail(name, " is ", Describe(inputs[i]), "; wanted float64");
      }
      if (first) variables_.push_back({inputs_.back(), name});
    }
  }
  if (variables_.empty()) fail("no input is float64; nothing to check");
}

void Checker::Open(std::optional<Tape>& tape) {
  if (!options_.generator) {
    tape.emplace();
    return;
  }
  options_.generator->set_offset(start_);
  tape.emplace(*options_.generator);
}

Tensor Checker::Call() {
  Tensor y = f_(inputs_);
  if (!y.defined() || y.dtype() != DType::kFloat64) {
    throw Error(absl::StrCat("GradCheck of ", options_.name, ": the result is ",
                             Describe(y), "; wanted float64"));
  }
  return y;
}

Tensor Checker::Value() {
  std::optional<Tape> tape;
  Open(tape);
  Tape::Pause pause;
  return Call();
}

// dL/dv, L = y · cotangent, for the variables that `of` says. When `shared`,
// each has a second use behind the function, which adds to its gradient first.
Values Checker::Gradients(const std::vector<bool>& of, bool shared) {
  std::optional<Tape> tape;
  Open(tape);
  Values xs, results, uses;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!of[i]) continue;
    xs.push_back(variables_[i].x);
    tape->Watch(xs.back());
  }
  Tensor y = Call();
  if (!tape->Tracks(y)) {
    for (const Tensor& x : xs) {
      results.push_back(Tensor::Zeros(x.shape(), x.dtype()));
    }
    return results;
  }
  if (!shared) return tape->Gradient(y, xs, {.cotangent = cotangent_});
  Tensor sum = Sum(y * cotangent_);
  for (size_t i = 0; i < xs.size(); ++i) {
    uses.push_back(Random(xs[i].shape(), options_.seed, 3000 + i));
    sum = sum + Sum(xs[i] * uses[i]);
  }
  results = tape->Gradient(sum, xs);
  for (size_t i = 0; i < xs.size(); ++i) results[i] = results[i] - uses[i];
  return results;
}

void Checker::Judge(const std::string& what, const Variable& v, int64_t index,
                    const char* a_name, double a, const char* b_name,
                    double b) {
  const double error = Excess(a, b);
  if (error > report_.worst && error > 1) {
    report_.ok = false;
    report_.message = absl::StrFormat(
        "%s: %s by %s, float64 %s, at index %s: %s %.12g, %s %.12g (difference "
        "%.3g, allowed %.3g)",
        options_.name, what, v.name, v.x.shape().ToString(),
        IndexOf(v.x.shape(), index), a_name, a, b_name, b, a - b,
        options_.atol + options_.rtol * std::max(std::abs(a), std::abs(b)));
  }
  report_.worst = std::max(report_.worst, error);
}

void Checker::Compare(const std::string& what, const char* a_name,
                      const char* b_name, const Variable& v, const Tensor& a,
                      const Tensor& b) {
  for (int64_t i = 0; i < a.size(); ++i) {
    Judge(what, v, i, a_name, a.data<double>()[i], b_name, b.data<double>()[i]);
  }
}

void Checker::Fail(const std::string& why) {
  report_.ok = false;
  report_.message = absl::StrCat(options_.name, ": ", why);
  report_.worst = HUGE_VAL;
}

// The slope of the claimed sum where elements [begin, end) of variable v move
// along `direction`, measured and as the gradient has it.
Checker::Slopes Checker::SlopesAlong(const Claim& claim, size_t v,
                                     const Tensor& direction, int64_t begin,
                                     int64_t end) {
  Tensor x = claim.variables[v].x;
  const Restore start(x, begin, end);
  const double* gradient = claim.gradients[v].data<double>();
  const double h = options_.step;
  double analytic = 0, numeric = 0;
  Values sides[2];
  for (int side : {0, 1}) {
    for (int64_t i = begin; i < end; ++i) {
      const double at = start.values()[i - begin];
      const double to = at + (side == 0 ? -h : h) *
                                 std::max(1.0, std::abs(at)) *
                                 direction.data<double>()[i];
      x.mutable_data<double>()[i] = to;
      // With the step as it was rounded.
      analytic += gradient[i] * (side == 0 ? at - to : to - at) / (2 * h);
    }
    sides[side] = Copies(claim.value());
  }
  for (size_t k = 0; k < sides[0].size(); ++k) {
    const double* low = sides[0][k].data<double>();
    const double* high = sides[1][k].data<double>();
    const double* weight = claim.cotangents[k].data<double>();
    for (int64_t i = 0; i < sides[0][k].size(); ++i) {
      numeric += weight[i] * (high[i] - low[i]) / (2 * h);
    }
  }
  return {numeric, analytic};
}

void Checker::CheckClaim(const Claim& claim) {
  for (size_t v = 0; v < claim.variables.size(); ++v) {
    const Variable& variable = claim.variables[v];
    const int64_t n = variable.x.size();
    const auto judge = [&](int64_t i, Slopes s, double direction) {
      const double scale =
          direction * std::max(1.0, std::abs(variable.x.data<double>()[i]));
      Judge(claim.what, variable, i, "numeric", s.numeric / scale, "analytic",
            s.analytic / scale);
    };
    if (options_.directions <= 0) {
      const Tensor ones = Tensor::Ones({n}, DType::kFloat64);
      for (int64_t i = 0; i < n; ++i) {
        judge(i, SlopesAlong(claim, v, ones, i, i + 1), 1);
      }
    }
    for (int k = 0; k < options_.directions && n > 0; ++k) {
      const Tensor d = Random({n}, options_.seed, 1000 + 100 * v + k);
      int64_t begin = 0, end = n;
      const auto slopes = [&](int64_t from, int64_t to) {
        return SlopesAlong(claim, v, d, from, to);
      };
      Slopes s = slopes(begin, end);
      const double error = Excess(s.numeric, s.analytic);
      if (error <= 1) {
        report_.worst = std::max(report_.worst, error);
        continue;
      }
      while (end - begin > 1) {  // into the half that is further off
        const int64_t middle = (begin + end) / 2;
        const Slopes left = slopes(begin, middle), right = slopes(middle, end);
        const bool go_left = !(std::abs(left.numeric - left.analytic) <
                               std::abs(right.numeric - right.analytic));
        s = go_left ? left : right;
        (go_left ? end : begin) = middle;
      }
      judge(begin, s, d.data<double>()[begin]);
      if (report_.ok) Fail(absl::StrCat(claim.what, " by ", variable.name));
    }
  }
}

void Checker::CheckSubsets(const Values& all) {
  const size_t n = variables_.size();
  std::vector<std::vector<bool>> subsets;
  if (n <= 4) {
    for (size_t bits = 1; bits + 1 < size_t{1} << n; ++bits) {
      subsets.emplace_back();
      for (size_t i = 0; i < n; ++i) subsets.back().push_back(bits >> i & 1);
    }
  } else {
    for (size_t i = 0; i < n; ++i) {
      for (bool alone : {true, false}) {
        subsets.emplace_back(n, !alone);
        subsets.back()[i] = alone;
      }
    }
  }
  for (const std::vector<bool>& of : subsets) {
    const Values some = Gradients(of, false);
    size_t next = 0;
    for (size_t i = 0; i < n; ++i) {
      if (!of[i]) continue;
      Compare("gradient asked for with some of the inputs", "with all",
              "with some", variables_[i], all[i], some[next++]);
    }
  }
}

// Backward into parameters must give what Gradient gives.
void Checker::CheckBackward(const Values& all) {
  std::vector<Parameter*> parameters;
  for (const Variable& v : variables_) {
    parameters.push_back(v.x.impl()->parameter);
  }
  if (std::count(parameters.begin(), parameters.end(), nullptr) ==
      static_cast<int64_t>(parameters.size())) {
    return;
  }
  std::optional<Tape> tape;
  Open(tape);
  const Tensor y = Call();
  if (!tape->Tracks(y)) return;
  std::vector<std::pair<Parameter::Grad, Tensor>> before;
  for (Parameter* p : parameters) {
    before.emplace_back();
    if (!p) continue;
    before.back() = {p->state, p->grad.defined() ? p->grad.Clone() : Tensor()};
    p->state = Parameter::Grad::kNone;
  }
  tape->Backward(y, cotangent_);
  for (size_t i = 0; i < parameters.size(); ++i) {
    Parameter* const p = parameters[i];
    if (!p) continue;
    const Tensor gradient =
        p->state == Parameter::Grad::kNone
            ? Tensor::Zeros(p->value.shape(), DType::kFloat64)
            : p->grad;
    Compare("gradient that Backward leaves", "Gradient", "Backward",
            variables_[i], all[i], gradient);
    p->state = before[i].first;
    if (before[i].second.defined()) {
      std::copy_n(before[i].second.data<double>(), p->grad.size(),
                  p->grad.mutable_data<double>());
    }
  }
}

// The gradient of sum_i weights_i · dL/dv_i by the variables and by the
// cotangent of y. Checks on its way that a recorded pass gives `first`.
Values Checker::SecondGradients(const Values& first, const Values& weights) {
  std::optional<Tape> tape;
  Open(tape);
  Values xs;
  for (const Variable& v : variables_) xs.push_back(v.x);
  for (const Tensor& x : xs) tape->Watch(x);
  tape->Watch(cotangent_);
  const Tensor y = Call();
  Values by = xs, gradients;
  by.push_back(cotangent_);
  if (tape->Tracks(y)) {
    gradients =
        tape->Gradient(y, xs, {.create_graph = true, .cotangent = cotangent_});
    Tensor sum;
    for (size_t i = 0; i < xs.size(); ++i) {
      Compare("gradient of a pass that is recorded", "plain", "recorded",
              variables_[i], first[i], gradients[i]);
      const Tensor part = Sum(gradients[i] * weights[i]);
      sum = sum.defined() ? sum + part : part;
    }
    return tape->Gradient(sum, by);
  }
  for (const Tensor& x : by) {
    gradients.push_back(Tensor::Zeros(x.shape(), x.dtype()));
  }
  return gradients;
}

void Checker::CheckSecondOrder(const Values& all) {
  Claim claim{"gradient of the gradient", variables_, {}, {}, {}};
  claim.variables.push_back({cotangent_, "the cotangent"});
  for (size_t i = 0; i < all.size(); ++i) {
    claim.cotangents.push_back(Random(all[i].shape(), options_.seed, 2000 + i));
  }
  const std::vector<bool> every(variables_.size(), true);
  claim.value = [&] { return Gradients(every, false); };
  claim.gradients = Copies(SecondGradients(all, claim.cotangents));
  if (report_.ok) CheckClaim(claim);
}

GradCheckReport Checker::Run() {
  const Tensor y = Value();
  cotangent_ = Random(y.shape(), options_.seed, 0);
  const std::vector<bool> every(variables_.size(), true);
  Claim claim{"gradient",
              variables_,
              [&] { return Values{Value()}; },
              {cotangent_},
              {}};
  const std::vector<double> value = y.ToVector();
  const auto bad = std::find_if(value.begin(), value.end(),
                                [](double v) { return !std::isfinite(v); });
  const Tensor again = Value();
  if (bad != value.end()) {
    Fail(absl::StrCat("the value at index ",
                      IndexOf(y.shape(), bad - value.begin()), " is ", *bad,
                      ", which has no differences"));
  } else if (again.shape() != y.shape() ||
             (y.size() > 0 &&
              std::memcmp(again.data<double>(), y.data<double>(),
                          value.size() * sizeof(double)))) {
    Fail("two calls gave different values; is its generator in the options?");
  } else {
    claim.gradients = Copies(Gradients(every, false));
    CheckClaim(claim);
    if (report_.ok && options_.subsets) CheckSubsets(claim.gradients);
    if (report_.ok) {
      const Values shared = Gradients(every, true);
      for (size_t i = 0; i < shared.size(); ++i) {
        Compare("gradient added to that of another use", "alone", "added",
                variables_[i], claim.gradients[i], shared[i]);
      }
    }
    if (report_.ok) CheckBackward(claim.gradients);
    if (report_.ok && options_.order == 2) CheckSecondOrder(claim.gradients);
  }
  if (options_.generator) options_.generator->set_offset(start_);
  return report_;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const GradCheckReport& report) {
  return out << (report.ok ? "ok" : report.message);
}

GradCheckReport GradCheck(const GradCheckFunction& f,
                          absl::Span<const Tensor> inputs,
                          GradCheckOptions options) {
  return Checker(f, inputs, std::move(options)).Run();
}

}  // namespace wengert
