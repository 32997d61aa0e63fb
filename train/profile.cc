#include "train/profile.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "train/profile_counts.h"

namespace wengert::train {
namespace {

std::string ShapesOf(const OperationEvent& e) {
  std::string text;
  for (const Tensor& x : e.inputs) {
    absl::StrAppend(&text, x.defined() ? x.shape().ToString() : "none", " ");
  }
  return absl::StrCat(text, "-> ", e.output.shape().ToString());
}

std::string ShapesOf(const RuleEvent& e) {
  std::string text = absl::StrCat(e.dy.shape().ToString(), " ->");
  for (const Shape* s : e.wanted) {
    absl::StrAppend(&text, " ", s ? s->ToString() : "none");
  }
  return text;
}

}  // namespace

// Stops the profile's clock while it lives.
class Profile::Stopped {
 public:
  explicit Stopped(Profile& profile) : profile_(profile) {
    const int64_t now = profile.options_.now();
    if (profile.started_) {
      profile.clock_ += now - profile.resumed_;
    } else {
      profile.pool_ = GetPoolStats();
      profile.started_ = true;
    }
  }
  ~Stopped() { profile_.resumed_ = profile_.options_.now(); }

 private:
  Profile& profile_;
};

Profile::Profile(Options options)
    : options_(std::move(options)),
      between_(RowOf("(between)", nullptr, Kind::kSpan)) {}

int64_t Profile::SteadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Profile::Row& Profile::RowOf(const std::string& name, const std::string* layer,
                             Kind kind) {
  const std::string path = layer ? *layer : "";
  return rows_
      .try_emplace({name, path, kind},
                   Row{.name = name, .layer = path, .kind = kind})
      .first->second;
}

template <class F>
size_t Profile::AddSlice(const Row& row, int64_t begin, double flops,
                         F shapes) {
  if (slices_.size() >= options_.trace_slices) {
    ++left_out_;
    return kNoSlice;
  }
  slices_.push_back({&row, begin, clock_, flops, shapes()});
  return slices_.size() - 1;
}

void Profile::Charge(Row& row) noexcept {
  row.nanoseconds += clock_ - std::exchange(charged_, clock_);
  const PoolStats pool = GetPoolStats();
  row.allocations += pool.allocations - pool_.allocations;
  row.system_allocations += pool.system_allocations - pool_.system_allocations;
  pool_ = pool;
}

void Profile::ChargeRest() noexcept {
  Charge(frames_.empty() ? between_ : *frames_.back().row);
}

void Profile::Pop() noexcept {
  ChargeRest();
  const Frame& frame = frames_.back();
  if (frame.slice != kNoSlice) slices_[frame.slice].end = clock_;
  frames_.pop_back();
}

void Profile::CloseSlices() {
  const Stopped stopped(*this);
  for (const Frame& frame : frames_) {
    if (frame.slice != kNoSlice) slices_[frame.slice].end = clock_;
  }
}

void Profile::OnStart() {
  const Stopped stopped(*this);
  ChargeRest();
}

void Profile::OnOperation(const OperationEvent& e) {
  const Stopped stopped(*this);
  const double flops = internal::Flops(e);
  if (!frames_.empty() && !frames_.back().holds_rows) {
    frames_.back().row->flops += flops;
    return;
  }
  const bool again = !frames_.empty() && frames_.back().again;
  Row& row = RowOf(e.op, e.layer, again ? Kind::kAgain : Kind::kForward);
  ++row.calls;
  row.flops += flops;
  row.bytes += internal::Bytes(e);
  AddSlice(row, charged_, flops, [&] { return ShapesOf(e); });
  Charge(row);
}

void Profile::OnRuleBegin(const RuleEvent& e) {
  const Stopped stopped(*this);
  ChargeRest();
  Row& row = RowOf(e.op, e.layer, Kind::kBackward);
  const double flops = internal::Flops(e);
  ++row.calls;
  row.flops += flops;
  row.bytes += internal::Bytes(e);
  const size_t slice =
      AddSlice(row, clock_, flops, [&] { return ShapesOf(e); });
  frames_.push_back({&row, e.composed, e.composed, slice});
}

void Profile::OnRuleEnd() noexcept {
  const Stopped stopped(*this);
  Pop();
}

void Profile::OnPassBegin(const char* name) { Begin(name); }

void Profile::OnPassEnd() noexcept { End(); }

void Profile::Begin(const std::string& name) {
  const Stopped stopped(*this);
  ChargeRest();
  Row& row = RowOf(name, nullptr, Kind::kSpan);
  ++row.calls;
  const bool again = !frames_.empty() && frames_.back().again;
  const size_t slice = AddSlice(row, clock_, 0, [] { return ""; });
  frames_.push_back({&row, true, again, slice});
}

void Profile::End() noexcept {
  const Stopped stopped(*this);
  Pop();
}

std::vector<Profile::Row> Profile::Rows(bool by_layer) {
  const Stopped stopped(*this);
  ChargeRest();
  std::map<std::tuple<std::string, std::string, Kind>, Row> sums;
  for (const auto& [key, row] : rows_) {
    if (row.calls == 0 && row.nanoseconds == 0) continue;
    const std::string layer = by_layer ? row.layer : "";
    Row& sum = sums.try_emplace({row.name, layer, row.kind},
                                Row{row.name, layer, row.kind})
                   .first->second;
    sum.calls += row.calls;
    sum.nanoseconds += row.nanoseconds;
    sum.flops += row.flops;
    sum.bytes += row.bytes;
    sum.allocations += row.allocations;
    sum.system_allocations += row.system_allocations;
  }
  std::vector<Row> rows;
  for (auto& [key, sum] : sums) rows.push_back(std::move(sum));
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.nanoseconds > b.nanoseconds;
  });
  return rows;
}

}  // namespace wengert::train
