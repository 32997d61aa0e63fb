#include "autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/gradcheck_judge.h"
#include "autograd/ops.h"

namespace wengert {
namespace {

using internal::GradientClaim;
using internal::IndexOf;
using internal::RandomWeights;
using internal::Variable;
using Values = std::vector<Tensor>;

class Checker {
 public:
  Checker(const GradCheckFunction& f, absl::Span<const Tensor> inputs,
          const GradCheckOptions& options);
  GradCheckReport Run();

 private:
  void AddVariable(size_t i, const Tensor& x);
  template <class... Parts>
  [[noreturn]] void Throw(const Parts&... why) const {
    throw Error(absl::StrCat("GradCheck of ", options_.name, ": ", why...));
  }
  void Open(std::optional<Tape>& tape);
  Tensor Call();
  Tensor Value();
  Values Gradients(const std::vector<bool>& of, bool shared = false);
  Values SecondGradients(const Values& weights);

  bool HasDifferences(const Tensor& y);
  void CheckSubsets();
  void CheckShared();
  void CheckBackward();
  void CheckSecondOrder();

  const GradCheckFunction& f_;
  const GradCheckOptions& options_;
  internal::GradientJudge judge_;
  uint64_t start_ = 0;  // the generator's offset
  Values inputs_;
  std::vector<Variable> variables_;
  std::vector<bool> every_;  // true for each variable
  Tensor cotangent_;
  Values gradients_;  // of a plain pass, by each variable
};

Checker::Checker(const GradCheckFunction& f, absl::Span<const Tensor> inputs,
                 const GradCheckOptions& options)
    : f_(f), options_(options), judge_(options) {
  const size_t n = inputs.size();
  if (options_.order != 1 && options_.order != 2) {
    Throw("order ", options_.order, "; wanted 1 or 2");
  }
  if (!options_.wanted.empty() && options_.wanted.size() != n) {
    Throw("`wanted` has ", options_.wanted.size(), " entries for ", n,
          " inputs");
  }
  if (options_.generator) start_ = options_.generator->offset();
  for (size_t i = 0; i < n; ++i) {
    const Tensor& x = inputs[i];
    size_t first = 0;  // where x stands first
    while (inputs[first].impl() != x.impl()) ++first;
    if (first < i) {
      inputs_.push_back(inputs_[first]);
    } else {
      // Parameters move where they are.
      const bool in_place = !x.defined() || x.impl()->parameter;
      inputs_.push_back(in_place ? x : x.Clone());
      AddVariable(i, inputs_.back());
    }
  }
  if (variables_.empty()) Throw("no input is float64; nothing to check");
  every_.assign(variables_.size(), true);
}

void Checker::AddVariable(size_t i, const Tensor& x) {
  std::string name = absl::StrCat("input ", i);
  if (i < options_.input_names.size()) {
    absl::StrAppend(&name, " (", options_.input_names[i], ")");
  }
  const bool is_double = x.defined() && x.dtype() == DType::kFloat64;
  if (options_.wanted.empty() ? !is_double : !options_.wanted[i]) return;
  if (!is_double) Throw(name, " is ", Describe(x), "; wanted float64");
  variables_.push_back({x, std::move(name)});
}

// A tape of the kind that was asked for, with the generator at its start.
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
    Throw("the result is ", Describe(y), "; wanted float64");
  }
  return y;
}

Tensor Checker::Value() {
  std::optional<Tape> tape;
  Open(tape);
  Tape::Pause pause;
  return Call();
}

Values ZerosLike(const Values& xs) {
  Values zeros;
  for (const Tensor& x : xs) {
    zeros.push_back(Tensor::Zeros(x.shape(), x.dtype()));
  }
  return zeros;
}

// dL/dv, L = y · cotangent, for the variables that `of` says. When `shared`,
// each has a second use behind the function, whose gradient is there first.
Values Checker::Gradients(const std::vector<bool>& of, bool shared) {
  std::optional<Tape> tape;
  Open(tape);
  Values xs;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!of[i]) continue;
    xs.push_back(variables_[i].x);
    tape->Watch(xs.back());
  }
  const Tensor y = Call();
  if (!tape->Tracks(y)) return ZerosLike(xs);
  if (!shared) return tape->Gradient(y, xs, {.cotangent = cotangent_});
  Values uses;
  Tensor sum = Sum(y * cotangent_);
  for (size_t i = 0; i < xs.size(); ++i) {
    uses.push_back(RandomWeights(xs[i].shape(), options_.seed, 3000 + i));
    sum = sum + Sum(xs[i] * uses[i]);
  }
  Values results = tape->Gradient(sum, xs);
  for (size_t i = 0; i < xs.size(); ++i) results[i] = results[i] - uses[i];
  return results;
}

// The gradient of sum_i weights_i · dL/dv_i by the variables and by the
// cotangent of y. Checks on its way that a recorded pass gives what a plain
// one gives.
Values Checker::SecondGradients(const Values& weights) {
  std::optional<Tape> tape;
  Open(tape);
  Values by;
  for (const Variable& v : variables_) by.push_back(v.x);
  by.push_back(cotangent_);
  for (const Tensor& x : by) tape->Watch(x);
  const Tensor y = Call();
  if (!tape->Tracks(y)) return ZerosLike(by);
  const Values gradients =
      tape->Gradient(y, absl::MakeConstSpan(by).first(variables_.size()),
                     {.create_graph = true, .cotangent = cotangent_});
  Tensor sum = Tensor::Scalar(0, DType::kFloat64);
  for (size_t i = 0; i < gradients.size(); ++i) {
    judge_.Compare("gradient of a pass that is recorded", variables_[i],
                   "plain", gradients_[i], "recorded", gradients[i]);
    sum = sum + Sum(gradients[i] * weights[i]);
  }
  return tape->Gradient(sum, by);
}

