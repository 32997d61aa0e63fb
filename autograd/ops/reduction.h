// How losses are brought together.
#ifndef WENGERT_AUTOGRAD_OPS_REDUCTION_H_
#define WENGERT_AUTOGRAD_OPS_REDUCTION_H_

#include "autograd/ops.h"

namespace wengert {

// What the sum of the losses is multiplied by, where the mean divides by
// `count`: the mean of no losses is 0.
inline double ReductionFactor(Reduction reduction, double count) {
  if (reduction != Reduction::kMean) return 1;
  return count == 0 ? 0 : 1 / count;
}

// `losses` as `reduction` wants them.
inline Tensor Reduced(const Tensor& losses, Reduction reduction, double count) {
  if (reduction == Reduction::kNone) return losses;
  return Sum(losses) * ReductionFactor(reduction, count);
}

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_OPS_REDUCTION_H_
