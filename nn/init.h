// Initialisers: how a parameter starts.
//
//   Tensor w = p.Make("weight", {out, in}, init::XavierUniform());
//   store.Initialize("head.weight", init::Normal(0.02));   // again, later
//
// The values depend on the seed of the store and the parameter's full name
// alone, so both lines give the same values for one name. Fans are PyTorch's: a
// weight [out, in, places...] has fan in = in * places and fan out = out *
// places; a shape of fewer than two dimensions throws Error.
#ifndef WENGERT_NN_INIT_H_
#define WENGERT_NN_INIT_H_

#include <cstdint>
#include <numbers>

#include "nn/parameter_store.h"

namespace wengert::nn::init {

Initializer Constant(double value);
// Uniform in [lo, hi).
Initializer Uniform(double lo, double hi);
Initializer Normal(double stddev, double mean = 0);
// Normal, drawn from what lies within `bound` deviations of the mean (PyTorch's
// a and b are values, not deviations); bound >= 0.01.
Initializer TruncatedNormal(double stddev, double mean = 0, double bound = 2);

// Glorot, Bengio 2010: variance gain^2 2 / (fan in + fan out).
Initializer XavierUniform(double gain = 1);
Initializer XavierNormal(double gain = 1);

enum class Fan { kIn, kOut };
struct KaimingOptions {
  Fan fan = Fan::kIn;  // kIn keeps variances forward, kOut backward
  double gain =
      std::numbers::sqrt2;  // of ReLU; sqrt(2 / (1 + slope^2)) if leaky
};
// He et al. 2015: variance gain^2 / fan.
Initializer KaimingUniform(KaimingOptions options = {});
Initializer KaimingNormal(KaimingOptions options = {});

// A random orthogonal matrix times gain (Saxe et al. 2014): of the parameter as
// a matrix [dim 0, rest] the rows are orthonormal, or the columns where there
// are fewer of them.
Initializer Orthogonal(double gain = 1);

// GPT-2's for the maps that end in a residual sum: normal with deviation
// stddev / sqrt(2 n_layers), as a layer adds twice (Radford et al. 2019).
Initializer ScaledResidual(int64_t n_layers, double stddev = 0.02);

}  // namespace wengert::nn::init

#endif  // WENGERT_NN_INIT_H_
