// Elementwise operations, which are bound by memory.
#include "autograd/ops.h"
#include "benchmark/benchmark.h"
#include "benchmarks/ops_benchmark.h"

namespace wengert::benchmarks {
namespace {

// A small array, and those of kMatrices.
constexpr int64_t kSizes[] = {4096, 768 * 512, 1024 * 1536, 4096 * 4096};

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

// An operation whose gradient is 0 or that has none: forward alone, which reads
// `read` bytes and writes `written` ones for each element.
template <class F>
void RegisterForward(const char* name, F f, int read, int written) {
  for (int64_t n : kSizes) {
    const double bytes = static_cast<double>((read + written) * n);
    RegisterKernel(Name(name, n, "Forward"), {.bytes = bytes},
                   [=](Inputs& inputs) {
                     return [f, x = inputs.Value({n}), y = inputs.Value({n})] {
                       benchmark::DoNotOptimize(f(x, y).impl());
                     };
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

// What takes two operands and writes bools, or bools and writes bools.
void RegisterBools() {
  using Two = Tensor (*)(const Tensor&, const Tensor&);
  const std::pair<const char*, Two> comparisons[] = {
      {"BM_Equal", Equal},     {"BM_NotEqual", NotEqual},
      {"BM_Less", Less},       {"BM_LessEqual", LessEqual},
      {"BM_Greater", Greater}, {"BM_GreaterEqual", GreaterEqual}};
  for (const auto& [name, f] : comparisons) RegisterForward(name, f, 8, 1);
  const auto one = [](auto f) {
    return [f](const Tensor& x, const Tensor&) { return f(x); };
  };
  RegisterForward("BM_IsNan", one(IsNan), 4, 1);
  RegisterForward("BM_IsInf", one(IsInf), 4, 1);
  RegisterForward("BM_IsFinite", one(IsFinite), 4, 1);
  const std::pair<const char*, Two> logic[] = {{"BM_LogicalAnd", LogicalAnd},
                                               {"BM_LogicalOr", LogicalOr},
                                               {"BM_LogicalXor", LogicalXor}};
  for (int64_t n : kSizes) {
    const double bytes = static_cast<double>(n);
    for (const auto& [name, f] : logic) {
      RegisterKernel(Name(name, n, "Forward"), {.bytes = 3 * bytes},
                     [n, f = f](Inputs& inputs) {
                       const Tensor x = inputs.Value({n});
                       const Tensor a = Less(x, -x), b = Less(x, x * x);
                       return [f, a, b] {
                         benchmark::DoNotOptimize(f(a, b).impl());
                       };
                     });
    }
    RegisterKernel(Name("BM_LogicalNot", n, "Forward"), {.bytes = 2 * bytes},
                   [n](Inputs& inputs) {
                     const Tensor x = inputs.Value({n});
                     return [a = Less(x, -x)] {
                       benchmark::DoNotOptimize(LogicalNot(a).impl());
                     };
                   });
  }
}

// Functions of one argument with a bend or a parameter, and steps.
void RegisterPiecewise() {
  RegisterUnary("BM_Abs", Abs);
  RegisterUnary("BM_Clamp", [](const Tensor& x) { return Clamp(x, -1, 1); });
  RegisterUnary("BM_Softplus", [](const Tensor& x) { return Softplus(x); });
  RegisterUnary("BM_LogSigmoid", LogSigmoid);
  RegisterUnary("BM_LeakyRelu", [](const Tensor& x) { return LeakyRelu(x); });
  RegisterUnary("BM_Elu", [](const Tensor& x) { return Elu(x); });
  const auto one = [](auto f) {
    return [f](const Tensor& x, const Tensor&) { return f(x); };
  };
  RegisterForward("BM_Sign", one(Sign), 4, 4);
  RegisterForward("BM_Floor", one(Floor), 4, 4);
  RegisterForward("BM_Ceil", one(Ceil), 4, 4);
  RegisterForward("BM_Trunc", one(Trunc), 4, 4);
  RegisterForward("BM_Round", one(Round), 4, 4);
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
  RegisterUnary("BM_Expm1", Expm1);
  RegisterUnary("BM_Log1p", Log1p, -0.5, 2);
  RegisterUnary("BM_Sin", Sin, -9, 9);
  RegisterUnary("BM_Cos", Cos, -9, 9);
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
  RegisterBinary("BM_Minimum", Minimum, 5);
  RegisterBinary(
      "BM_PowTensor",
      [](const Tensor& x, const Tensor& y) { return Pow(x, y); }, 6);
  RegisterBinary("BM_Atan2", Atan2, 5);
  RegisterBinary(
      "BM_Lerp",
      [](const Tensor& x, const Tensor& y) { return Lerp(x, y, 0.3); }, 3);
  RegisterPiecewise();
  RegisterBools();
  RegisterBroadcast(12, 64, 128);
  RegisterBroadcast(4, 256, 384);
}

}  // namespace wengert::benchmarks
