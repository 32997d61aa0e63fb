// Elementwise operations, which are bound by memory.
#include "autograd/ops.h"
#include "benchmark/benchmark.h"
#include "benchmarks/ops_benchmark.h"

namespace wengert::benchmarks {
namespace {

// A small array, and the hidden values of the two GPTs.
constexpr int64_t kSizes[] = {4096, 768 * 512, 1024 * 1536};

// Forward reads x and writes y. Backward writes dx and reads dy and, unless the
// slope is a constant, x or y: `backward` counts these arrays.
template <class F>
void RegisterUnary(const char* name, F f, double lo = -2, double hi = 2,
                   int backward = 3) {
  for (int64_t n : kSizes) {
    const double bytes = 4. * static_cast<double>(n);
    RegisterOp(Name(name, n), {.bytes = 2 * bytes}, {.bytes = backward * bytes},
               [=](Inputs& inputs) {
                 return [f, x = inputs.Value({n}, lo, hi)] { return f(x); };
               });
  }
}

// Likewise with two operands and two gradients; that of a sum moves nothing.
template <class F>
void RegisterBinary(const char* name, F f, int backward) {
  for (int64_t n : kSizes) {
    const double bytes = 4. * static_cast<double>(n);
    RegisterOp(Name(name, n), {.bytes = 3 * bytes}, {.bytes = backward * bytes},
               [=](Inputs& inputs) {
                 return [f, x = inputs.Value({n}, 1, 2),
                         y = inputs.Value({n}, 1, 2)] { return f(x, y); };
               });
  }
}

// Rows plus one row, as positions are added to words.
void RegisterBroadcast(int64_t batch, int64_t rows, int64_t width) {
  const double bytes = 4. * static_cast<double>(batch * rows * width);
  const double row = 4. * static_cast<double>(rows * width);
  RegisterOp(Name("BM_AddBroadcast", batch, rows, width),
             {.bytes = 2 * bytes + row}, {.bytes = bytes + row},
             [=](Inputs& inputs) {
               return [x = inputs.Value({batch, rows, width}),
                       y = inputs.Value({rows, width})] { return x + y; };
             });
}

}  // namespace

void RegisterElementwise() {
  for (int64_t n : kSizes) {
    RegisterKernel(Name("BM_Copy", n), {.bytes = 8. * static_cast<double>(n)},
                   [=](Inputs& inputs) {
                     return [x = inputs.Value({n})] {
                       benchmark::DoNotOptimize(x.Clone().impl());
                     };
                   });
  }
  RegisterUnary("BM_Exp", Exp);
  RegisterUnary("BM_Log", Log, 0.5, 2);
  RegisterUnary("BM_Tanh", Tanh);
  RegisterUnary("BM_Sigmoid", Sigmoid);
  RegisterUnary("BM_Erf", Erf);
  RegisterUnary("BM_Erfc", Erfc);
  RegisterUnary("BM_Square", Square);
  RegisterUnary("BM_Sqrt", Sqrt, 0.5, 2);
  RegisterUnary("BM_Rsqrt", Rsqrt, 0.5, 2);
  RegisterUnary("BM_Relu", Relu);
  RegisterUnary("BM_Gelu", Gelu);
  RegisterUnary("BM_GeluTanh", GeluTanh);
  RegisterUnary("BM_Silu", Silu);
  RegisterUnary(
      "BM_Affine", [](const Tensor& x) { return Affine(x, 2, 1); }, -2, 2, 2);
  RegisterUnary(
      "BM_Pow", [](const Tensor& x) { return Pow(x, 3); }, 0.5, 2);
  RegisterBinary("BM_Add", Add, 0);
  RegisterBinary("BM_Sub", Sub, 2);
  RegisterBinary("BM_Mul", Mul, 5);
  RegisterBinary("BM_Div", Div, 5);
  RegisterBinary("BM_Maximum", Maximum, 5);
  RegisterBroadcast(12, 64, 128);
  RegisterBroadcast(4, 256, 384);
}

}  // namespace wengert::benchmarks
