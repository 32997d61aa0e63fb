// The Wengert list: operations record themselves on the thread's current tape
// in the order they run, and a backward pass walks the list once in reverse.
//
//   Tape tape(generator);                  // records while it lives; trains
//   Tensor loss = CrossEntropy(model(tokens), targets);
//   tape.Backward(loss);                   // fills the parameters' gradients
//   optimizer.Step();
//
// Without a tape nothing is recorded. Operations, those of users too, record
// themselves with Record and Save, and write gradients through GradientSink.
#ifndef WENGERT_AUTOGRAD_TAPE_H_
#define WENGERT_AUTOGRAD_TAPE_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "absl/types/span.h"
#include "autograd/parameter.h"
#include "autograd/random.h"
#include "autograd/tape_records.h"
#include "autograd/tensor.h"

namespace wengert {

class TapeObserver;  // tape_observer.h

struct BackwardOptions {
  Tensor cotangent = {};  // dL/dy; without it y has one element and it is 1
  bool retain = false;    // keep the records for another pass
};
struct GradientOptions {
  bool create_graph = false;  // record the pass itself; implies retain
  bool retain = false;
  Tensor cotangent = {};
};

// Sees a whole gradient and returns the one to go on with; an undefined Tensor
// keeps it.
using GradientHook = absl::AnyInvocable<Tensor(const Tensor& gradient)>;

class Tape {
 public:
  enum Mode { kPlain, kTrain, kEval };

  // Records. Dropout with p > 0 throws, since there is no randomness to use.
  Tape() : Tape(kPlain, nullptr) {}
  // Records and trains: random operations draw from `generator`, which the
  // caller owns and which must outlive the tape.
  explicit Tape(Generator& generator) : Tape(kTrain, &generator) {}
  // Tape(Tape::kEval) records with dropout off.
  explicit Tape(Mode mode) : Tape(mode, nullptr) {}
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // Makes a float tensor a leaf, so that Gradient may ask for it. Call it
  // before the tensor is used; it lasts until the tape is emptied.
  void Watch(const Tensor& x);

  // Adds dL/dp into the gradient of every parameter p that y depends on, then
  // empties the tape unless `retain`.
  void Backward(const Tensor& y, BackwardOptions options = {});
  void Backward(const Tensor& y, const Tensor& cotangent);

  // dL/dx for each x (recorded here, watched, or a parameter): zeros for one
  // that y does not depend on. Never touches the parameters' own gradients.
  // Empties the tape unless `retain` or `create_graph`.
  std::vector<Tensor> Gradient(const Tensor& y, absl::Span<const Tensor> xs,
                               GradientOptions options = {});
  Tensor Gradient(const Tensor& y, const Tensor& x,
                  GradientOptions options = {});

  // Runs `hook` once in each pass that reaches x, on the whole gradient of x.
  // Lasts until the tape is emptied.
  void OnGradient(const Tensor& x, GradientHook hook);

  // When on, the first operation that turns finite values into a NaN or an
  // infinity, forward or backward, throws NonFiniteError with its name.
  void set_check_finite(bool on) { check_finite_ = on; }
  // Tells `observer`, which must outlive its use here, what runs under this
  // tape; null tells nobody.
  void set_observer(TapeObserver* observer);

  // Forgets all records, watched tensors and hooks.
  void Clear();
  // The recorded graph for Graphviz (`dot -Tsvg`): an oval for each record with
  // its operation, layer and result's shape, a box for each parameter and
  // watched tensor. Constants are left out.
  std::string ToDot() const;
  // Number of records.
  size_t size() const { return records_.size(); }
  Mode mode() const { return mode_; }
  // The generator of a training tape, null otherwise.
  Generator* generator() const { return generator_; }
  bool recording() const { return paused_ == 0; }
  // Whether an operation on x is recorded here: x is a parameter, is watched,
  // or was computed from one that is.
  bool Tracks(const Tensor& x) const {
    const TensorImpl* p = x.impl();
    if (!p) return false;  // an operand that is left out
    return p->tape == id_ ||
           (p->parameter && !p->frozen && IsFloat(p->dtype)) ||
           (n_watched_ > 0 && leaves_[CellOf(p)].tensor == p);
  }

