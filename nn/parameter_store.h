// ParameterStore owns a model's trained tensors: names, values, gradients.
// Params is a path into it, handed to the constructors of layers.
//
//   nn::ParameterStore store(DType::kFloat32, /*seed=*/1);
//   Linear up(store.root().Sub("mlp").Sub("up"), 12, 48);   // "mlp.up.weight"
//
// Values and gradients lie in large segments that never move, each parameter
// 64-byte aligned with zeros in the gaps, so that an optimizer step, a norm and
// a checkpoint are passes over contiguous memory. Handles keep the segments
// alive after the store.
#ifndef WENGERT_NN_PARAMETER_STORE_H_
#define WENGERT_NN_PARAMETER_STORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "autograd/tensor.h"

namespace wengert::nn {

class ParameterStore;

namespace internal {
struct StoreState;  // the ParameterOwner behind a store
}

// A layer's path. A layer keeps one and opens it in its operator(), so that
// messages can name the layer: `const auto scope = path_.Open();`.
class LayerPath {
 public:
  LayerPath() = default;
  Scope Open() const;

 private:
  friend class Params;
  LayerPath(OwnerHandle owner, const std::string* path)
      : owner_(std::move(owner)), path_(path) {}

  OwnerHandle owner_;  // keeps the text of the path
  const std::string* path_ = nullptr;
};

// Creates parameters under a path. Each starts from a random stream keyed by
// the store's seed and its full name, so that adding one changes no other.
// A name that exists already throws Error, unless the store is a clone whose
// parameter of that name and shape has not been taken up yet: then that one is
// returned with its values.
class Params {
 public:
  Params Sub(const std::string& name) const;
  Params Sub(int64_t index) const;  // "layers.0"
  // Uniform in [-bound, bound).
  Tensor Uniform(const std::string& name, const Shape& shape,
                 double bound) const;
  Tensor Normal(const std::string& name, const Shape& shape, double stddev,
                double mean = 0) const;
  Tensor Constant(const std::string& name, const Shape& shape,
                  double value) const;
  Tensor Zeros(const std::string& name, const Shape& shape) const {
    return Constant(name, shape, 0);
  }
  Tensor Ones(const std::string& name, const Shape& shape) const {
    return Constant(name, shape, 1);
  }
  // A second name for a parameter of the same store: one entry, whose first
  // name is canonical.
  Tensor Tied(const std::string& name, const Tensor& parameter) const;

  DType dtype() const;
  const std::string& path() const { return path_; }  // "layers.0.mlp"
  LayerPath layer_path() const;

 private:
  friend class ParameterStore;
  Params(OwnerHandle owner, std::string path)
      : owner_(std::move(owner)), path_(std::move(path)) {}
  internal::StoreState& state() const;

  OwnerHandle owner_;
  std::string path_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_PARAMETER_STORE_H_
