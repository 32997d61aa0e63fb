// Times every operation and kernel by itself, beside the machine's limits:
//   bazel run //benchmarks:ops -- --benchmark_filter=BM_Gemm
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>

#include "absl/flags/flag.h"
#include "autograd/parallel.h"
#include "benchmark/benchmark.h"
#include "benchmarks/ops_benchmark.h"
#include "train/command_line.h"

ABSL_FLAG(int64_t, threads, 1, "Threads.");

int main(int argc, char** argv) {
  using namespace wengert::benchmarks;
  benchmark::Initialize(&argc, argv);  // takes its own flags out
  const absl::Status parsed = wengert::train::ParseCommandLine(
      argc, argv,
      "Times operations and kernels; --benchmark_filter=<regex> chooses them.",
      {__FILE__});
  if (!parsed.ok()) {
    if (absl::IsCancelled(parsed)) return 0;
    std::cerr << "ops: " << parsed.message() << "\n";
    return 2;
  }
  try {
    wengert::SetNumThreads(static_cast<int>(absl::GetFlag(FLAGS_threads)));
    RegisterFused();
    RegisterGemm();
    RegisterElementwise();
    RegisterMoving();
    RegisterOptimizers();
    RegisterReduce();
    RegisterTape();
    benchmark::RunSpecifiedBenchmarks();
  } catch (const std::exception& e) {
    std::cerr << "ops: " << e.what() << "\n";
    return 2;
  }
}
