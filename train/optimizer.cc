#include "train/optimizer.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "autograd/error.h"

namespace wengert::train {
namespace {

OwnerHandle Share(ParameterOwner& owner) {
  owner.Ref();
  return OwnerHandle(&owner);
}

}  // namespace

Optimizer::Optimizer(nn::ParameterStore& store, const char* kind,
                     std::vector<std::string> tensors, double lr,
                     DecayFilter decay_filter)
    : owner_(Share(store.state())),
      store_(store.state()),
      kind_(kind),
      tensor_names_(std::move(tensors)),
      decay_filter_(std::move(decay_filter)) {
  set_lr(lr);
  Grow();
}

Optimizer::Optimizer(nn::ParameterStore& store, const char* kind,
                     OwnState own_state, double lr, DecayFilter decay_filter)
    : owner_(Share(store.state())),
      store_(store.state()),
      kind_(kind),
      own_state_(std::move(own_state)),
      decay_filter_(std::move(decay_filter)) {
  set_lr(lr);
  Grow();
}

void Optimizer::Check(bool valid, const char* option, double value,
                      const char* wanted) const {
  if (valid) return;
  throw Error(
      absl::StrCat(kind_, ": ", option, " is ", value, "; wanted ", wanted));
}

void Optimizer::CheckEps(double eps, const char* option) const {
  const bool above_0 =
      WithFloat(dtype(), [&]<class T>(T) { return static_cast<T>(eps) > 0; });
  Check(above_0 && std::isfinite(eps), option, eps, "a finite number > 0");
}

void Optimizer::CheckFractions(const Options& options,
                               std::initializer_list<const char*> names) const {
  for (const char* name : names) {
    const double x = options.at(name);
    Check(x >= 0 && x < 1, name, x, "a number in [0, 1)");
  }
}

void Optimizer::CheckNonNegative(
    const Options& options, std::initializer_list<const char*> names) const {
  for (const char* name : names) {
    const double x = options.at(name);
    Check(x >= 0 && std::isfinite(x), name, x, "a finite number >= 0");
  }
}

void Optimizer::CheckSwitches(const Options& options,
                              std::initializer_list<const char*> names) const {
  for (const char* name : names) {
    const double x = options.at(name);
    Check(x == 0 || x == 1, name, x, "0 or 1");
  }
}

void Optimizer::CheckLr(double lr) const {
  Check(lr >= 0 && std::isfinite(lr), "lr", lr, "a finite number >= 0");
}

void Optimizer::set_lr(double lr) {
  CheckLr(lr);
  lr_ = lr;
}

void Optimizer::CheckUsable(const char* what) const {
  store_.CheckUsable(absl::StrCat(kind_, ".", what).c_str());
}

Optimizer::Entry Optimizer::MakeEntry(const Parameter& p,
                                      const SegmentState& state,
                                      int64_t offset) const {
  Entry entry{0, !decay_filter_ || decay_filter_(p.name, p.value), {}, {}};
  if (own_state_) {
    for (const OwnTensor& own : own_state_(p)) {
      entry.names.push_back(own.name);
      entry.tensors.push_back(Tensor::Zeros(own.shape, own.dtype));
    }
    return entry;
  }
  entry.names = tensor_names_;
  for (const Tensor& x : state.tensors) {
    entry.tensors.push_back(Tensor::Alias(x, offset, p.value.shape()));
  }
  return entry;
}

// Makes the state of parameters that are new.
void Optimizer::Grow() {
  if (entries_.size() == store_.parameters.size()) return;
  const size_t bytes = ByteSize(store_.dtype);
  segments_.resize(store_.segments.size());
  size_t n_seen = 0;
  for (size_t s = 0; s < segments_.size(); ++s) {
    const nn::Segment& segment = store_.segments[s];
    SegmentState& state = segments_[s];
    while (state.tensors.size() < tensor_names_.size()) {
      state.tensors.push_back(
          Tensor::Empty(segment.values.shape(), store_.dtype));
    }
    for (const Tensor& x : state.tensors) {
      std::memset(static_cast<char*>(x.impl()->data) + state.used * bytes, 0,
                  (segment.used - state.used) * bytes);
    }
    state.used = segment.used;
    for (size_t i = 0; i < segment.parameters.size(); ++i) {
      if (n_seen++ < entries_.size()) continue;
      entries_.push_back(
          MakeEntry(*segment.parameters[i], state, segment.offsets[i]));
    }
  }
}

void Optimizer::Step() {
  CheckUsable("Step");
  store_.CheckGradients(absl::StrCat(kind_, ".Step").c_str());
  Grow();
  auto entry = entries_.begin();
  for (size_t s = 0; s < segments_.size(); ++s) {
    nn::Segment& segment = store_.segments[s];
    // Neighbours that are updated alike share one pass; in the gap between
    // them all is zero and stays so.
    Run run{0,      0, 0, false, segment, absl::MakeSpan(segments_[s].tensors),
            nullptr};
    const auto flush = [&] {
      if (run.size > 0) Update(run);
      run.size = 0;
    };
    for (size_t i = 0; i < segment.parameters.size(); ++i, ++entry) {
      Parameter& p = *segment.parameters[i];
      if (p.state != Parameter::Grad::kFresh) {
        flush();
        continue;
      }
      p.state = Parameter::Grad::kUsed;
      // What was recorded with the old value must not go backward any more.
      FetchAdd(p.value.impl()->versioned->version, 1,
               std::memory_order_relaxed);
      ++entry->step;
      if (run.step != entry->step || run.decay != entry->decay || own_state_) {
        flush();
      }
      if (own_state_) run.state = absl::MakeSpan(entry->tensors);
      if (run.size == 0) {
        run.begin = segment.offsets[i];
        run.parameter = &p;
      }
      run.size = segment.offsets[i] + p.value.size() - run.begin;
      run.step = entry->step;
      run.decay = entry->decay;
    }
    flush();
  }
}

OptimizerState Optimizer::State() {
  OptimizerState state = SharedState();
  for (auto& [parameter, entry] : state.parameters) {
    for (auto& [name, x] : entry.tensors) x = x.Clone();
  }
  return state;
}

OptimizerState Optimizer::SharedState() {
  CheckUsable("State");
  Grow();
  OptimizerState state{kind_, options(), {}};
  state.options["lr"] = lr_;
  for (size_t i = 0; i < entries_.size(); ++i) {
    OptimizerState::Entry saved{entries_[i].step, entries_[i].decay, {}};
    for (size_t k = 0; k < entries_[i].names.size(); ++k) {
      saved.tensors[entries_[i].names[k]] = entries_[i].tensors[k];
    }
    state.parameters[store_.parameters[i]->name] = std::move(saved);
  }
  return state;
}

// The saved entry of each parameter, or faults.
std::vector<const OptimizerState::Entry*> Optimizer::Match(
    const OptimizerState& state, std::vector<std::string>& faults) const {
  std::map<std::string, const OptimizerState::Entry*> by_canonical_name;
  for (const auto& [name, entry] : state.parameters) {
    const auto* known = store_.FindName(name);
    if (!known) {
      faults.push_back(absl::StrCat("the store has no '", name, "'"));
    } else if (!by_canonical_name.emplace(known->parameter->name, &entry)
                    .second) {
      faults.push_back(absl::StrCat("'", name,
                                    "' has a state, and so has a "
                                    "name that it is tied to"));
    }
  }
  std::vector<const OptimizerState::Entry*> matched;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Parameter* const p = store_.parameters[i];
    const Entry& own = entries_[i];
    const auto found = by_canonical_name.find(p->name);
    if (found == by_canonical_name.end()) {
      faults.push_back(absl::StrCat("the state has no '", p->name, "'"));
      continue;
    }
    const OptimizerState::Entry& entry = *matched.emplace_back(found->second);
    if (entry.step < 0) {
      faults.push_back(absl::StrCat("'", p->name, "' has had ", entry.step,
                                    " updates; wanted >= 0"));
    }
    for (const auto& [name, x] : entry.tensors) {
      if (!absl::c_linear_search(own.names, name)) {
        faults.push_back(
            absl::StrCat("there is no '", name, "' of '", p->name, "'"));
      }
    }
    for (size_t k = 0; k < own.names.size(); ++k) {
      const auto x = entry.tensors.find(own.names[k]);
      const std::string got =
          Describe(x == entry.tensors.end() ? Tensor() : x->second);
      const std::string wanted = Describe(own.tensors[k]);
      if (got != wanted) {
        faults.push_back(absl::StrCat("'", own.names[k], "' of '", p->name,
                                      "' is ", got, "; wanted ", wanted));
      }
    }
  }
  return matched;
}