  // The innermost live tape of this thread, or null.
  static Tape* Current() {
    auto* link = static_cast<internal::TapeLink*>(parallel_context);
    while (link && !link->tape.load(std::memory_order_acquire)) {
      link = link->previous;
    }
    return link ? link->tape.load(std::memory_order_acquire) : nullptr;
  }

  // Stops the current tape from recording while it lives.
  class Pause {
   public:
    Pause() : tape_(Current()) {
      if (tape_) ++tape_->paused_, ++tape_->pauses_;
    }
    ~Pause() {
      if (tape_) --tape_->paused_, --tape_->pauses_;
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Tape* tape_;
  };

 private:
  friend class CheckpointRun;
  friend class GradientSink;
  friend class Scope;
  struct Pass;
  struct ObservedPass;
  struct ObservedRule;
  using Input = int32_t;

  Tape(Mode mode, Generator* generator);
  [[noreturn]] void Fail(const char* op, const std::string& why) const;
  void CheckUsable(const char* op) const;

  // Records: tape.cc
  friend void AppendToTape(const internal::NewRecord& r, Tensor& y);
  Input InputOf(const Tensor& x);
  int32_t LeafSlot(const Tensor& x);
  size_t CellOf(const TensorImpl* x) const;
  int32_t NewSlot(const Tensor& y);
  void Borrow(ParameterOwner* owner);
  void Append(const internal::NewRecord& r, Tensor& y);
  [[noreturn]] void FailRecord(const internal::NewRecord& r,
                               const Tensor& y) const;
  void Observe(const internal::NewRecord& r, const Tensor& y) const;
  void CheckForward(const internal::NewRecord& r, const Tensor& y) const;
  static void Release(internal::Record& r);
  void Truncate(size_t n_records, size_t n_slots, internal::Bump::Mark mark);

  // Passes: tape_backward.cc
  int32_t SlotOf(const char* op, const std::string& name, const Tensor& x);
  Tensor SeedOf(const char* op, const Tensor& y, const Tensor& cotangent) const;
  void Run(Pass& pass, int32_t y, Tensor cotangent);
  void Plan(const Pass& pass, int32_t y);
  void MarkReach(size_t begin, size_t end);
  void CheckSaved(const Pass& pass, const internal::Record& r) const;
  [[noreturn]] void FailSaved(const Pass& pass, const internal::Record& r,
                              int32_t k) const;
  [[noreturn]] void FailDType(DType given, DType wanted) const;
  void Sweep(size_t begin, size_t end, bool retain);
  void SweepComposition(const internal::Record& r, const Tensor& dy);
  void AddTo(int32_t slot, Tensor contribution);
  void* WriteInto(int32_t slot, DType dtype, bool& accumulate);
  Tensor Hooked(int32_t slot, Tensor gradient);
  void FinishLeaves();
  bool IsDirect(const internal::Slot& s) const;
  int32_t NonFiniteInput(const internal::Record& r) const;
  void CheckRule(const internal::Record& r, const Tensor& dy,
                 bool saved_finite) const;

