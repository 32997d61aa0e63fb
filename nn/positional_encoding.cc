#include "nn/positional_encoding.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"

namespace wengert::nn {

Tensor SinusoidalPositions(int64_t length, int64_t d_model, DType dtype) {
  const Shape shape{length, d_model};
  std::vector<double> pe(shape.size());
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t j = 0; j < d_model; ++j) {
      const double exponent = static_cast<double>(j - j % 2) / d_model;
      const double angle = t / std::pow(10000.0, exponent);
      pe[t * d_model + j] = j % 2 ? std::cos(angle) : std::sin(angle);
    }
  }
  return Tensor::From(shape, pe).To(dtype);
}

Tensor PositionalEncoding::operator()(const Tensor& x, int64_t first) const {
  const auto scope = path_.Open();
  const int64_t max_length = positions_.dim(0), d_model = positions_.dim(1);
  if (x.rank() < 2 || x.dim(-1) != d_model || first < 0 ||
      x.dim(-2) > max_length - first) {
    throw Error(absl::StrCat("nn::PositionalEncoding: x ", Describe(x),
                             " from position ", first, "; wanted [..., T, ",
                             d_model, "] with T at most ", max_length,
                             " less the first position"));
  }
  return path_.Out(dropout_(x + Slice(positions_, 0, first, x.dim(-2))));
}

}  // namespace wengert::nn
