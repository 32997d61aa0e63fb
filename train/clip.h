// Clipping of gradients, by their global norm or one by one, between Backward
// and Step.
#ifndef WENGERT_TRAIN_CLIP_H_
#define WENGERT_TRAIN_CLIP_H_

#include "nn/parameter_store.h"

namespace wengert::train {

struct ClipResult {
  double norm;   // before clipping; infinity where a gradient is not finite
  bool clipped;  // the gradients were scaled down
  bool finite;   // if not, the gradients were dropped
};

// The Euclidean norm of all gradients gathered since the last Step, as one
// vector (Pascanu, Mikolov, Bengio 2013), added up in double. Where it is
// larger than max_norm, all are multiplied by max_norm / norm.
// Where a gradient is infinite or NaN, all are dropped: the Step that follows
// changes nothing, and the next Backward begins anew.
// An infinite max_norm measures and never scales. Throws Error unless
// max_norm >= 0, and after a Backward that threw, until ZeroGrad.
ClipResult ClipGradNorm(nn::ParameterStore& store, double max_norm);

// Makes each element of the gradients gathered since the last Step at most
// max_value and at least -max_value (PyTorch's clip_grad_value_), an infinite
// one too. Where one is NaN all are dropped, as above. The norm is that before
// clipping. Throws Error unless max_value >= 0, and as ClipGradNorm does.
ClipResult ClipGradValue(nn::ParameterStore& store, double max_value);

// Multiplies all gradients gathered since the last Step: 1 / n makes the sum of
// n batches their mean. Throws Error as ClipGradNorm does.
void ScaleGradients(nn::ParameterStore& store, double factor);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_CLIP_H_
