// Backward passes: plan, sweep the list once in reverse, finish the leaves.
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/ops.h"
#include "autograd/tape.h"
#include "autograd/tape_checks.h"
#include "autograd/tape_observer.h"

namespace wengert {

using internal::kConstant;
using internal::kGone;
using internal::Slot;

struct Tape::Pass {
  const char* name;
  bool into_parameters;  // Backward: leaves are the parameters
  bool create_graph;     // the pass records itself
  bool retain;
  bool finishing = false;  // the sweep is over, the leaves remain
};

// Tell the observer, if there is one, of a pass or a rule that goes on while
// they live.
struct Tape::ObservedPass {
  ObservedPass(TapeObserver* o, const char* name) : observer(o) {
    if (o) o->OnPassBegin(name);
  }
  ~ObservedPass() {
    if (observer) observer->OnPassEnd();
  }
  TapeObserver* const observer;
};
struct Tape::ObservedRule {
  ObservedRule(const Tape& tape, const internal::Record& r, const Tensor& dy,
               bool composed)
      : observer(tape.observer_) {
    if (observer) [[unlikely]]
      Begin(tape, r, dy, composed);
  }
  ~ObservedRule() {
    if (observer) observer->OnRuleEnd();
  }
  void Begin(const Tape& tape, const internal::Record& r, const Tensor& dy,
             bool composed) {
    absl::InlinedVector<const Shape*, 4> wanted;
    for (int32_t i = 0; i < r.n_inputs; ++i) {
      const Slot* s = r.inputs[i] < 0 ? nullptr : &tape.slots_[r.inputs[i]];
      wanted.push_back(s && s->reach ? &s->shape : nullptr);
    }
    observer->OnRuleBegin({r.op,
                           r.scope,
                           dy,
                           {r.saved, static_cast<size_t>(r.n_saved)},
                           wanted,
                           composed});
  }
  TapeObserver* const observer;
};

void Tape::Backward(const Tensor& y, const Tensor& cotangent) {
  Backward(y, BackwardOptions{.cotangent = cotangent});
}

void Tape::Backward(const Tensor& y, BackwardOptions options) {
  CheckUsable("Backward");
  const ObservedPass observed(observer_, "Backward");
  Pass pass{"Backward", true, false, options.retain};
  const int32_t slot = SlotOf(pass.name, "y", y);
  Run(pass, slot, SeedOf(pass.name, y, options.cotangent));
  if (!options.retain) Clear();
}

Tensor Tape::Gradient(const Tensor& y, const Tensor& x,
                      GradientOptions options) {
  return Gradient(y, absl::MakeConstSpan(&x, 1), std::move(options))[0];
}

std::vector<Tensor> Tape::Gradient(const Tensor& y, absl::Span<const Tensor> xs,
                                   GradientOptions options) {
  CheckUsable("Gradient");
  const ObservedPass observed(observer_, "Gradient");
  Pass pass{"Gradient", false, options.create_graph,
            options.retain || options.create_graph};
  std::vector<int32_t> wanted;
  for (size_t i = 0; i < xs.size(); ++i) {
    wanted.push_back(SlotOf(pass.name, absl::StrCat("xs[", i, "]"), xs[i]));
  }
  const int32_t slot = SlotOf(pass.name, "y", y);
  Tensor seed = SeedOf(pass.name, y, options.cotangent);
  for (int32_t x : wanted) slots_[x].keep = true;
  try {
    Run(pass, slot, std::move(seed));
  } catch (...) {
    for (int32_t x : wanted) {
      if (static_cast<size_t>(x) < slots_.size()) slots_[x].keep = false;
    }
    throw;
  }
  std::vector<Tensor> results;
  for (int32_t x : wanted) {
    slots_[x].keep = false;
    const Tensor& grad = slots_[x].grad;
    Tensor r =
        grad.defined() ? grad : Tensor::Zeros(slots_[x].shape, slots_[x].dtype);
    if (pass.create_graph && !Tracks(r)) {
      // A constant: it may be differentiated again, to zeros.
      r = r.Detach();
      r.impl()->tape = id_;
      r.impl()->slot = base_ + NewSlot(r);
    } else if (!pass.create_graph && r.impl()->tape != 0) {
      r = r.Detach();
    }
    results.push_back(std::move(r));
  }
  for (int32_t x : wanted) slots_[x].grad = {};
  if (!pass.retain) Clear();
  return results;
}

// The slot of a tensor that the user names, or an Error that says why not.
int32_t Tape::SlotOf(const char* op, const std::string& name, const Tensor& x) {
  const std::string what = absl::StrCat(name, " (", Describe(x), ") ");
  if (!x.defined() || !IsFloat(x.dtype())) {
    Fail(op, absl::StrCat(what, "has no gradient; wanted a float tensor"));
  }
  const Input slot = InputOf(x);
  if (slot >= 0) return slot;
  if (slot == kGone) {
    Fail(op, absl::StrCat(what,
                          "was recorded, but this tape is used: a pass without "
                          "`retain` has emptied it since"));
  }
  if (x.impl()->tape != 0) {
    Fail(op, absl::StrCat(what,
                          "was recorded by another tape; to this one it is a "
                          "constant"));
  }
  Fail(op,
       absl::StrCat(what,
                    "was not recorded by this tape: it is no parameter or a "
                    "frozen one, was not watched before its use, and depends "
                    "on nothing that is, or recording was paused, or the tape "
                    "was emptied since"));
}

Tensor Tape::SeedOf(const char* op, const Tensor& y,
                    const Tensor& cotangent) const {
  if (!cotangent.defined()) {
    if (y.size() != 1) {
      Fail(op, absl::StrCat("y (", Describe(y), ") has ", y.size(),
                            " elements; wanted one, or a cotangent"));
    }
    return Tensor::Ones(y.shape(), y.dtype());
  }
  if (cotangent.shape() != y.shape() || cotangent.dtype() != y.dtype()) {
    Fail(op, absl::StrCat("the cotangent is ", Describe(cotangent), " for y (",
                          Describe(y), "); wanted the same"));
  }
  return cotangent;
}

void Tape::Run(Pass& pass, int32_t y, Tensor cotangent) {
  Plan(pass, y);
  size_t locked = 0;
  const auto unlock = [&] {
    while (locked > 0) owners_[--locked]->in_backward = false;
  };
  for (ParameterOwner* owner : owners_) {
    if (!owner->alive) {
      unlock();
      Fail(pass.name, "a ParameterStore has ended before its tape");
    }
    if (!pass.into_parameters) continue;
    if (owner->in_backward.exchange(true)) {
      unlock();
      Fail(pass.name,
           "another Backward is writing into the same ParameterStore; use "
           "Gradient on each thread");
    }
    ++locked;
  }
  const size_t n_records = records_.size(), n_slots = slots_.size();
  const internal::Bump::Mark mark = memory_.mark();
  const int paused = paused_;
  const std::string* const scope = scope_;
  paused_ = pass.create_graph ? 0 : 1;
  pass_ = &pass;
  const auto finish = [&] {
    pass_ = nullptr;
    paused_ = paused;
    scope_ = scope;
    unlock();
  };
  try {
    for (size_t i = 0; i < locked; ++i) owners_[i]->AllocateGradients();
    slots_[y].grad = std::move(cotangent);
    Sweep(0, n_records, pass.retain);
    FinishLeaves();
  } catch (...) {
    for (size_t i = 0; i < locked; ++i) owners_[i]->gradients_invalid = true;
    finish();
    for (Slot& slot : slots_) slot.grad = {};
    Truncate(n_records, n_slots, mark);
    if (!pass.retain) Clear();
    throw;
  }
  finish();
}

// Marks what the pass will visit, and refuses before any rule has run.
void Tape::Plan(const Pass& pass, int32_t y) {
  for (Slot& slot : slots_) {
    slot.live = false;
    const bool trained = slot.parameter && !slot.parameter->frozen();
    slot.reach = pass.into_parameters ? trained || slot.hook >= 0 : slot.keep;
  }
  MarkReach(0, records_.size());
  slots_[y].live = true;
  for (size_t i = records_.size(); i-- > 0;) {
    const internal::Record& r = *records_[i];
    if (!slots_[r.output].live) continue;
    if (slots_[r.output].reach) CheckSaved(pass, r);
    for (int32_t k = 0; k < r.n_inputs; ++k) {
      if (r.inputs[k] == kGone) {
        Fail(pass.name,
             absl::StrCat("input ", k, " of ", internal::OpName(r.op, r.scope),
                          " was recorded before this tape was emptied: the "
                          "tape is used. Pass `retain` to go backward twice"));
      }
      if (r.inputs[k] >= 0) slots_[r.inputs[k]].live = true;
    }
  }
}

// Carries `reach` from inputs to outputs.
void Tape::MarkReach(size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    const internal::Record& r = *records_[i];
    for (int32_t k = 0; k < r.n_inputs && !slots_[r.output].reach; ++k) {
      slots_[r.output].reach = r.inputs[k] >= 0 && slots_[r.inputs[k]].reach;
    }
  }
}

