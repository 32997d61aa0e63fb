// What the tape costs: ns per record, forward and backward together.
//
// A chain of kRecords operations on arrays of one element runs three times in
// turn: under a tape with its backward pass, without a tape, and as nothing but
// the kernels that both passes call, on memory that is there already. Counters,
// all in ns for one record:
//   record         the first of these
//   above_kernels  record less the kernels: tape, tensors, checks, dispatch
//   of_tape        record less the same operation without a tape and the
//                  kernels of the backward pass: the tape alone
// BM_TapeRecord has operations of its own around one multiplication, so that
// there is little else than the tape; BM_TapeOp has those of ops.h.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "autograd/kernels/broadcast.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/reduce.h"
#include "autograd/ops.h"
#include "autograd/tape.h"
#include "benchmark/benchmark.h"
#include "benchmarks/measure.h"
#include "benchmarks/ops_benchmark.h"

namespace wengert::benchmarks {
namespace {

constexpr int kRecords = 256;
constexpr int kParameters = 16;  // that the records use by turns

struct Chain {
  // One operation: x is what the one before it gave, y what that one's x was;
  // w and b are parameters.
  std::function<Tensor(const Tensor& x, const Tensor& y, const Tensor& w,
                       const Tensor& b)>
      op;
  // Its kernels, on five numbers.
  std::function<void(float*x)> forward, backward;
};

double Median(std::vector<double>& x) {
  std::nth_element(x.begin(), x.begin() + x.size() / 2, x.end());
  return x[x.size() / 2] * 1e9 / kRecords;
}

void Run(benchmark::State& state, const Shape& weight_shape,
         const Chain& chain) {
  Inputs inputs;
  const Tensor first = inputs.Weight(weight_shape);
  std::vector<Tensor> w, b;
  for (int i = 0; i < kParameters; ++i) {
    w.push_back(inputs.Weight(weight_shape));
    b.push_back(inputs.Weight({1}));
  }
  const auto operations = [&] {
    Tensor x = first, y = first;
    for (int i = 0; i < kRecords; ++i) {
      y = chain.op(x, y, w[i % kParameters], b[i % kParameters]);
      std::swap(x, y);
    }
    return x;
  };
  float numbers[5] = {0.5, 0.5, 0.5, 0.5, 0.5};
  const auto kernels = [&](const std::function<void(float*)>& run) {
    const double start = Now();
    for (int i = 0; i < kRecords; ++i) run(numbers);
    benchmark::DoNotOptimize(numbers);
    return Now() - start;
  };
  std::vector<double> tape_times, plain_times, forward_times, backward_times;
  const auto passes = [&] {
    double start = Now();
    {
      Tape tape;
      tape.Backward(operations());
    }
    tape_times.push_back(Now() - start);
    inputs.store().ZeroGrad();
    start = Now();
    operations();
    plain_times.push_back(Now() - start);
    forward_times.push_back(kernels(chain.forward));
    backward_times.push_back(kernels(chain.backward));
  };
  passes();
  for (auto _ : state) {
    passes();
    state.SetIterationTime(tape_times.back());
  }
  const double record = Median(tape_times);
  const double backward = Median(backward_times);
  state.counters["record"] = record;
  state.counters["above_kernels"] = record - Median(forward_times) - backward;
  state.counters["of_tape"] = record - Median(plain_times) - backward;
}

void Register(const std::string& name, const Shape& weight_shape,
              const Chain& chain) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    Run(state, weight_shape, chain);
  })->UseManualTime();
}

// z = 0.5 x y + b, fused, of one element; y and b may be left out.
Tensor OneElement(const Tensor& x, const Tensor& y, const Tensor& b) {
  const auto value = [](const Tensor& t) { return t.data<float>()[0]; };
  Tensor z = Tensor::Empty({1});
  *static_cast<float*>(z.impl()->data) =
      0.5f * value(x) * (y.defined() ? value(y) : 1) +
      (b.defined() ? value(b) : 0);
  Record(
      "OneElement", z, {x, y, b}, Save(x, y),
      [value](GradientSink& g, const Tensor& x, const Tensor& y) {
        const auto write = [&](int i, float gradient) {
          const auto to = g.Into<float>(i);
          *to.data = to.accumulate ? *to.data + gradient : gradient;
        };
        const float dz = value(g.dy());
        if (g.Needs(0)) write(0, 0.5f * dz * (y.defined() ? value(y) : 1));
        if (g.Needs(1)) write(1, 0.5f * dz * value(x));
        if (g.Needs(2)) write(2, dz);
      },
      [](const Tensor& x, const Tensor&) { return x; });
  return z;
}

}  // namespace

void RegisterTape() {
  const auto multiply = [](float* x) { x[1] = 0.5f * x[0]; };
  Register("BM_TapeRecord/Unary", {1},
           {[](const Tensor& x, auto&&...) { return OneElement(x, {}, {}); },
            multiply, multiply});
  Register("BM_TapeRecord/Binary", {1},
           {[](const Tensor& x, const Tensor& y, auto&&...) {
              return OneElement(x, y, {});
            },
            multiply, multiply});
  Register("BM_TapeRecord/Parameters", {1},
           {[](const Tensor& x, const Tensor&, const Tensor& w,
               const Tensor& b) { return OneElement(x, w, b); },
            multiply, multiply});

  using kernels::Binary;
  const auto apply = [](Binary op) {
    return [op](float* x) {
      kernels::Apply<float>(op, {1}, x, {1}, x + 1, {1}, x + 2);
    };
  };
  const auto multiply_twice = [apply](float* x) {
    apply(Binary::kMul)(x);
    apply(Binary::kMul)(x);
  };
  Register("BM_TapeOp/Silu", {1},
           {[](const Tensor& x, auto&&...) { return Silu(x); },
            [](float* x) { kernels::Apply(Activation::kSilu, 1, x, x + 1); },
            [](float* x) {
              kernels::ApplyGrad(Activation::kSilu, 1, x, x + 1, false, x + 2);
            }});
  Register("BM_TapeOp/Exp", {1},
           {[](const Tensor& x, auto&&...) { return Exp(x); },
            [](float* x) {
              kernels::Apply<float>(kernels::Unary::kExp, 1, x, x + 1);
            },
            apply(Binary::kMul)});
  Register("BM_TapeOp/Add", {1},
           {[](const Tensor& x, const Tensor& y, auto&&...) { return x + y; },
            apply(Binary::kAdd), [](float*) {}});
  Register("BM_TapeOp/Mul", {1},
           {[](const Tensor& x, const Tensor& y, auto&&...) { return x * y; },
            apply(Binary::kMul), multiply_twice});
  const auto product = [](float* x, bool accumulate) {
    kernels::ParallelGemm<float>(false, true, 1, 1, 1, 1, x, 1, x + 1, 1,
                                 accumulate, x + 2, 1);
  };
  Register("BM_TapeOp/Linear", {1, 1},
           {[](const Tensor& x, const Tensor&, const Tensor& w,
               const Tensor& b) { return Linear(x, w, b); },
            [product](float* x) { product(x, true); },
            [product](float* x) {
              product(x, false);
              product(x, false);
              kernels::Sum<float>({1, 1}, {false, true}, x, false, x + 3);
            }});
}

}  // namespace wengert::benchmarks
