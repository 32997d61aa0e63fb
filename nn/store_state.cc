#include "nn/store_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/error.h"

namespace wengert::nn::internal {
namespace {

constexpr int64_t kAlignment = 64;  // bytes
constexpr int64_t kFirstSegment = 1 << 20;

void Zero(const Tensor& x, int64_t begin, int64_t end) {
  const size_t size = ByteSize(x.dtype());
  std::memset(static_cast<char*>(x.impl()->data) + begin * size, 0,
              (end - begin) * size);
}

}  // namespace

StoreState::~StoreState() {
  for (Parameter* p : parameters) p->value.impl()->parameter = nullptr;
}

void StoreState::AllocateGradients() {
  if (n_with_gradients_ == parameters.size()) return;
  for (Segment& s : segments) {
    if (!s.gradients.defined()) {
      s.gradients = Tensor::Empty(s.values.shape(), dtype);
    }
    for (size_t i = 0; i < s.parameters.size(); ++i) {
      Parameter& p = *s.parameters[i];
      if (p.grad.defined()) continue;
      const bool last = i + 1 == s.parameters.size();
      Zero(s.gradients, s.offsets[i], last ? s.used : s.offsets[i + 1]);
      p.grad = Tensor::Alias(s.gradients, s.offsets[i], p.value.shape(), true);
    }
  }
  n_with_gradients_ = parameters.size();
}

Parameter* StoreState::Place(const std::string& name, const Shape& shape,
                             bool open) {
  const int64_t unit = kAlignment / static_cast<int64_t>(ByteSize(dtype));
  const int64_t room = (shape.size() + unit - 1) / unit * unit;
  const int64_t last = segments.empty() ? 0 : segments.back().values.size();
  if (segments.empty() || room > last - segments.back().used) {
    const int64_t size =
        std::max({kFirstSegment / kAlignment * unit, 2 * last, room});
    Tensor values = Tensor::Empty({size}, dtype);
    segments.emplace_back().values = std::move(values);
  }
  Segment& s = segments.back();
  memory_.push_back({.name = name,
                     .owner = this,
                     .value = Tensor::Alias(s.values, s.used, shape, true),
                     .grad = {}});
  Parameter* p = &memory_.back();
  p->value.impl()->parameter = p;
  s.parameters.push_back(p);
  s.offsets.push_back(s.used);
  Zero(s.values, s.used + shape.size(), s.used + room);
  s.used += room;
  parameters.push_back(p);
  AddName(name, p, open);
  return p;
}

void StoreState::AddName(const std::string& name, Parameter* parameter,
                         bool open) {
  name_index_[name] = names.size();
  names.push_back({name, parameter, open});
}

StoreState::Name* StoreState::FindName(const std::string& name) {
  const auto found = name_index_.find(name);
  return found == name_index_.end() ? nullptr : &names[found->second];
}

void StoreState::CheckUsable(const char* op) const {
  if (!alive) throw Error(absl::StrCat(op, ": the ParameterStore has ended"));
  if (in_backward) {
    throw Error(
        absl::StrCat(op, ": a Backward is writing into the ParameterStore"));
  }
}

void StoreState::CheckGradients(const char* op) const {
  if (!gradients_invalid) return;
  throw Error(absl::StrCat(op,
                           ": a Backward threw half-way, and the gradients are "
                           "incomplete; call ZeroGrad first"));
}

std::string JoinDifferences(absl::Span<const std::string> differences) {
  constexpr size_t kShown = 10;
  const size_t rest = differences.size() - std::min(kShown, differences.size());
  return absl::StrCat(
      absl::StrJoin(differences.subspan(0, kShown), "; "),
      rest > 0 ? absl::StrCat("; and ", rest, " more") : std::string());
}

}  // namespace wengert::nn::internal