void Tape::CheckSaved(const Pass& pass, const internal::Record& r) const {
  for (int32_t k = 0; k < r.n_saved; ++k) {
    const Tensor& x = r.saved[k];
    if (internal::VersionOf(x.impl()) != r.versions[k]) FailSaved(pass, r, k);
  }
}

void Tape::FailSaved(const Pass& pass, const internal::Record& r,
                     int32_t k) const {
  const Tensor& x = r.saved[k];
  const Parameter* p = x.impl()->parameter;
  Fail(pass.name,
       absl::StrCat(internal::OpName(r.op, r.scope), " saved ", Describe(x),
                    p ? absl::StrCat(" (parameter ", p->name, ")") : "",
                    " at version ", r.versions[k],
                    ", and it was written to since (version ", x.version(),
                    "); write after the pass, or to a Clone"));
}

namespace {

// Whether what a rule receives is: asked before the rule, which may write over
// them.
bool SavedAreFinite(const internal::Record& r) {
  return std::all_of(r.saved, r.saved + r.n_saved, [](const Tensor& x) {
    return !x.defined() || !IsFloat(x.dtype()) || internal::AllFinite(x);
  });
}

}  // namespace

void Tape::Sweep(size_t begin, size_t end, bool retain) {
  for (size_t i = end; i-- > begin;) {
    internal::Record& r = *records_[i];
    if (!slots_[r.output].grad.defined()) continue;
    if (slots_[r.output].reach) {
      Tensor dy = std::exchange(slots_[r.output].grad, {});
      if (slots_[r.output].hook >= 0) dy = Hooked(r.output, std::move(dy));
      if (slots_[r.output].keep) slots_[r.output].grad = dy;
      scope_ = r.scope;
      // This pass may have written too: a hook, or into a gradient that stands
      // in the loss as a constant.
      CheckSaved(*pass_, r);
      // What was bad before is not this rule's doing.
      const bool check =
          check_finite_ && internal::AllFinite(dy) && NonFiniteInput(r) < 0;
      const bool saved_finite = !check || SavedAreFinite(r);
      const bool composed =
          !r.type->rule || (pass_->create_graph && r.type->compose);
      const ObservedRule observed(*this, r, dy, composed);
      if (composed) {
        SweepComposition(r, dy);
      } else {
        GradientSink sink(*this, r, dy, retain);
        r.type->rule(r.closure, sink, r.saved);
        sink.Flush();
      }
      if (check) CheckRule(r, dy, saved_finite);
    } else {
      slots_[r.output].grad = {};
    }
    if (!retain) Release(r);
  }
}