void Optimizer::Load(const OptimizerState& state) {
  CheckUsable("Load");
  Grow();
  std::vector<std::string> faults;
  if (state.kind != kind_) {
    faults.push_back(absl::StrCat("the state is one of ", state.kind));
  }
  std::map<std::string, double> wanted = options();
  wanted["lr"] = lr_;
  for (const auto& [name, value] : state.options) {
    if (wanted.erase(name) == 0) {
      faults.push_back(absl::StrCat("there is no option '", name, "'"));
    }
  }
  for (const auto& [name, value] : wanted) {
    faults.push_back(absl::StrCat("the option '", name, "' is missing"));
  }
  const auto matched = Match(state, faults);
  if (!faults.empty()) {
    throw Error(
        absl::StrCat(kind_, ".Load: ", nn::internal::JoinDifferences(faults)));
  }
  const double lr = state.options.at("lr");
  CheckLr(lr);
  set_options(state.options);
  lr_ = lr;
  for (size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].step = matched[i]->step;
    entries_[i].decay = matched[i]->decay;
    for (size_t k = 0; k < entries_[i].names.size(); ++k) {
      const Tensor& from = matched[i]->tensors.at(entries_[i].names[k]);
      void* const to = entries_[i].tensors[k].impl()->data;
      if (to == from.impl()->data) continue;  // of SharedState
      std::memcpy(to, from.impl()->data, from.size() * ByteSize(from.dtype()));
    }
  }
}

}  // namespace wengert::train
