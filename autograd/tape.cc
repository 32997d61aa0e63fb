#include "autograd/tape.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/error.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/tape_checks.h"
#include "autograd/tape_observer.h"

namespace wengert {
namespace internal {
namespace {

constexpr size_t kBlock = size_t{1} << 15;

size_t RoundUp(size_t n) { return (n + 15) / 16 * 16; }

}  // namespace

Bump::~Bump() {
  for (const Block& b : blocks_) {
    UnpoisonMemory(b.data, b.size);  // what the pool gave
    PoolFree(b.data);
  }
}

void* Bump::Allocate(size_t bytes) {
  bytes = RoundUp(bytes);
  while (mark_.block < blocks_.size() &&
         mark_.used + bytes > blocks_[mark_.block].size) {
    mark_ = {mark_.block + 1, 0};
  }
  if (mark_.block == blocks_.size()) {
    const size_t size = std::max(bytes, kBlock);
    blocks_.push_back({nullptr, size});
    blocks_.back().data = static_cast<char*>(PoolAllocate(size));
    PoisonMemory(blocks_.back().data, size);
  }
  void* p = blocks_[mark_.block].data + mark_.used;
  UnpoisonMemory(p, bytes);
  mark_.used += bytes;
  return p;
}

void Bump::Rewind(Mark mark) {
  for (size_t b = mark.block; b <= mark_.block && b < blocks_.size(); ++b) {
    const size_t from = b == mark.block ? mark.used : 0;
    PoisonMemory(blocks_[b].data + from, blocks_[b].size - from);
  }
  mark_ = mark;
}

bool AllFinite(const Tensor& x) {
  if (x.dtype() == DType::kFloat32) {
    return kernels::AllFinite(x.size(), x.data<float>());
  }
  return kernels::AllFinite(x.size(), x.data<double>());
}

std::string OpName(const char* op, const std::string* scope) {
  return scope ? absl::StrCat(op, " in ", *scope) : op;
}

}  // namespace internal

using internal::kConstant;
using internal::kGone;
using internal::LeafCell;
using internal::NewRecord;
using internal::TapeLink;

namespace {

std::atomic<uint64_t> next_tape_id{1};

// Takes the links of ended tapes off the end of this thread's chain.
void DropEndedTapes() {
  auto* link = static_cast<TapeLink*>(parallel_context);
  while (link && !link->tape) {
    TapeLink* previous = link->previous;
    link->~TapeLink();
    PoolFree(link);
    link = previous;
  }
  parallel_context = link;
}

size_t HashOf(const TensorImpl* p) {
  return (reinterpret_cast<uintptr_t>(p) >> 6) * 0x9E3779B97F4A7C15 >> 32;
}

}  // namespace

Tape::Tape(Mode mode, Generator* generator)
    : id_(next_tape_id.fetch_add(1, std::memory_order_relaxed)),
      mode_(mode),
      generator_(generator),
      thread_(std::this_thread::get_id()) {
  if (mode == kTrain && !generator) {
    throw Error(
        "Tape: a training tape needs a generator; write Tape tape(generator)");
  }
  if (InParallelFor()) throw Error("Tape: made inside a ParallelFor");
  DropEndedTapes();
  // Room for a small model: growing moves every slot.
  constexpr size_t kRecords = 256;
  records_.reserve(kRecords);
  slots_.reserve(kRecords);
  link_ = new (PoolAllocate(sizeof(TapeLink)))
      TapeLink{this, static_cast<TapeLink*>(parallel_context)};
  parallel_context = link_;
}

Tape::~Tape() {
  pass_ = nullptr;
  scope_ = nullptr;
  Clear();
  link_->tape.store(nullptr, std::memory_order_release);
  if (std::this_thread::get_id() == thread_) DropEndedTapes();
}

void Tape::Fail(const char* op, const std::string& why) const {
  throw Error(absl::StrCat(op, ": ", why));
}

void Tape::CheckUsable(const char* op) const {
  if (std::this_thread::get_id() != thread_) {
    Fail(op, "the tape belongs to another thread");
  }
  if (InParallelFor()) Fail(op, "called inside a ParallelFor");
  if (Current() != this) {
    Fail(op, "a tape that was opened inside this one is still live");
  }
  if (link_->previous && !link_->previous->tape) {
    Fail(op,
         "the tape around this one has ended first; tapes end in the reverse "
         "order of their start");
  }
  if (pass_) Fail(op, "called from a rule or a hook of the same tape");
  if (checkpoint_) Fail(op, "called from a checkpointed function");
}

void Tape::Watch(const Tensor& x) {
  CheckUsable("Watch");
  if (!x.defined() || !IsFloat(x.dtype())) {
    Fail("Watch", absl::StrCat("got ", Describe(x), "; wanted a float tensor"));
  }
  if (x.impl()->tape == id_ && InputOf(x) == kGone) {
    Fail("Watch", absl::StrCat(Describe(x),
                               " was recorded before this tape was emptied; "
                               "watch and use its Detach()"));
  }
  if (!Tracks(x)) {
    slots_[LeafSlot(x)].leaf = x;
    ++n_watched_;
  }
}

void Tape::OnGradient(const Tensor& x, GradientHook hook) {
  CheckUsable("OnGradient");
  if (!hook) Fail("OnGradient", "the hook is empty; wanted a function");
  const int32_t slot = SlotOf("OnGradient", "x", x);
  if (slots_[slot].hook >= 0) {
    Fail("OnGradient", absl::StrCat(Describe(x), " has a hook already"));
  }
  slots_[slot].hook = static_cast<int32_t>(hooks_.size());
  hooks_.push_back(std::move(hook));
}

void Tape::set_observer(TapeObserver* observer) {
  observer_ = observer;
  if (observer) observer->OnStart();
}

void Tape::Clear() {
  if (pass_) Fail("Clear", "called from a rule or a hook of the same tape");
  const size_t n_slots = slots_.size();
  Truncate(0, 0, {});
  slots_.clear();
  base_ += static_cast<int64_t>(n_slots);
  std::fill(leaves_.begin(), leaves_.end(), LeafCell{});
  n_leaves_ = n_watched_ = 0;
  hooks_.clear();
  // Records that are still to come may name the layer that is open, whose path
  // lies with its owner.
  if (scope_) return;
  for (ParameterOwner* owner : owners_) owner->Unref();
  owners_.clear();
}

Tape::Input Tape::InputOf(const Tensor& x) {
  const TensorImpl* p = x.impl();
  if (p && p->tape == id_) {
    const int64_t slot = p->slot - base_;
    if (slot < 0 || slots_[slot].gone) return kGone;
    return static_cast<Input>(slot);
  }
  return Tracks(x) ? LeafSlot(x) : kConstant;
}

// Where x stands in the table, or would stand: then the cell is empty.
size_t Tape::CellOf(const TensorImpl* x) const {
  const size_t mask = leaves_.size() - 1;
  size_t i = HashOf(x) & mask;
  while (leaves_[i].tensor && leaves_[i].tensor != x) i = (i + 1) & mask;
  return i;
}

int32_t Tape::LeafSlot(const Tensor& x) {
  if (2 * (n_leaves_ + 1) > leaves_.size()) {
    internal::PoolVector<LeafCell> old(
        std::max<size_t>(64, 2 * leaves_.size()));
    old.swap(leaves_);
    for (const LeafCell& cell : old) {
      if (cell.tensor) leaves_[CellOf(cell.tensor)] = cell;
    }
  }
  LeafCell& cell = leaves_[CellOf(x.impl())];
  if (!cell.tensor) {
    const int32_t slot = NewSlot(x);
    slots_[slot].is_leaf = true;
    if (Parameter* p = x.impl()->parameter) {
      Borrow(p->owner);
      // One that is frozen is here because it is watched.
      if (!p->frozen()) slots_[slot].parameter = p;
    }
    cell = {x.impl(), slot};
    ++n_leaves_;
  }
  return cell.slot;
}

int32_t Tape::NewSlot(const Tensor& y) {
  slots_.emplace_back(y.shape(), y.dtype());
  return static_cast<int32_t>(slots_.size() - 1);
}

void Tape::Borrow(ParameterOwner* owner) {
  if (std::find(owners_.rbegin(), owners_.rend(), owner) != owners_.rend()) {
    return;
  }
  owners_.push_back(owner);
  owner->Ref();
}

void AppendToTape(const NewRecord& r, Tensor& y) {
  Tape::Current()->Append(r, y);
}

void Tape::Append(const NewRecord& r, Tensor& y) {
  if (observer_ && pauses_ == 0) [[unlikely]]
    Observe(r, y);
  if (check_finite_ && !pass_) CheckForward(r, y);
  if (!IsFloat(y.dtype())) return;
  bool tracked = false;
  for (const Tensor& x : r.inputs) tracked = tracked || Tracks(x);
  if (!tracked) return;
  if (paused_ > 0) {
    if (checkpoint_) {
      for (const Tensor& x : r.inputs) checkpoint_->Note(x);
    }
    return;
  }
  TensorImpl* const out = y.impl();
  if (InParallelFor() || out->tape != 0 || out->parameter) FailRecord(r, y);
  const size_t n_inputs = r.inputs.size(), n_saved = r.saved.size();
  const size_t saved_at = sizeof(internal::Record);
  const size_t versions_at = saved_at + n_saved * sizeof(Tensor);
  const size_t inputs_at = versions_at + n_saved * sizeof(uint64_t);
  const size_t closure_at =
      internal::RoundUp(inputs_at + n_inputs * sizeof(Input));
  char* const memory =
      static_cast<char*>(memory_.Allocate(closure_at + r.type->size));
  auto* record = new (memory) internal::Record{
      .op = r.op,
      .scope = scope_,
      .type = r.type,
      .output = 0,
      .n_inputs = static_cast<int32_t>(n_inputs),
      .n_saved = static_cast<int32_t>(n_saved),
      .inputs = reinterpret_cast<Input*>(memory + inputs_at),
      .saved = reinterpret_cast<Tensor*>(memory + saved_at),
      .versions = reinterpret_cast<uint64_t*>(memory + versions_at),
      .closure = memory + closure_at};
  for (size_t i = 0; i < n_inputs; ++i) {
    record->inputs[i] = InputOf(r.inputs[i]);
  }
  for (size_t i = 0; i < n_saved; ++i) {
    const Tensor& x = r.saved[i];
    const TensorImpl* const p = x.impl();
    record->versions[i] = internal::VersionOf(p);
    if (p && p->parameter) {  // borrowed: the owner is held, not the tensor
      Borrow(p->parameter->owner);
      std::memcpy(static_cast<void*>(record->saved + i), &x, sizeof(Tensor));
    } else {
      new (record->saved + i) Tensor(x);
    }
  }
  r.type->move(record->closure, r.closure);
  record->output = NewSlot(y);
  out->tape = id_;
  out->slot = base_ + record->output;
  records_.push_back(record);
}

void Tape::FailRecord(const NewRecord& r, const Tensor& y) const {
  if (InParallelFor()) {
    Fail(r.op,
         "recorded inside a ParallelFor; use Tape::Pause, or record "
         "outside");
  }
  Fail(r.op, absl::StrCat("the result ", Describe(y),
                          " is on a tape already; wanted a fresh tensor"));
}

void Tape::Observe(const NewRecord& r, const Tensor& y) const {
  if (!InParallelFor()) observer_->OnOperation({r.op, scope_, r.inputs, y});
}

void Tape::CheckForward(const NewRecord& r, const Tensor& y) const {
  if (!IsFloat(y.dtype()) || internal::AllFinite(y)) return;
  for (const Tensor& x : r.inputs) {
    if (x.defined() && IsFloat(x.dtype()) && !internal::AllFinite(x)) {
      return;  // an earlier one made it
    }
  }
  throw NonFiniteError(absl::StrCat(
      internal::OpName(r.op, scope_),
      ": forward made a NaN or an infinity of finite inputs ",
      absl::StrJoin(r.inputs, ", ", [](std::string* out, const Tensor& x) {
        absl::StrAppend(out, Describe(x));
      })));
}

// Lets go of what a record saved.
void Tape::Release(internal::Record& r) {
  if (!r.type) return;
  r.type->destroy(r.closure);
  r.type = nullptr;
  for (int32_t i = 0; i < r.n_saved; ++i) {
    const bool borrowed = r.saved[i].defined() && r.saved[i].impl()->parameter;
    if (!borrowed) r.saved[i].~Tensor();
  }
}

// Takes back the newest records, and marks their slots as gone.
void Tape::Truncate(size_t n_records, size_t n_slots,
                    internal::Bump::Mark mark) {
  for (size_t i = records_.size(); i-- > n_records;) Release(*records_[i]);
  records_.resize(n_records);
  memory_.Rewind(mark);
  for (size_t i = n_slots; i < slots_.size(); ++i) {
    slots_[i].gone = true;
    slots_[i].grad = {};
  }
}

Scope::Scope(const std::string& path, ParameterOwner* owner)
    : tape_(Tape::Current()) {
  if (!tape_ || InParallelFor()) {
    tape_ = nullptr;
    return;
  }
  outer_ = std::exchange(tape_->scope_, &path);
  if (owner) tape_->Borrow(owner);
}

}  // namespace wengert