// Records what `r` computes as primitives, at the end of the tape, and sweeps
// just those. They stay only when the pass itself is being recorded.
void Tape::SweepComposition(const internal::Record& r, const Tensor& dy) {
  const size_t n_records = records_.size(), n_slots = slots_.size();
  const size_t n_leaves = n_leaves_;
  const internal::Bump::Mark mark = memory_.mark();
  const int paused = std::exchange(paused_, 0);
  int32_t z_slot = kConstant;
  {
    const Tensor z = r.type->compose(r.closure, r.saved);
    if (z.shape() != dy.shape() || z.dtype() != dy.dtype()) {
      Fail(r.op, absl::StrCat("run again it gave ", Describe(z), "; wanted ",
                              Describe(dy), " as before"));
    }
    z_slot = InputOf(z);
  }
  if (!pass_->create_graph && n_leaves_ != n_leaves) {
    Fail(r.op, "run again it read a parameter that it did not read before");
  }
  paused_ = paused;
  if (z_slot >= 0) {
    AddTo(z_slot, dy);
    MarkReach(n_records, records_.size());
    Sweep(n_records, records_.size(), pass_->create_graph);
  }
  if (!pass_->create_graph) Truncate(n_records, n_slots, mark);
}

Tensor Tape::Hooked(int32_t slot, Tensor gradient) {
  Tensor replaced = hooks_[slots_[slot].hook](gradient);
  if (!replaced.defined()) return gradient;
  if (replaced.shape() != gradient.shape() ||
      replaced.dtype() != gradient.dtype()) {
    Fail("OnGradient", absl::StrCat("the hook returned ", Describe(replaced),
                                    " for a gradient ", Describe(gradient),
                                    "; wanted the same"));
  }
  return replaced;
}

void Tape::FinishLeaves() {
  pass_->finishing = true;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].is_leaf || !slots_[i].grad.defined()) continue;
    if (slots_[i].hook >= 0) {
      Tensor grad = slots_[i].grad;
      slots_[i].grad = Hooked(static_cast<int32_t>(i), std::move(grad));
    }
    if (pass_->into_parameters) {
      Tensor grad = std::exchange(slots_[i].grad, {});
      AddTo(static_cast<int32_t>(i), std::move(grad));
      slots_[i].grad = {};
    }
  }
}

// Whether the gradient of a slot goes straight into its parameter: one with a
// hook is gathered first, so that the hook sees this pass alone.
bool Tape::IsDirect(const Slot& s) const {
  return pass_->into_parameters && s.parameter &&
         (s.hook < 0 || pass_->finishing);
}

