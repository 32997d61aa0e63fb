#include "nn/parameter_store.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/error.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/random.h"
#include "nn/name_pattern.h"

namespace wengert::nn {
namespace {

using internal::StoreState;

// f(T*) with the elements of x, which is float32 or float64.
template <class F>
void Write(Tensor& x, F f) {
  WithFloat(x.dtype(), [&]<class T>(T) { f(x.mutable_data<T>()); });
}

void CopyValues(const Tensor& from, Tensor& to) {
  Write(to,
        [&]<class T>(T* y) { std::copy_n(from.data<T>(), from.size(), y); });
}

std::vector<std::string> NamesOf(const StoreState& state) {
  std::vector<std::string> names;
  for (const StoreState::Name& name : state.names) names.push_back(name.text);
  return names;
}

std::string Show(const StoreState::Name& name) {
  return name.tied() ? absl::StrCat("= ", name.parameter->name)
                     : name.parameter->value.shape().ToString();
}

}  // namespace

Scope LayerPath::Open() const {
  static const std::string& root = *new std::string("the root layer");
  return Scope(path_ && !path_->empty() ? *path_ : root, owner_.get());
}

internal::StoreState& Params::state(const char* op) const {
  if (!owner_.get()) {
    throw Error(absl::StrCat(op, ": these Params were moved from"));
  }
  auto& state = *static_cast<StoreState*>(owner_.get());
  state.CheckUsable(op);
  return state;
}

std::string Params::FullName(const char* op, const std::string& name) const {
  if (name.empty()) {
    throw Error(absl::StrCat(op, ": a name under '", path_, "' is empty"));
  }
  return path_.empty() ? name : absl::StrCat(path_, ".", name);
}

Params Params::Sub(const std::string& name) const {
  return Params(owner_, FullName("Params::Sub", name));
}

Params Params::Sub(int64_t index) const { return Sub(absl::StrCat(index)); }

DType Params::dtype() const { return state("Params::dtype").dtype; }

LayerPath Params::layer_path() const {
  return LayerPath(owner_,
                   &*state("Params::layer_path").paths.insert(path_).first);
}

Tensor Params::Create(
    const char* op, const std::string& name, const Shape& shape,
    absl::FunctionRef<void(uint64_t key, Tensor& value)> fill) const {
  StoreState& store = state(op);
  const std::string full = FullName(op, name);
  if (StoreState::Name* known = store.FindName(full)) {
    if (!known->open) {
      throw Error(absl::StrCat(op, ": '", full, "' exists already"));
    }
    const Tensor& value = known->parameter->value;
    if (known->tied() || value.shape() != shape) {
      throw Error(absl::StrCat(op, ": '", full, "' is ", Show(*known),
                               " in the store that was cloned; wanted ",
                               shape.ToString()));
    }
    known->open = false;
    return value;
  }
  Parameter* p = store.Place(full, shape, /*open=*/false);
  fill(StreamKey(store.seed, full), p->value);
  return p->value;
}

Tensor Params::Uniform(const std::string& name, const Shape& shape,
                       double bound) const {
  if (!(bound >= 0 && std::isfinite(bound))) {
    throw Error(absl::StrCat("Params::Uniform: the bound of '", name, "' is ",
                             bound, "; wanted a finite number >= 0"));
  }
  return Create("Params::Uniform", name, shape, [&](uint64_t key, Tensor& w) {
    Write(w, [&](auto* y) { FillUniform(key, 0, -bound, bound, w.size(), y); });
  });
}

Tensor Params::Normal(const std::string& name, const Shape& shape,
                      double stddev, double mean) const {
  if (!(stddev >= 0 && std::isfinite(stddev))) {
    throw Error(absl::StrCat("Params::Normal: the deviation of '", name,
                             "' is ", stddev, "; wanted a finite number >= 0"));
  }
  return Create("Params::Normal", name, shape, [&](uint64_t key, Tensor& w) {
    Write(w, [&](auto* y) { FillNormal(key, 0, mean, stddev, w.size(), y); });
  });
}

Tensor Params::Constant(const std::string& name, const Shape& shape,
                        double value) const {
  return Create("Params::Constant", name, shape, [&](uint64_t, Tensor& w) {
    Write(w, [&]<class T>(T* y) {
      kernels::Fill<T>(w.size(), static_cast<T>(value), y);
    });
  });
}

Tensor Params::Make(const std::string& name, const Shape& shape,
                    const Initializer& init) const {
  constexpr char kOp[] = "Params::Make";
  StoreState& store = state(kOp);
  const std::string full = FullName(kOp, name);
  Tensor draft;  // an initialiser that throws leaves no parameter
  if (!store.FindName(full)) {
    draft = Tensor::Empty(shape, store.dtype);
    init(StreamKey(store.seed, full), draft);
  }
  return Create(kOp, name, shape,
                [&](uint64_t, Tensor& w) { CopyValues(draft, w); });
}

Tensor Params::Tied(const std::string& name, const Tensor& parameter) const {
  constexpr char kOp[] = "Params::Tied";
  StoreState& store = state(kOp);
  const std::string full = FullName(kOp, name);
  Parameter* p = parameter.defined() ? parameter.impl()->parameter : nullptr;
  if (!p || p->owner != &store) {
    throw Error(absl::StrCat(kOp, ": '", full, "' is tied to ",
                             Describe(parameter),
                             ", which is no parameter of the same store"));
  }
  StoreState::Name* known = store.FindName(full);
  if (!known) {
    store.AddName(full, p, /*open=*/false);
  } else if (!known->open) {
    throw Error(absl::StrCat(kOp, ": '", full, "' exists already"));
  } else if (!known->tied() || known->parameter != p) {
    throw Error(
        absl::StrCat(kOp, ": '", full, "' is ", Show(*known),
                     " in the store that was cloned; wanted = ", p->name));
  } else {
    known->open = false;
  }
  return p->value;
}

ParameterStore::ParameterStore(DType dtype, uint64_t seed)
    : owner_(new StoreState(dtype, seed)) {
  if (!IsFloat(dtype)) {
    throw Error(absl::StrCat("ParameterStore: parameters of ", Name(dtype),
                             "; wanted float32 or float64"));
  }
}

void ParameterStore::ThrowMoved() {
  throw Error("ParameterStore: this one was moved from and holds nothing");
}

void ParameterStore::End() {
  if (owner_.get()) owner_.get()->alive = false;
}

int64_t ParameterStore::num_elements() const {
  int64_t n = 0;
  for (const Parameter* p : parameters()) n += p->value.size();
  return n;
}

Tensor ParameterStore::Find(const std::string& name) const {
  if (const StoreState::Name* found = state().FindName(name)) {
    return found->parameter->value;
  }
  throw Error(absl::StrCat("ParameterStore::Find: no parameter is called '",
                           name, "'; ", NearestName(name, NamesOf(state()))));
}

void ParameterStore::Initialize(const std::string& name,
                                const Initializer& init) {
  state().CheckUsable("ParameterStore::Initialize");
  Tensor value = Find(name);
  Tensor draft = Tensor::Empty(value.shape(), dtype());
  init(StreamKey(seed(), value.impl()->parameter->name), draft);
  CopyValues(draft, value);
}

void ParameterStore::ZeroGrad() {
  state().CheckUsable("ParameterStore::ZeroGrad");
  for (Parameter* p : parameters()) p->state = Parameter::Grad::kNone;
  state().gradients_invalid = false;
}

void ParameterStore::Freeze(const std::string& pattern) {
  SetFrozen("ParameterStore::Freeze", pattern, true);
}

void ParameterStore::Unfreeze(const std::string& pattern) {
  SetFrozen("ParameterStore::Unfreeze", pattern, false);
}

void ParameterStore::SetFrozen(const char* op, const std::string& pattern,
                               bool frozen) {
  state().CheckUsable(op);
  bool found = false;
  for (const StoreState::Name& name : state().names) {
    if (!MatchesPattern(pattern, name.text)) continue;
    found = true;
    name.parameter->value.impl()->frozen = frozen;
    if (frozen) name.parameter->state = Parameter::Grad::kNone;
  }
  if (!found) {
    throw Error(absl::StrCat(op, ": no parameter matches '", pattern, "'; ",
                             NearestName(pattern, NamesOf(state()))));
  }
}

ParameterStore ParameterStore::Clone() const {
  OwnerHandle handle(new StoreState(dtype(), seed()));
  auto& copy = *static_cast<StoreState*>(handle.get());
  for (const StoreState::Name& name : state().names) {
    if (name.tied()) {
      copy.AddName(name.text, copy.FindName(name.parameter->name)->parameter,
                   /*open=*/true);
    } else {
      const Tensor& value = name.parameter->value;
      Tensor& to = copy.Place(name.text, value.shape(), /*open=*/true)->value;
      CopyValues(value, to);
      to.impl()->frozen = value.impl()->frozen;
    }
  }
  return ParameterStore(std::move(handle));
}

void ParameterStore::CopyFrom(const ParameterStore& other) {
  constexpr char kOp[] = "ParameterStore::CopyFrom";
  state().CheckUsable(kOp);
  std::vector<std::string> differences;
  if (dtype() != other.dtype()) {
    differences.push_back(absl::StrCat("the dtype is ", Name(dtype()),
                                       " here and ", Name(other.dtype()),
                                       " there"));
  }
  for (const StoreState::Name& name : state().names) {
    const StoreState::Name* theirs = other.state().FindName(name.text);
    if (!theirs) {
      differences.push_back(absl::StrCat("'", name.text, "' is missing there"));
    } else if (Show(name) != Show(*theirs)) {
      differences.push_back(absl::StrCat("'", name.text, "' is ", Show(name),
                                         " here and ", Show(*theirs),
                                         " there"));
    }
  }
  for (const StoreState::Name& name : other.state().names) {
    if (!state().FindName(name.text)) {
      differences.push_back(absl::StrCat("'", name.text, "' is missing here"));
    }
  }
  if (!differences.empty()) {
    throw Error(
        absl::StrCat(kOp, ": ", internal::JoinDifferences(differences)));
  }
  for (Parameter* p : parameters()) {
    CopyValues(other.Find(p->name), p->value);
  }
}

std::string ParameterStore::Table() const {
  std::vector<std::array<std::string, 3>> rows = {
      {"parameter", "shape", "count"}};
  for (const StoreState::Name& name : state().names) {
    rows.push_back(
        {name.text,
         absl::StrCat(Show(name), name.parameter->frozen() ? " frozen" : ""),
         name.tied() ? "" : absl::StrCat(name.parameter->value.size())});
  }
  rows.push_back({"total", "", absl::StrCat(num_elements())});
  std::array<size_t, 3> width = {};
  for (const auto& row : rows) {
    for (int c = 0; c < 3; ++c) width[c] = std::max(width[c], row[c].size());
  }
  std::string table;
  for (const auto& row : rows) {
    std::string line = absl::StrFormat("%-*s  %-*s  %*s", width[0], row[0],
                                       width[1], row[1], width[2], row[2]);
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&table, line, "\n");
  }
  return table;
}

}  // namespace wengert::nn
