#include "benchmarks/measure.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace wengert::benchmarks {
namespace {

#ifdef __AVX512F__
constexpr int kBytes = 64;
#else
constexpr int kBytes = 32;
#endif
typedef float Vector __attribute__((vector_size(kBytes)));
constexpr int kChains = 12;  // independent sums: enough to hide the latency

// a = a b + c in every lane of every chain, `turns` times.
float Chains(int64_t turns) {
  Vector a[kChains];
  const Vector b = Vector{} + 0.999f, c = Vector{} + 0.001f;
  for (int i = 0; i < kChains; ++i) a[i] = Vector{} + static_cast<float>(i);
  for (int64_t t = 0; t < turns; ++t) {
    for (int i = 0; i < kChains; ++i) {
      for (int k = 0; k < kBytes / 4; ++k) {
        a[i][k] = __builtin_fmaf(a[i][k], b[k], c[k]);
      }
    }
  }
  float sum = 0;
  for (const Vector& v : a) sum += v[0];
  return sum;
}

}  // namespace

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double FmaPeak(int threads) {
  constexpr int64_t kTurns = 4'000'000;
  constexpr double kFlops = 2.0 * kTurns * kChains * (kBytes / 4);
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    std::atomic<float> sink{0};
    std::vector<std::thread> pool;
    const double start = Now();
    for (int t = 0; t < threads; ++t) {
      pool.emplace_back([&] { sink = Chains(kTurns); });
    }
    for (std::thread& t : pool) t.join();
    best = std::max(best, threads * kFlops / (Now() - start) * 1e-9);
  }
  return best;
}

double PeakRssMb() {
  // Not getrusage, which counts what the parent held before exec.
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes / 1024;
  }
  return 0;
}

}  // namespace wengert::benchmarks