// Whether y is finite, and the same when it is computed again.
bool Checker::HasDifferences(const Tensor& y) {
  const absl::Span<const double> value = y.span<double>();
  const auto bad = std::find_if(value.begin(), value.end(),
                                [](double v) { return !std::isfinite(v); });
  if (bad != value.end()) {
    judge_.Fail(absl::StrCat("the value at index ",
                             IndexOf(y.shape(), bad - value.begin()), " is ",
                             *bad, ", which has no differences"));
    return false;
  }
  const Tensor again = Value();
  if (again.shape() != y.shape() || again.span<double>() != value) {
    judge_.Fail(
        "two calls gave different values; is its generator in the options?");
    return false;
  }
  return true;
}

void Checker::CheckSubsets() {
  const size_t n = variables_.size();
  std::vector<std::vector<bool>> subsets;
  const auto add = [&](auto contains) {
    subsets.emplace_back();
    for (size_t i = 0; i < n; ++i) subsets.back().push_back(contains(i));
  };
  if (n <= 4) {
    for (size_t bits = 1; bits + 1 < size_t{1} << n; ++bits) {
      add([=](size_t i) { return bits >> i & 1; });
    }
  } else {
    for (size_t k = 0; k < n; ++k) {
      add([=](size_t i) { return i == k; });
      add([=](size_t i) { return i != k; });
    }
  }
  for (const std::vector<bool>& of : subsets) {
    const Values some = Gradients(of);
    size_t next = 0;
    for (size_t i = 0; i < n; ++i) {
      if (!of[i]) continue;
      judge_.Compare("gradient asked for with some of the inputs",
                     variables_[i], "with all", gradients_[i], "with some",
                     some[next++]);
    }
  }
}

void Checker::CheckShared() {
  const Values shared = Gradients(every_, true);
  for (size_t i = 0; i < shared.size(); ++i) {
    judge_.Compare("gradient added to that of another use", variables_[i],
                   "alone", gradients_[i], "added", shared[i]);
  }
}

// Backward into parameters must give what Gradient gives.
void Checker::CheckBackward() {
  struct Kept {
    size_t variable;
    Parameter* parameter;
    Parameter::Grad state;
    std::vector<double> grad;
  };
  std::vector<Kept> all;
  for (size_t i = 0; i < variables_.size(); ++i) {
    Parameter* const p = variables_[i].x.impl()->parameter;
    if (!p) continue;
    all.push_back({i, p, p->state, {}});
    if (p->grad.defined()) all.back().grad = p->grad.ToVector();
  }
  std::optional<Tape> tape;
  Open(tape);
  const Tensor y = Call();
  if (all.empty() || !tape->Tracks(y)) return;
  for (const Kept& k : all) k.parameter->state = Parameter::Grad::kNone;
  tape->Backward(y, cotangent_);
  for (const Kept& k : all) {
    Parameter& p = *k.parameter;
    const Tensor grad =
        p.state == Parameter::Grad::kNone ? ZerosLike({p.value})[0] : p.grad;
    judge_.Compare("gradient that Backward leaves", variables_[k.variable],
                   "Gradient", gradients_[k.variable], "Backward", grad);
    p.state = k.state;
    std::copy(k.grad.begin(), k.grad.end(), p.grad.mutable_data<double>());
  }
}

void Checker::CheckSecondOrder() {
  GradientClaim claim{.what = "gradient of the gradient",
                      .variables = variables_,
                      .value = [this] { return Gradients(every_); },
                      .cotangents = {},
                      .gradients = {}};
  claim.variables.push_back({cotangent_, "the cotangent"});
  for (size_t i = 0; i < gradients_.size(); ++i) {
    claim.cotangents.push_back(
        RandomWeights(gradients_[i].shape(), options_.seed, 2000 + i));
  }
  claim.gradients = SecondGradients(claim.cotangents);
  if (judge_.ok()) judge_.CheckDifferences(std::move(claim));
}

GradCheckReport Checker::Run() {
  const Tensor y = Value();
  if (HasDifferences(y)) {
    cotangent_ = RandomWeights(y.shape(), options_.seed, 0);
    gradients_ = Gradients(every_);
    judge_.CheckDifferences({"gradient",
                             variables_,
                             [this] { return Values{Value()}; },
                             {cotangent_},
                             gradients_});
    if (judge_.ok() && options_.subsets) CheckSubsets();
    if (judge_.ok()) CheckShared();
    if (judge_.ok()) CheckBackward();
    if (judge_.ok() && options_.order == 2) CheckSecondOrder();
  }
  if (options_.generator) options_.generator->set_offset(start_);
  return judge_.report();
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const GradCheckReport& report) {
  return out << (report.ok ? "ok" : report.message);
}

GradCheckReport GradCheck(const GradCheckFunction& f,
                          absl::Span<const Tensor> inputs,
                          GradCheckOptions options) {
  return Checker(f, inputs, options).Run();
}

}  // namespace wengert
