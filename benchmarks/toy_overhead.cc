// What the framework costs: times the toy model's training step and the same
// arithmetic written out by hand, in turn, and prints one line of JSON.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "autograd/parallel.h"
#include "benchmarks/measure.h"
#include "benchmarks/models.h"
#include "benchmarks/straight_line.h"
#include "train/command_line.h"

ABSL_FLAG(int64_t, blocks, 200, "How often each is timed, at least 1.");
ABSL_FLAG(int64_t, steps, 200, "Steps in a block, at least 1.");

namespace wengert::benchmarks {
namespace {

double Median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + x.size() / 2, x.end());
  return x[x.size() / 2];
}

// Microseconds a step in a block of steps.
template <class F>
double TimeBlock(const F& step) {
  const int64_t steps = std::max<int64_t>(1, absl::GetFlag(FLAGS_steps));
  const double start = Now();
  for (int64_t i = 0; i < steps; ++i) step();
  return (Now() - start) / static_cast<double>(steps) * 1e6;
}

void Run() {
  SetNumThreads(1);
  const std::unique_ptr<Workload> toy = MakeWorkload("toy");
  StraightLineToy straight_line(toy->store());
  const auto toy_block = [&] { return TimeBlock([&] { toy->Step(); }); };
  const auto straight_block = [&] {
    return TimeBlock([&] { straight_line.Step(); });
  };
  toy_block(), straight_block();  // warm up
  std::vector<double> toy_us, straight_us, ratios;
  for (int64_t i = 0; i < std::max<int64_t>(1, absl::GetFlag(FLAGS_blocks));
       ++i) {
    toy_us.push_back(toy_block());
    straight_us.push_back(straight_block());
    ratios.push_back(toy_us.back() / straight_us.back());
  }
  // Neighbours in time see the same machine: the ratio is the median of theirs.
  std::cout << absl::StrFormat(
      "{\"model\": \"toy\", \"threads\": 1, \"toy_us\": %.4g, "
      "\"straight_line_us\": %.4g, \"ratio\": %.4g}\n",
      Median(toy_us), Median(straight_us), Median(ratios));
}

}  // namespace
}  // namespace wengert::benchmarks

int main(int argc, char** argv) {
  const absl::Status parsed = wengert::train::ParseCommandLine(
      argc, argv,
      "Times the toy step and its straight-line form in turn; prints one line "
      "of JSON.",
      {__FILE__});
  if (!parsed.ok()) {
    if (absl::IsCancelled(parsed)) return 0;
    std::cerr << "toy_overhead: " << parsed.message() << "\n";
    return 2;
  }
  wengert::benchmarks::Run();
}
