// An operation of one's own, outside the library and with the same rights: a
// gate that lets b pass where a is positive, max(0, a)² b (So et al. 2021
// square the ReLU, Shazeer 2020 multiplies by a second branch).
#ifndef WENGERT_EXAMPLES_CUSTOM_OP_SQUARED_RELU_GATE_H_
#define WENGERT_EXAMPLES_CUSTOM_OP_SQUARED_RELU_GATE_H_

#include "autograd/ops.h"

// max(0, a)² b, elementwise, of two float arrays of one shape and dtype; throws
// wengert::Error for others.
wengert::Tensor SquaredReluGate(const wengert::Tensor& a,
                                const wengert::Tensor& b);
// The same value from operations that exist: the oracle of the tests, and what
// runs when somebody differentiates the gradient.
wengert::Tensor SquaredReluGateComposed(const wengert::Tensor& a,
                                        const wengert::Tensor& b);

#endif  // WENGERT_EXAMPLES_CUSTOM_OP_SQUARED_RELU_GATE_H_