// Adds to the gradient that gathers in a slot, or in its parameter.
void Tape::AddTo(int32_t slot, Tensor c) {
  if (c.dtype() != slots_[slot].dtype) {
    Fail(pass_->name,
         absl::StrCat("a rule made a gradient ", Describe(c),
                      " for an input of ", Name(slots_[slot].dtype)));
  }
  if (c.shape() != slots_[slot].shape) c = SumTo(c, slots_[slot].shape);
  Slot& s = slots_[slot];
  if (!IsDirect(s) && !s.grad.defined()) {
    s.grad = std::move(c);
  } else if (pass_->create_graph) {
    Tensor sum = Add(s.grad, c);
    slots_[slot].grad = std::move(sum);
  } else {
    bool accumulate;
    void* to = WriteInto(slot, c.dtype(), accumulate);
    const auto write = [&]<class T>(const T* from) {
      if (accumulate) {
        kernels::Accumulate(c.size(), from, static_cast<T*>(to));
      } else {
        kernels::Affine<T>(c.size(), 1, 0, from, static_cast<T*>(to));
      }
    };
    c.dtype() == DType::kFloat32 ? write(c.data<float>())
                                 : write(c.data<double>());
  }
}

// Memory for the gradient of a slot, which nothing else sees; `accumulate` is
// false when there is nothing in it yet.
void* Tape::WriteInto(int32_t slot, DType dtype, bool& accumulate) {
  Slot& s = slots_[slot];
  if (s.dtype != dtype) FailDType(dtype, s.dtype);
  if (IsDirect(s)) {
    accumulate = s.parameter->state == Parameter::Grad::kFresh;
    s.parameter->state = Parameter::Grad::kFresh;
    const Tensor& grad = s.parameter->grad;
    // The loss may hold it as a constant.
    FetchAdd(grad.impl()->versioned->version, 1, std::memory_order_relaxed);
    return grad.impl()->data;
  }
  accumulate = s.grad.defined();
  if (!accumulate) {
    s.grad = Tensor::Empty(s.shape, s.dtype);
  } else if (!s.grad.unique()) {  // somebody else holds this cotangent
    s.grad = s.grad.Clone();
  }
  return s.grad.impl()->data;
}

void Tape::FailDType(DType given, DType wanted) const {
  Fail(pass_->name,
       absl::StrCat("a rule writes ", Name(given), " into ", Name(wanted)));
}

// The first input whose gradient holds a NaN or an infinity, or -1.
int32_t Tape::NonFiniteInput(const internal::Record& r) const {
  for (int32_t k = 0; k < r.n_inputs; ++k) {
    if (r.inputs[k] < 0) continue;
    const Slot& s = slots_[r.inputs[k]];
    const Tensor& grad =
        IsDirect(s) && s.parameter->state == Parameter::Grad::kFresh
            ? s.parameter->grad
            : s.grad;
    if (grad.defined() && !internal::AllFinite(grad)) return k;
  }
  return -1;
}

void Tape::CheckRule(const internal::Record& r, const Tensor& dy,
                     bool saved_finite) const {
  const int32_t k = NonFiniteInput(r);
  if (k < 0) return;
  throw NonFiniteError(absl::StrCat(
      internal::OpName(r.op, r.scope),
      ": backward made a NaN or an infinity in the gradient of input ", k,
      ", of shape ", slots_[r.inputs[k]].shape.ToString(),
      ", from a finite cotangent ", Describe(dy),
      saved_finite ? "" : " and values that were not finite before"));
}

bool GradientSink::Recorded() const { return tape_.pass_->create_graph; }

void GradientSink::Add(int i, Tensor contribution) {
  if (Needs(i)) tape_.AddTo(record_.inputs[i], std::move(contribution));
}

void* GradientSink::IntoRaw(int i, DType dtype, bool& accumulate) {
  if (Recorded()) {
    tape_.Fail(record_.op,
               "its rule writes with a kernel, which cannot be differentiated; "
               "make the gradient of operations where the pass is Recorded, or "
               "give Record a composition");
  }
  const int32_t slot = record_.inputs[i];
  for (int32_t taken : written_) {
    if (taken != slot) continue;
    // One tensor stands in two places: a kernel must not write both at once.
    const internal::Slot& s = tape_.slots_[slot];
    later_.emplace_back(slot, Tensor::Empty(s.shape, dtype));
    accumulate = false;
    return later_.back().second.impl()->data;
  }
  written_.push_back(slot);
  return tape_.WriteInto(slot, dtype, accumulate);
}

void GradientSink::Flush() {
  for (auto& [slot, grad] : later_) tape_.AddTo(slot, std::move(grad));
}

}  // namespace wengert
