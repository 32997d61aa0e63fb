// What a tape tells whoever watches it: each operation with its values, and
// each rule of a backward pass. For profiles, and for pictures of what goes on
// in a layer.
//
//   tape.set_observer(&observer);
//
// Events come on the tape's thread, in the order in which things happen, and
// not from inside a ParallelFor. They lend what they name. An observer runs no
// operations on the tape.
#ifndef WENGERT_AUTOGRAD_TAPE_OBSERVER_H_
#define WENGERT_AUTOGRAD_TAPE_OBSERVER_H_

#include <string>

#include "absl/types/span.h"
#include "autograd/shape.h"
#include "autograd/tape_records.h"
#include "autograd/tensor.h"

namespace wengert {

// An operation that has just computed `output`.
struct OperationEvent {
  const char* op;
  const std::string* layer;            // the path of the open scope, or null
  absl::Span<const TensorRef> inputs;  // some may be undefined
  const Tensor& output;
};

// A rule that is about to run. Where `composed`, the tape runs the composition
// or the checkpointed function again in its stead, and sweeps what that
// records.
struct RuleEvent {
  const char* op;
  const std::string* layer;
  const Tensor& dy;
  absl::Span<const Tensor> saved;
  // The shape of each input whose gradient is wanted, null for the others.
  absl::Span<const Shape* const> wanted;
  bool composed;
};

class TapeObserver {
 public:
  virtual ~TapeObserver() = default;

  // A tape reports here from now on.
  virtual void OnStart() {}
  // Every operation but those under a Tape::Pause, which are steps of another
  // one: also one on constants, of a checkpointed function, or of a rule,
  // between OnRuleBegin and OnRuleEnd. An exception is passed on to who called
  // the operation, which is then not recorded.
  virtual void OnOperation(const OperationEvent&) {}
  // "Backward" or "Gradient". Ends come after an exception too.
  virtual void OnPassBegin(const char* /*name*/) {}
  virtual void OnPassEnd() noexcept {}
  // Rules nest where one is composed.
  virtual void OnRuleBegin(const RuleEvent&) {}
  virtual void OnRuleEnd() noexcept {}
};

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_TAPE_OBSERVER_H_
