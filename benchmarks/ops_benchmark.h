// What the benchmarks of operations share: how they are registered, and the
// counters that set a time beside the machine's limits.
#ifndef WENGERT_BENCHMARKS_OPS_BENCHMARK_H_
#define WENGERT_BENCHMARKS_OPS_BENCHMARK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "autograd/tensor.h"
#include "nn/parameter_store.h"

namespace wengert::benchmarks {

// What one call does; 0 where it is of no interest. A benchmark has counters of
// its median call: median_us, GFLOP/s and its part of the FMA peak, GB/s and
// `copies`, how many times as long it takes as a plain copy of as many bytes.
struct Work {
  double flops = 0;
  double bytes = 0;     // of its operands and results, each counted once
  double elements = 0;  // to report the time of one
};

// Makes the inputs of one benchmark, uniform in [lo, hi).
class Inputs {
 public:
  // A parameter.
  Tensor Weight(const Shape& shape);
  // What another operation would have made: its gradient is wanted, but it is
  // no parameter, where gradients are copied to.
  Tensor Value(const Shape& shape, double lo = -1, double hi = 1);

  nn::ParameterStore& store() { return store_; }
  const std::vector<Tensor>& values() const { return values_; }

 private:
  nn::ParameterStore store_;
  std::vector<Tensor> values_;
};

struct OpOptions {
  bool training = false;  // forward needs a training tape
};

// Registers `name`/Forward, f() without a tape, and `name`/Backward, the pass
// alone from f() to its inputs; make(inputs) returns f.
void RegisterOp(const std::string& name, const Work& forward,
                const Work& backward,
                std::function<std::function<Tensor()>(Inputs&)> make,
                OpOptions options = {});

// Registers the function that make(inputs) returns.
void RegisterKernel(const std::string& name, const Work& work,
                    std::function<std::function<void()>(Inputs&)> make);

// Sizes of hidden values of the two GPTs, which the caches hold, and one that
// only memory does.
inline const Shape kMatrices[] = {{768, 512}, {1024, 1536}, {4096, 4096}};

// Integers in [0, n).
Tensor RandomIds(const Shape& shape, int64_t n);

// The numbers of a name, as in "BM_Gemm/512/384/384".
template <class... Parts>
std::string Name(const Parts&... parts) {
  std::string name;
  const auto add = [&](const auto& part) {
    if (!name.empty()) name += '/';
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(part)>>) {
      name += std::to_string(part);
    } else {
      name += part;
    }
  };
  (add(parts), ...);
  return name;
}

// Each file's own.
void RegisterFused();
void RegisterGemm();
void RegisterMoving();
void RegisterElementwise();
void RegisterOptimizers();
void RegisterReduce();
void RegisterTape();

}  // namespace wengert::benchmarks

#endif  // WENGERT_BENCHMARKS_OPS_BENCHMARK_H_
