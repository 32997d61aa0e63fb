// Looks at what layers make, or changes it, without changing the layers.
//
//   nn::ForwardHook hook(store, "encoder.layers.*.self_attn",
//                        [&](const std::string& path, const Tensor& y) {
//                          norms[path] = Norm(y);
//                          return Tensor();  // keeps y
//                        });
#ifndef WENGERT_NN_FORWARD_HOOK_H_
#define WENGERT_NN_FORWARD_HOOK_H_

#include <string>

#include "absl/functional/any_invocable.h"
#include "autograd/parameter.h"
#include "autograd/tensor.h"
#include "nn/parameter_store.h"

namespace wengert::nn {

// Sees the result of a layer and returns the one to go on with; an undefined
// Tensor keeps it. The root layer's path is "".
using ForwardFunction =
    absl::AnyInvocable<Tensor(const std::string& path, const Tensor& y)>;

// While it lives, calls `function` with each result of the layers whose path
// matches `pattern`, in which * stands for any text; with a tape and without
// one, on the thread that runs the layer, and again when a checkpointed
// function runs again. What it computes on a tape is recorded in the layer's
// name; several hooks run in the order of their making. The layers are those of
// `store`, built before this; its clones have none. A replacement has the
// result's shape and dtype, else Error. Hooks are made and ended while no layer
// of the store runs.
class ForwardHook {
 public:
  // Throws Error, with the nearest path, where no layer matches.
  ForwardHook(ParameterStore& store, std::string pattern,
              ForwardFunction function);
  ~ForwardHook();
  ForwardHook(const ForwardHook&) = delete;
  ForwardHook& operator=(const ForwardHook&) = delete;

 private:
  friend class LayerPath;
  Tensor Run(const std::string& path, Tensor y);

  OwnerHandle owner_;
  internal::StoreState& store_;
  const std::string pattern_;
  ForwardFunction function_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_FORWARD_HOOK_H_
