// What the tests of optimizers and clipping share.
#ifndef WENGERT_TRAIN_OPTIMIZER_TESTLIB_H_
#define WENGERT_TRAIN_OPTIMIZER_TESTLIB_H_

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "autograd/ops.h"
#include "autograd/random.h"
#include "autograd/tape.h"
#include "autograd/tensor.h"

namespace wengert::train {

// A parameter's gradient becomes g, or grows by it.
inline void AddGradient(const Tensor& parameter, const Tensor& g) {
  Tape tape;
  tape.Backward(parameter, g.To(parameter.dtype()));
}
inline void AddGradient(const Tensor& parameter, std::vector<double> g) {
  AddGradient(parameter, Tensor::From(parameter.shape(), g));
}

// Uniform in [-1, 1), other numbers for each stream.
inline Tensor RandomGradient(const Tensor& w, uint64_t stream) {
  Tensor g = Tensor::Empty(w.shape(), DType::kFloat32);
  FillUniform(11, stream, -1, 1, w.size(), g.mutable_data<float>());
  return g;
}

// A pass that gathers a gradient of 2, then throws half-way.
inline void ThrowInBackward(const Tensor& parameter) {
  Tape tape;
  const Tensor x = parameter * 3;
  tape.OnGradient(
      x, [](const Tensor&) -> Tensor { throw std::runtime_error("half-way"); });
  try {
    tape.Backward(Sum(x + parameter * 2));
  } catch (const std::runtime_error&) {
  }
}

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_OPTIMIZER_TESTLIB_H_
