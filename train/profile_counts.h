// How much the operations compute and move, from the shapes of their operands.
#ifndef WENGERT_TRAIN_PROFILE_COUNTS_H_
#define WENGERT_TRAIN_PROFILE_COUNTS_H_

#include "autograd/tape_observer.h"

namespace wengert::train::internal {

// Additions and multiplications of a product or of attention, 0 for any other
// operation. Attention is counted as if every query attended to every key.
double Flops(const OperationEvent& e);

// Those that a fused rule does in its kernels: the gradients that are wanted,
// and for attention the scores once more. 0 for rules written with operations,
// which are counted one by one.
double Flops(const RuleEvent& e);

// Of operands read and results written, each once: nothing for a view, and of
// an embedding's table the rows that are looked up.
double Bytes(const OperationEvent& e);
// Of dy and what is saved, read, and the wanted gradients, written.
double Bytes(const RuleEvent& e);

}  // namespace wengert::train::internal

#endif  // WENGERT_TRAIN_PROFILE_COUNTS_H_
