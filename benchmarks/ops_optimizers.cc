// The kernels of the optimizers, at the three models' numbers of parameters.
#include "autograd/kernels/optimizer.h"
#include "benchmarks/ops_benchmark.h"

namespace wengert::benchmarks {
namespace {

// step(n, gradient, values, m, v). `streams` counts what it reads and writes.
template <class Step>
void Register(const char* name, int64_t n, int streams, Step step) {
  const auto elements = static_cast<double>(n);
  RegisterKernel(
      Name(name, n), {.bytes = 4. * streams * elements, .elements = elements},
      [=](Inputs& inputs) {
        return [=, g = inputs.Value({n}), w = inputs.Value({n}),
                m = Tensor::Zeros({n}), v = Tensor::Zeros({n})]() mutable {
          step(n, g.data<float>(), w.mutable_data<float>(),
               m.mutable_data<float>(), v.mutable_data<float>());
        };
      });
}

}  // namespace

void RegisterOptimizers() {
  const kernels::AdamFactors adam = {.step_size = 1e-3,
                                     .beta1 = 0.9,
                                     .beta2 = 0.999,
                                     .root_scale = 1,
                                     .eps = 1e-8};
  kernels::AdamFactors adam_w = adam;
  adam_w.keep = 1 - 1e-4;
  const kernels::SgdFactors sgd = {
      .lr = 1e-3, .momentum = 0.9, .nesterov = false, .l2 = 0};
  for (int64_t n : {2220, 809856, 10770816}) {
    Register("BM_Adam", n, 7, [adam](int64_t n, const float* g, auto... rest) {
      kernels::AdamStep<float>(n, adam, g, rest...);
    });
    Register("BM_AdamW", n, 7,
             [adam_w](int64_t n, const float* g, auto... rest) {
               kernels::AdamStep<float>(n, adam_w, g, rest...);
             });
    Register("BM_Sgd", n, 5,
             [sgd](int64_t n, const float* g, float* w, float* m, float*) {
               kernels::SgdStep<float>(n, sgd, g, w, m);
             });
  }
}

}  // namespace wengert::benchmarks
