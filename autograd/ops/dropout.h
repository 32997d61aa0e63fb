// Dropout with given random numbers, for operations that drop inside.
#ifndef WENGERT_AUTOGRAD_OPS_DROPOUT_H_
#define WENGERT_AUTOGRAD_OPS_DROPOUT_H_

#include <cstdint>

#include "autograd/tensor.h"

namespace wengert {

// What a dropout draws: nothing (p = 0), or a stream of its own.
struct DropoutDraw {
  double p = 0;
  uint64_t seed = 0, offset = 0;
};

// What the current tape says of dropout with probability p: drawn from its
// generator when it trains, off otherwise; an error where it has none.
DropoutDraw DrawDropout(const char* op, double p);

// x with the elements dropped that `draw` says.
Tensor DropoutWith(const Tensor& x, const DropoutDraw& draw);

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_OPS_DROPOUT_H_
