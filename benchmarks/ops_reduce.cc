// Reductions, scans, sorting and random fills.
#include <iterator>
#include <memory>
#include <vector>

#include "autograd/ops.h"
#include "benchmark/benchmark.h"
#include "benchmarks/ops_benchmark.h"

namespace wengert::benchmarks {
namespace {

double Bytes(const Shape& shape) {
  return 4. * static_cast<double>(shape.size());
}

std::string NameOf(const char* name, const Shape& shape, const char* axis) {
  std::string full = name;
  for (int64_t d : shape.dims()) full = Name(full, d);
  return Name(full, axis);
}

// Along the first, the last and, where there is one, the middle axis. Forward
// moves `forward` arrays of x's size; backward writes dx and reads what the
// gradient needs: `backward` of them.
template <class F>
void RegisterAlong(const char* name, F f, int forward, int backward) {
  std::vector<Shape> shapes(std::begin(kMatrices), std::end(kMatrices));
  shapes.push_back({16, 64, 1536});
  for (const Shape& shape : shapes) {
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const bool middle = axis > 0 && axis < shape.rank() - 1;
      if (shape.rank() == 3 && !middle) continue;
      RegisterOp(NameOf(name, shape,
                        axis == 0 ? "First"
                        : middle  ? "Middle"
                                  : "Last"),
                 {.bytes = forward * Bytes(shape)},
                 {.bytes = backward * Bytes(shape)}, [=](Inputs& inputs) {
                   return [f, axis, x = inputs.Value(shape, 0.5, 1.5)] {
                     return f(x, axis);
                   };
                 });
    }
  }
}

// The same, and over all axes.
template <class F>
void RegisterReduction(const char* name, F f, int backward) {
  for (const Shape& shape : kMatrices) {
    RegisterOp(NameOf(name, shape, "All"), {.bytes = Bytes(shape)},
               {.bytes = backward * Bytes(shape)}, [=](Inputs& inputs) {
                 return [f, x = inputs.Value(shape, 0.5, 1.5)] {
                   return f(x, Axes());
                 };
               });
  }
  RegisterAlong(
      name, [f](const Tensor& x, int axis) { return f(x, Axes(axis)); }, 1,
      backward);
}

template <class F>
void RegisterForward(const std::string& name, const Work& work, F f) {
  RegisterKernel(name, work, [=](Inputs&) {
    return [=] { benchmark::DoNotOptimize(f().impl()); };
  });
}

// The same of a reduction without a gradient, x being `value` everywhere.
template <class F>
void RegisterDecision(const char* name, double value, DType dtype, F f) {
  const double size = dtype == DType::kBool ? 0.25 : 1;  // of a float's bytes
  for (const Shape& shape : kMatrices) {
    const auto add = [&](const char* along, const Axes& axes) {
      const Tensor x = Tensor::Full(shape, value).To(dtype);
      RegisterForward(NameOf(name, shape, along),
                      {.bytes = size * Bytes(shape)},
                      [=] { return f(x, axes); });
    };
    add("All", Axes());
    add("First", Axes(0));
    add("Last", Axes(1));
  }
}

void RegisterSorts() {
  for (const Shape& shape :
       {Shape{512, 65}, Shape{64, 50257}, Shape{1, 1 << 20}}) {
    const Work work{.bytes = Bytes(shape),
                    .elements = static_cast<double>(shape.size())};
    const auto add = [&](const char* name, auto f) {
      RegisterOp(NameOf(name, shape, "Last"), work, work, [=](Inputs& inputs) {
        return [f, x = inputs.Value(shape)] { return f(x); };
      });
    };
    add("BM_Sort", [](const Tensor& x) { return Sort(x).values; });
    add("BM_TopK40", [](const Tensor& x) { return TopK(x, 40).values; });
  }
}

// A fill writes one array.
void RegisterFills() {
  const Shape shape{1024, 1536};
  const auto generator = std::make_shared<Generator>(1);
  const Work work{.bytes = Bytes(shape),
                  .elements = static_cast<double>(shape.size())};
  const auto add = [&](const char* name, auto f) {
    RegisterForward(NameOf(name, shape, "Fill"), work,
                    [=] { return f(*generator); });
  };
  add("BM_RandomUniform",
      [=](Generator& g) { return RandomUniform(shape, g); });
  add("BM_RandomNormal", [=](Generator& g) { return RandomNormal(shape, g); });
  add("BM_RandomTruncatedNormal",
      [=](Generator& g) { return RandomTruncatedNormal(shape, g); });
  add("BM_RandomBernoulli", [=, p = Tensor::Full(shape, 0.3)](Generator& g) {
    return RandomBernoulli(p, g);
  });
  add("BM_RandomCategorical",
      [=, logits = Tensor::Zeros({1024, 1536})](Generator& g) {
        return RandomCategorical(logits, 1, g);
      });
}

}  // namespace

void RegisterReduce() {
  using T = const Tensor&;
  using A = const Axes&;
  RegisterReduction(
      "BM_Sum", [](T x, A a) { return Sum(x, a); }, 1);
  RegisterReduction(
      "BM_Mean", [](T x, A a) { return Mean(x, a); }, 1);
  RegisterReduction(
      "BM_Max", [](T x, A a) { return Max(x, a); }, 2);
  RegisterReduction(
      "BM_Min", [](T x, A a) { return Min(x, a); }, 2);
  RegisterReduction(
      "BM_Prod", [](T x, A a) { return Prod(x, a); }, 2);
  RegisterReduction(
      "BM_Var", [](T x, A a) { return Var(x, a); }, 2);
  RegisterReduction(
      "BM_Std", [](T x, A a) { return Std(x, a); }, 2);
  RegisterReduction(
      "BM_Norm", [](T x, A a) { return Norm(x, 2, a); }, 2);
  RegisterReduction(
      "BM_Norm1", [](T x, A a) { return Norm(x, 1, a); }, 2);
  RegisterReduction(
      "BM_Norm3.5", [](T x, A a) { return Norm(x, 3.5, a); }, 2);
  RegisterReduction(
      "BM_LogSumExp", [](T x, A a) { return LogSumExp(x, a); }, 2);
  RegisterDecision("BM_ArgMax", 1, DType::kFloat32,
                   [](T x, A a) { return ArgMax(x, a); });
  RegisterDecision("BM_ArgMin", 1, DType::kFloat32,
                   [](T x, A a) { return ArgMin(x, a); });
  // Values that end no search early.
  RegisterDecision("BM_Any", 0, DType::kBool,
                   [](T x, A a) { return Any(x, a); });
  RegisterDecision("BM_All", 1, DType::kBool,
                   [](T x, A a) { return All(x, a); });
  RegisterAlong(
      "BM_CumSum", [](T x, int a) { return CumSum(x, a); }, 2, 2);
  RegisterAlong(
      "BM_CumProd", [](T x, int a) { return CumProd(x, a); }, 2, 3);
  RegisterSorts();
  RegisterFills();
}

}  // namespace wengert::benchmarks