  const uint64_t id_;
  const Mode mode_;
  Generator* const generator_;
  const std::thread::id thread_;
  internal::TapeLink* link_;
  int paused_ = 0;  // by a Pause, a pass or a checkpointed function
  int pauses_ = 0;  // of these, by a Pause: nothing is observed
  bool check_finite_ = false;
  TapeObserver* observer_ = nullptr;
  Pass* pass_ = nullptr;                       // the pass that is under way
  const std::string* scope_ = nullptr;         // the open layer's path
  class CheckpointRun* checkpoint_ = nullptr;  // notes what it reads
  int64_t base_ = 0;  // slots below belong to records that are gone
  internal::PoolVector<internal::Record*> records_;
  internal::PoolVector<internal::Slot> slots_;
  internal::PoolVector<internal::LeafCell> leaves_;  // open addressing
  size_t n_leaves_ = 0;
  size_t n_watched_ = 0;
  internal::PoolVector<ParameterOwner*> owners_;
  std::vector<GradientHook> hooks_;
  internal::Bump memory_;
};

// What a rule receives: the cotangent of its output, and a way to add to the
// gradients of its inputs, which are numbered as Record lists them.
class GradientSink {
 public:
  // Where a kernel writes: it stores, or adds when `accumulate`.
  template <class T>
  struct Destination {
    T* data;
    bool accumulate;
  };

  const Tensor& dy() const { return dy_; }
  // Whether somebody wants the gradient of input i: if not, do not compute it.
  bool Needs(int i) const {
    const int32_t slot = record_.inputs[i];
    return slot >= 0 && tape_.slots_[slot].reach;
  }
  // Whether the rule may write over what it saved: nobody else holds it, and
  // this is its last use.
  bool MayOverwrite(const Tensor& saved) const {
    return !retain_ && saved.unique();
  }
  // Whether this pass is itself recorded, for derivatives of higher order: then
  // gradients are made of operations. If not, Into may take them.
  bool Recorded() const;
  // Adds a contribution to input i; one of a shape to which the input was
  // broadcast is summed over the repeated dimensions first.
  void Add(int i, Tensor contribution);
  // For kernels that write the gradient themselves. Only where the pass is not
  // Recorded, as in the rule of a record that has a composition. Call once for
  // each input that is needed.
  template <class T>
  Destination<T> Into(int i) {
    bool accumulate;
    void* data = IntoRaw(i, kDTypeOf<T>, accumulate);
    return {static_cast<T*>(data), accumulate};
  }

 private:
  friend class Tape;
  GradientSink(Tape& tape, const internal::Record& r, const Tensor& dy,
               bool retain)
      : tape_(tape), record_(r), dy_(dy), retain_(retain) {}
  void* IntoRaw(int i, DType dtype, bool& accumulate);
  void Flush();

  Tape& tape_;
  const internal::Record& record_;
  const Tensor& dy_;
  const bool retain_;
  absl::InlinedVector<int32_t, 4> written_;  // slots handed out by Into
  absl::InlinedVector<std::pair<int32_t, Tensor>, 2> later_;
};

// The tensors that a rule needs, in the order in which it receives them.
template <class... T>
std::array<TensorRef, sizeof...(T)> Save(const T&... tensors) {
  return {TensorRef(tensors)...};
}

void AppendToTape(const internal::NewRecord& r, Tensor& y);

namespace internal {

template <class F, size_t N, class... Before>
auto CallWithSaved(F& f, const Tensor* saved, Before&... before) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return f(before..., saved[I]...);
  }
  (std::make_index_sequence<N>());
}

struct NoComposition {};

template <size_t N, class Rule, class Composition>
struct Closure {
  Rule rule;
  [[no_unique_address]] Composition composition;

  static constexpr bool kComposed = !std::is_same_v<Composition, NoComposition>;
  static void Move(void* to, void* from) {
    new (to) Closure(std::move(*static_cast<Closure*>(from)));
  }
  static void Destroy(void* p) { static_cast<Closure*>(p)->~Closure(); }
  static void Run(void* p, GradientSink& sink, const Tensor* saved) {
    CallWithSaved<Rule, N>(static_cast<Closure*>(p)->rule, saved, sink);
  }
  static Tensor Compose(void* p, const Tensor* saved) {
    if constexpr (kComposed) {
      return CallWithSaved<Composition, N>(
          static_cast<Closure*>(p)->composition, saved);
    } else {
      return {};
    }
  }
  static constexpr ClosureType kType = {sizeof(Closure), &Move, &Destroy, &Run,
                                        kComposed ? &Compose : nullptr};
};

}  // namespace internal

