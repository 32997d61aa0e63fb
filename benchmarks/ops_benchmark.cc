#include "benchmarks/ops_benchmark.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "autograd/parallel.h"
#include "autograd/random.h"
#include "autograd/tape.h"
#include "benchmark/benchmark.h"
#include "benchmarks/measure.h"

namespace wengert::benchmarks {
namespace {

double Median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + x.size() / 2, x.end());
  return x[x.size() / 2];
}

// How many calls of f take `seconds`.
template <class F>
int64_t CallsIn(double seconds, const F& f) {
  f();  // warms caches and the pool of memory
  const double start = Now();
  f();
  return std::clamp<int64_t>(static_cast<int64_t>(seconds / (Now() - start)), 1,
                             10000);
}

template <class F>
double SecondsOf(int64_t calls, const F& f) {
  const double start = Now();
  for (int64_t i = 0; i < calls; ++i) f();
  return (Now() - start) / static_cast<double>(calls);
}

// Seconds that the threads take to copy bytes / 2 into as many others.
double CopySeconds(double bytes) {
  const auto n = static_cast<int64_t>(bytes / 2);
  const Tensor from = Tensor::Zeros({n / 4 + 1});
  Tensor to = Tensor::Zeros({n / 4 + 1});
  const auto* x = reinterpret_cast<const char*>(from.data<float>());
  auto* y = reinterpret_cast<char*>(to.mutable_data<float>());
  const auto copy = [&] {
    ParallelFor(n, 1 << 16, [&](int64_t begin, int64_t end) {
      std::memcpy(y + begin, x + begin, end - begin);
    });
    benchmark::ClobberMemory();
  };
  const int64_t calls = CallsIn(1e-4, copy);
  std::vector<double> times;
  for (int i = 0; i < 31; ++i) times.push_back(SecondsOf(calls, copy));
  return Median(times);
}

double Peak() {
  static const double peak = FmaPeak(NumThreads());
  return peak;
}

void Report(benchmark::State& state, const std::vector<double>& seconds,
            const Work& work) {
  const double median = Median(seconds);
  state.counters["median_us"] = median * 1e6;
  if (work.elements > 0) {
    state.counters["ns_per_element"] = median * 1e9 / work.elements;
  }
  if (work.flops > 0) {
    const double gflops = work.flops / median * 1e-9;
    state.counters["GFLOP/s"] = gflops;
    state.counters["of_peak"] = gflops / Peak();
  }
  if (work.bytes > 0) {
    state.counters["GB/s"] = work.bytes / median * 1e-9;
    state.counters["copies"] = median / CopySeconds(work.bytes);
  }
}

void Measure(benchmark::State& state, const Work& work,
             absl::FunctionRef<void()> f) {
  const int64_t calls = CallsIn(1e-4, f);
  std::vector<double> times;
  while (state.KeepRunningBatch(calls)) times.push_back(SecondsOf(calls, f));
  Report(state, times, work);
}

}  // namespace

Tensor Inputs::Weight(const Shape& shape) {
  return store_.root().Uniform("w" + std::to_string(store_.size()), shape, 1);
}

Tensor Inputs::Value(const Shape& shape, double lo, double hi) {
  Tensor x = Tensor::Empty(shape);
  FillUniform(values_.size(), 0, lo, hi, x.size(), x.mutable_data<float>());
  values_.push_back(x);
  return x;
}

Tensor RandomIds(const Shape& shape, int64_t n) {
  std::vector<int64_t> ids(shape.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = UniformInt(1, 0, i, n);
  return Tensor::From(shape, ids);
}

void RegisterOp(const std::string& name, const Work& forward,
                const Work& backward,
                std::function<std::function<Tensor()>(Inputs&)> make,
                OpOptions options) {
  RegisterKernel(name + "/Forward", forward, [=](Inputs& inputs) {
    return [f = make(inputs), generator = Generator(1),
            training = options.training]() mutable {
      std::optional<Tape> tape;
      if (training) tape.emplace(generator);
      benchmark::DoNotOptimize(f().impl());
    };
  });
  const auto run = [=](benchmark::State& state) {
    Inputs inputs;
    const auto f = make(inputs);
    Generator generator(1);
    Tensor dy;
    const auto pass = [&] {
      Tape tape(generator);
      for (const Tensor& x : inputs.values()) {
        tape.Watch(x);
        tape.OnGradient(x, [](const Tensor&) { return Tensor(); });
      }
      const Tensor y = f();
      if (!dy.defined()) dy = Tensor::Full(y.shape(), 0.5);
      inputs.store().ZeroGrad();
      return SecondsOf(1, [&] { tape.Backward(y, dy); });
    };
    pass();
    std::vector<double> times;
    for (auto _ : state) {
      times.push_back(pass());
      state.SetIterationTime(times.back());
    }
    Report(state, times, backward);
  };
  benchmark::RegisterBenchmark((name + "/Backward").c_str(), run)
      ->UseManualTime();
}

void RegisterKernel(const std::string& name, const Work& work,
                    std::function<std::function<void()>(Inputs&)> make) {
  const auto run = [=](benchmark::State& state) {
    Inputs inputs;
    Measure(state, work, make(inputs));
  };
  benchmark::RegisterBenchmark(name.c_str(), run)->UseRealTime();
}

}  // namespace wengert::benchmarks
