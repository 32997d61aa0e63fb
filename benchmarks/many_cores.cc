// What would limit a training step on many cores: the time outside parallel
// loops, and loops with fewer chunks than cores. Runs on one thread and prints
// one line of JSON.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "autograd/parallel.h"
#include "benchmarks/loops.h"
#include "benchmarks/measure.h"
#include "benchmarks/models.h"
#include "train/command_line.h"

ABSL_FLAG(std::string, model, "medium", "toy, small or medium.");
ABSL_FLAG(int64_t, cores, 16, "Cores to reckon with.");
ABSL_FLAG(int64_t, steps, 5, "Steps to time.");

namespace wengert::benchmarks {
namespace {

int Run() {
  const std::string name = absl::GetFlag(FLAGS_model);
  const auto work = MakeWorkload(name);
  if (!work) {
    std::cerr << "--model=" << name << ": wanted toy, small or medium\n";
    return 2;
  }
  const int64_t cores = std::max<int64_t>(1, absl::GetFlag(FLAGS_cores));
  const int64_t steps = std::max<int64_t>(1, absl::GetFlag(FLAGS_steps));
  SetNumThreads(1);
  work->Step();
  const LoopTimes loops;
  const double start = Now();
  for (int64_t i = 0; i < steps; ++i) work->Step();
  const double total = Now() - start;
  // A loop takes as many rounds as its chunks need; memory is not reckoned.
  double parallel = 0, bound = 0;
  int64_t fewest = INT64_MAX;
  for (const auto& [chunks, seconds] : loops.seconds()) {
    if (chunks == 1) continue;
    fewest = std::min(fewest, chunks);
    parallel += seconds;
    const double n = static_cast<double>(chunks);
    bound += seconds * std::ceil(n / static_cast<double>(cores)) / n;
  }
  const double serial = total - parallel;
  std::cout << absl::StrFormat(
      "{\"model\": \"%s\", \"step_ms\": %.4g, \"serial_ms\": %.4g, "
      "\"serial_share\": %.4f, \"fewest_chunks\": %d, \"cores\": %d, "
      "\"speedup_bound\": %.3g}\n",
      name, total / static_cast<double>(steps) * 1e3,
      serial / static_cast<double>(steps) * 1e3, serial / total,
      loops.seconds().size() > 1 ? fewest : 1, cores, total / (serial + bound));
  return 0;
}

}  // namespace
}  // namespace wengert::benchmarks

int main(int argc, char** argv) {
  const absl::Status parsed = wengert::train::ParseCommandLine(
      argc, argv, "What limits a training step on many cores.", {__FILE__});
  if (!parsed.ok()) {
    if (absl::IsCancelled(parsed)) return 0;
    std::cerr << "many_cores: " << parsed.message() << "\n";
    return 2;
  }
  return wengert::benchmarks::Run();
}
