// A trained tensor as the tape and the optimizers see it: where its gradient
// goes and whether there is one. nn/parameter_store.h makes them.
#ifndef WENGERT_AUTOGRAD_PARAMETER_H_
#define WENGERT_AUTOGRAD_PARAMETER_H_

#include <atomic>
#include <string>
#include <utility>

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

// A counted handle on an owner.
class OwnerHandle {
 public:
  OwnerHandle() = default;
  // Takes over the reference that `owner` was made with.
  explicit OwnerHandle(ParameterOwner* owner) : owner_(owner) {}
  OwnerHandle(const OwnerHandle& o) : owner_(o.owner_) {
    if (owner_) owner_->Ref();
  }
  OwnerHandle(OwnerHandle&& o) noexcept
      : owner_(std::exchange(o.owner_, nullptr)) {}
  OwnerHandle& operator=(OwnerHandle o) noexcept {
    std::swap(owner_, o.owner_);
    return *this;
  }
  ~OwnerHandle() {
    if (owner_) owner_->Unref();
  }
  ParameterOwner* get() const { return owner_; }

 private:
  ParameterOwner* owner_ = nullptr;
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

  // Whether tapes take the value for a constant, which makes no gradient.
  bool frozen() const { return value.impl()->frozen; }
};

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_PARAMETER_H_
