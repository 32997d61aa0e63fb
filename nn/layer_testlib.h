// What the tests of layers share: reference numbers that PyTorch made, and the
// check of a layer's gradients by its inputs and all its parameters.
#ifndef WENGERT_NN_LAYER_TESTLIB_H_
#define WENGERT_NN_LAYER_TESTLIB_H_

#include <map>
#include <string>
#include <vector>

#include "autograd/gradcheck.h"
#include "autograd/tensor.h"
#include "autograd/tensor_testlib.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

using TensorMap = std::map<std::string, Tensor>;

// nn/testdata/<file>, whose form its make_reference.py describes.
TensorMap ReadReference(const std::string& file);
// The tensors whose names begin with `prefix`, named without it.
TensorMap Under(const TensorMap& all, const std::string& prefix);
// x > 1/2, for masks.
Tensor ToBool(const Tensor& x);

// Writes values into the parameters of the same names. Fails unless both have
// the same names and shapes.
void SetParameters(ParameterStore& store, const TensorMap& values);

// Fails unless shapes are equal and each element differs by no more than
// tolerance * max(1, the largest |expected|).
void ExpectNear(const Tensor& actual, const Tensor& expected, double tolerance,
                const std::string& what);
// float64: 1e-12; float32: 3e-6.
double Tolerance(DType dtype);

// Fails unless layer(inputs) gives the reference's "out" and, for its "dy", the
// reference's gradient of every input and every parameter. Inputs are found by
// name.
void ExpectMatchesReference(const ParameterStore& store,
                            const TensorMap& reference,
                            const std::vector<std::string>& inputs,
                            const GradCheckFunction& layer);

// GradCheck to the second order by the inputs and by every parameter.
GradCheckReport CheckLayer(const ParameterStore& store,
                           std::vector<Tensor> inputs,
                           const GradCheckFunction& layer,
                           GradCheckOptions options = {});

// Normal numbers.
Tensor RandomTensor(const Shape& shape, uint64_t seed,
                    DType dtype = DType::kFloat64);
// Adds normal numbers to every parameter: biases and norms start at constants,
// which would hide faults.
void Randomise(ParameterStore& store);

}  // namespace wengert::nn

#endif  // WENGERT_NN_LAYER_TESTLIB_H_
