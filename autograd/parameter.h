// A trained tensor as the tape and the optimizers see it: where its gradient
// goes and whether there is one. nn/parameter_store.h makes them.
#ifndef WENGERT_AUTOGRAD_PARAMETER_H_
#define WENGERT_AUTOGRAD_PARAMETER_H_

#include <atomic>
#include <string>

#include "autograd/tensor.h"

namespace wengert {

// What a family of parameters shares. Counted: the store holds it, and so does
// every tape that borrowed one of its parameters.
class ParameterOwner {
 public:
  virtual ~ParameterOwner() = default;
  // Gives every parameter the memory for its gradient, once.
  virtual void AllocateGradients() = 0;

  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  std::atomic<bool> alive{true};         // false once the store has ended
  std::atomic<bool> in_backward{false};  // one backward pass at a time
  bool gradients_invalid = false;        // a backward pass threw half-way

 private:
  std::atomic<int> refs_{1};
};

struct Parameter {
  enum class Grad : uint8_t {
    kNone,   // nothing gathered
    kFresh,  // gathered, not used yet: the next write adds
    kUsed,   // an optimizer used it: readable, the next write stores
  };
  std::string name;
  ParameterOwner* owner;
  Tensor value;
  Tensor grad;
  Grad state = Grad::kNone;
};

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_PARAMETER_H_
