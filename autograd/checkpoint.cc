// Activation checkpointing: the first run of a function, which notes what it
// reads, and the random numbers of the second. tape_backward.cc runs it again.
#include "autograd/error.h"
#include "autograd/tape.h"

namespace wengert {

CheckpointRun::CheckpointRun(Tape& tape) : tape_(&tape) {
  if (tape.generator_) offset_ = tape.generator_->offset();
  ++tape.paused_;
  tape.checkpoint_ = this;
}

CheckpointRun::~CheckpointRun() { End(); }

void CheckpointRun::End() {
  if (!tape_) return;
  --tape_->paused_;
  tape_->checkpoint_ = nullptr;
  tape_ = nullptr;
}

void CheckpointRun::Note(const Tensor& x) {
  // Under a Pause of its own the function reads constants.
  if (tape_->paused_ > 1 || !tape_->Tracks(x)) return;
  for (const Tensor& seen : reads_) {
    if (seen.impl() == x.impl()) return;
  }
  reads_.push_back(x);
}

Tensor CheckpointRun::Finish(const Tensor& y, const internal::ClosureType* type,
                             void* closure) {
  if (!y.defined()) {
    throw Error("Checkpoint: the function returned an undefined tensor");
  }
  if (tape_->Tracks(y)) Note(y);
  End();
  const internal::PoolVector<TensorRef> reads(reads_.begin(), reads_.end());
  Tensor result = y.impl()->tape != 0 || y.impl()->parameter ? y.Detach() : y;
  AppendToTape({"Checkpoint", reads, reads, type, closure}, result);
  return result;
}

CheckpointRun::Rewind::Rewind(uint64_t offset)
    : generator_(Tape::Current()->generator()) {
  if (!generator_) return;
  offset_ = generator_->offset();
  generator_->set_offset(offset);
}

CheckpointRun::Rewind::~Rewind() {
  if (generator_) generator_->set_offset(offset_);
}

}  // namespace wengert
