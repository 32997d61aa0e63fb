// Layers one after the other.
#ifndef WENGERT_NN_SEQUENTIAL_H_
#define WENGERT_NN_SEQUENTIAL_H_

#include <cstddef>
#include <tuple>
#include <utility>

#include "autograd/tensor.h"

namespace wengert::nn {

// y = f_n(...(f_2(f_1(x)))) of any callables, layers and operations alike:
//
//   const Sequential net(Linear(p.Sub(0), 2, 16), Relu,
//                        Linear(p.Sub(2), 16, 1));
//
// Each has the type it was made with, so that calls are direct. The numbers are
// those that PyTorch's nn.Sequential gives.
template <class... Layers>
class Sequential {
 public:
  explicit Sequential(Layers... layers) : layers_(std::move(layers)...) {}

  Tensor operator()(Tensor x) const {
    std::apply([&](const auto&... f) { ((x = f(x)), ...); }, layers_);
    return x;
  }

  template <size_t i>
  const auto& get() const {
    return std::get<i>(layers_);
  }

 private:
  std::tuple<Layers...> layers_;
};

}  // namespace wengert::nn

#endif  // WENGERT_NN_SEQUENTIAL_H_