// Records y, the fresh result of an operation on `inputs`, if a tape wants it.
// `rule(GradientSink&, saved...)` adds dy times the derivative to each input.
// A primitive's rule is written with operations, which gives every order of
// derivative; a fused operation's rule runs kernels, and
// `composition(saved...)` computes y again from primitives.
template <size_t N, class Rule, class Composition = internal::NoComposition>
void Record(const char* op, Tensor& y, absl::Span<const TensorRef> inputs,
            const std::array<TensorRef, N>& saved, Rule rule,
            Composition composition = {}) {
  if (!Tape::Current()) return;
  using Closure = internal::Closure<N, Rule, Composition>;
  Closure closure{std::move(rule), std::move(composition)};
  AppendToTape({op, inputs, saved, &Closure::kType, &closure}, y);
}
template <size_t N, class Rule, class Composition = internal::NoComposition>
void Record(const char* op, Tensor& y, std::initializer_list<TensorRef> inputs,
            const std::array<TensorRef, N>& saved, Rule rule,
            Composition composition = {}) {
  Record(op, y, absl::MakeConstSpan(inputs.begin(), inputs.size()), saved,
         std::move(rule), std::move(composition));
}

// Names the records made while it lives after a layer; nests. Costs nothing
// without a tape. The path must outlive the tape or belong to `owner`.
class Scope {
 public:
  explicit Scope(const std::string& path, ParameterOwner* owner = nullptr);
  ~Scope() {
    if (tape_) tape_->scope_ = outer_;
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Tape* tape_;
  const std::string* outer_ = nullptr;
};

// One run of a checkpointed function: nothing is recorded, but everything that
// it reads is noted. For Checkpoint below.
class CheckpointRun {
 public:
  explicit CheckpointRun(Tape& tape);
  ~CheckpointRun();
  CheckpointRun(const CheckpointRun&) = delete;
  CheckpointRun& operator=(const CheckpointRun&) = delete;
  // Ends the run and records y as a function of what was read.
  Tensor Finish(const Tensor& y, const internal::ClosureType* type,
                void* closure);
  uint64_t offset() const { return offset_; }

  // While it lives, the tape's generator repeats what it drew from `offset`.
  class Rewind {
   public:
    explicit Rewind(uint64_t offset);
    ~Rewind();

   private:
    Generator* generator_;
    uint64_t offset_;
  };

 private:
  friend class Tape;
  void Note(const Tensor& x);
  void End();

  Tape* tape_;
  uint64_t offset_ = 0;
  internal::PoolVector<Tensor> reads_;
};

// f(xs...), without keeping what it computes: backward runs f again, with the
// same random numbers, and gives the same bits. f may read parameters and
// other tensors too; what it holds by reference must outlive the tape.
// Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost".
template <class F, class... X>
Tensor Checkpoint(F f, const X&... xs) {
  Tape* tape = Tape::Current();
  if (!tape || !tape->recording()) return f(xs...);
  CheckpointRun run(*tape);
  Tensor y = f(xs...);
  auto again = [f = std::move(f), args = std::make_tuple(xs...),
                offset = run.offset()] {
    CheckpointRun::Rewind rewind(offset);
    return std::apply(f, args);
  };
  struct Closure {
    decltype(again) run;
    static void Move(void* to, void* from) {
      new (to) Closure(std::move(*static_cast<Closure*>(from)));
    }
    static void Destroy(void* p) { static_cast<Closure*>(p)->~Closure(); }
    static Tensor Compose(void* p, const Tensor*) {
      return static_cast<Closure*>(p)->run();
    }
  };
  static constexpr internal::ClosureType kType = {
      sizeof(Closure), &Closure::Move, &Closure::Destroy, nullptr,
      &Closure::Compose};
  Closure closure{std::move(again)};
  return run.Finish(y, &kType, &closure);
}

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_TAPE_H_
