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
#include <functional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "autograd/tensor.h"
#include "nn/store_state.h"

namespace wengert::nn {

// A layer's path. A layer keeps one, opens it in its operator() so that
// messages can name the layer, `const auto scope = path_.Open();`, and passes
// its result through it: `return path_.Out(y);`.
class LayerPath {
 public:
  LayerPath() = default;
  Scope Open() const;
  // y, or what the hooks on this layer (forward_hook.h) make of it.
  Tensor Out(Tensor y) const {
    if (!store_ || store_->hooks.empty()) return y;
    return Hooked(std::move(y));
  }

 private:
  friend class Params;
  LayerPath(OwnerHandle owner, const std::string* path)
      : owner_(std::move(owner)),
        store_(static_cast<internal::StoreState*>(owner_.get())),
        path_(path) {}
  Tensor Hooked(Tensor y) const;  // forward_hook.cc

  OwnerHandle owner_;  // keeps the text of the path
  internal::StoreState* store_ = nullptr;
  const std::string* path_ = nullptr;  // "" for the root
};

// Writes the first values of a parameter, from the random stream `key`;
// nn/init.h has the usual ones. Throws Error when the shape is none that it
// knows.
using Initializer = std::function<void(uint64_t key, Tensor& value)>;

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
  // As `init` says; its stream is keyed as theirs.
  Tensor Make(const std::string& name, const Shape& shape,
              const Initializer& init) const;
  // A second name for a parameter of the same store: one entry, whose first
  // name is canonical. Returns the parameter.
  Tensor Tied(const std::string& name, const Tensor& parameter) const;

  DType dtype() const;
  const std::string& path() const { return path_; }  // "layers.0.mlp"
  LayerPath layer_path() const;

 private:
  friend class ParameterStore;
  Params(OwnerHandle owner, std::string path)
      : owner_(std::move(owner)), path_(std::move(path)) {}
  internal::StoreState& state(const char* op) const;
  std::string FullName(const char* op, const std::string& name) const;
  // `fill` writes the values, from the random stream `key`.
  Tensor Create(
      const char* op, const std::string& name, const Shape& shape,
      absl::FunctionRef<void(uint64_t key, Tensor& value)> fill) const;

  OwnerHandle owner_;
  std::string path_;
};

class ParameterStore {
 public:
  // Throws Error unless dtype is float32 or float64.
  explicit ParameterStore(DType dtype = DType::kFloat32, uint64_t seed = 0);
  // Tapes that borrowed a parameter refuse to go backward after this.
  ~ParameterStore() { End(); }
  ParameterStore(ParameterStore&&) = default;
  ParameterStore& operator=(ParameterStore&& o) noexcept {
    End();
    owner_ = std::move(o.owner_);
    return *this;
  }

  Params root() {
    state();
    return Params(owner_, "");
  }

  // In the order of their making; a tied one stands once.
  absl::Span<Parameter* const> parameters() const { return state().parameters; }
  int64_t size() const { return static_cast<int64_t>(parameters().size()); }
  int64_t num_elements() const;
  // Accepts tied names; throws Error, with the nearest name, when there is
  // none.
  Tensor Find(const std::string& name) const;

  // Writes new values into a parameter, from the stream that its (canonical)
  // name was made with. Nothing changes when this throws Error.
  void Initialize(const std::string& name, const Initializer& init);

  // Drops the gradients that were gathered.
  void ZeroGrad();

  // Freezes every parameter that has a name which `pattern` matches, in which *
  // stands for any text ("encoder.*"), and drops its gradient. From then on
  // tapes take it for a constant: no gradient is computed for it, so that no
  // optimizer updates or decays it and no norm counts it. Values may still be
  // loaded. A clone is frozen alike; files do not keep it. Throws Error, with
  // the nearest name, where nothing matches.
  void Freeze(const std::string& pattern);
  void Unfreeze(const std::string& pattern);

  // A store of its own with the same seed, names, ties and values, and without
  // gradients. A layer that is built on it takes up the parameters that carry
  // its names, with their values.
  ParameterStore Clone() const;
  // Takes over the values. Throws Error, which lists the differences, unless
  // both have the same dtype, names, ties and shapes; then nothing is changed.
  void CopyFrom(const ParameterStore& other);

  // A table for people: path, shape and count of every parameter, which are
  // frozen, and the total count.
  std::string Table() const;

  DType dtype() const { return state().dtype; }
  uint64_t seed() const { return state().seed; }
  // The flat memory, for passes over all parameters.
  absl::Span<const Segment> segments() const { return state().segments; }
  // For an optimizer, which may outlive the store and so holds a reference.
  // Throws Error when this was moved from.
  internal::StoreState& state() const {
    if (!owner_.get()) ThrowMoved();
    return *static_cast<internal::StoreState*>(owner_.get());
  }

 private:
  [[noreturn]] static void ThrowMoved();
  explicit ParameterStore(OwnerHandle owner) : owner_(std::move(owner)) {}
  void End();
  void SetFrozen(const char* op, const std::string& pattern, bool frozen);

  OwnerHandle owner_;  // null once moved from
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_PARAMETER_STORE_H_
