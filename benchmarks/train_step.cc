// Times one training step of a model and prints one line of JSON.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "autograd/parallel.h"
#include "benchmarks/measure.h"
#include "benchmarks/models.h"
#include "train/allocations_testlib.h"
#include "train/command_line.h"

ABSL_FLAG(std::string, model, "toy", "toy, small or medium.");
ABSL_FLAG(int64_t, threads, 1, "Threads.");
ABSL_FLAG(int64_t, steps, 0, "Steps to time; 0 means about two seconds.");
ABSL_FLAG(bool, forward, false, "The loss alone: no tape, no training.");
ABSL_FLAG(bool, checkpointing, false,
          "Keep each layer's input only and run it again in backward.");
ABSL_FLAG(std::optional<int64_t>, layers, std::nullopt, "Of a GPT.");
ABSL_FLAG(std::optional<int64_t>, batch, std::nullopt, "Of a GPT.");
ABSL_FLAG(std::optional<int64_t>, length, std::nullopt, "Of a GPT.");
ABSL_FLAG(bool, first_step, false,
          "Take --steps steps, or one, print the first loss alone and end: for "
          "timing a start and counting instructions.");

namespace wengert::benchmarks {
namespace {

int Run() {
  const std::string name = absl::GetFlag(FLAGS_model);
  const int threads = static_cast<int>(absl::GetFlag(FLAGS_threads));
  SetNumThreads(threads);
  const bool checkpointing = absl::GetFlag(FLAGS_checkpointing);
  const bool forward = absl::GetFlag(FLAGS_forward);
  for (const auto& size :
       {absl::GetFlag(FLAGS_layers), absl::GetFlag(FLAGS_batch),
        absl::GetFlag(FLAGS_length)}) {
    if (size.value_or(1) < 1) {
      std::cerr << "--layers, --batch, --length: wanted 1 or more, got "
                << *size << "\n";
      return 2;
    }
  }
  const std::unique_ptr<Workload> work =
      MakeWorkload(name, {.checkpointing = checkpointing,
                          .layers = absl::GetFlag(FLAGS_layers),
                          .batch = absl::GetFlag(FLAGS_batch),
                          .length = absl::GetFlag(FLAGS_length)});
  if (!work) {
    std::cerr << "--model=" << name << ": wanted toy, small or medium\n";
    return 2;
  }
  const auto step = [&] { return forward ? work->Forward() : work->Step(); };
  constexpr int kWarmUp = 20;
  const double start = Now();
  const double first_loss = step().item();
  if (absl::GetFlag(FLAGS_first_step)) {
    for (int64_t i = 1; i < absl::GetFlag(FLAGS_steps); ++i) step();
    std::cout << absl::StrFormat(
        "{\"system\": \"wengert\", \"peak_rss_mb\": %.1f, "
        "\"loss_0\": %.6f}\n",
        PeakRssMb(), first_loss);
    return 0;
  }
  double last_loss = first_loss;
  for (int i = 1; i <= kWarmUp; ++i) last_loss = step().item();
  const double guess = (Now() - start) / (kWarmUp + 1);
  int64_t steps = absl::GetFlag(FLAGS_steps);
  if (steps <= 0) {
    steps = std::clamp<int64_t>(static_cast<int64_t>(2 / guess), 10, 20000);
  }
  std::vector<double> times(steps);
  const int64_t allocations = train::SystemAllocations();
  for (double& t : times) {
    const double begin = Now();
    step();
    t = Now() - begin;
  }
  const double per_step =
      static_cast<double>(train::SystemAllocations() - allocations) /
      static_cast<double>(steps);
  std::sort(times.begin(), times.end());
  const double median = times[steps / 2], peak = FmaPeak(threads);
  const double flops = work->flops() / (forward ? 3 : 1);
  const double gflops = flops / median * 1e-9;
  std::cout << absl::StrFormat(
      "{\"system\": \"wengert\", \"model\": \"%s\", \"threads\": %d, "
      "\"setting\": \"%s\", \"forward\": %s, \"median_ms\": %.5g, \"q1_ms\": "
      "%.5g, \"q3_ms\": %.5g, "
      "\"best_ms\": %.5g, \"tokens_per_s\": %.5g, \"gflops\": %.4g, "
      "\"fma_peak_gflops\": %.4g, \"ratio_to_peak\": %.3f, "
      "\"peak_rss_mb\": %.1f, \"allocations_per_step\": %g, "
      "\"loss_0\": %.6f, \"loss_20\": %.6f}\n",
      name, threads, checkpointing ? "checkpointing" : "",
      forward ? "true" : "false", median * 1e3, times[steps / 4] * 1e3,
      times[steps * 3 / 4] * 1e3, times[0] * 1e3,
      static_cast<double>(work->tokens()) / median, gflops, peak, gflops / peak,
      PeakRssMb(), per_step, first_loss, last_loss);
  return 0;
}

}  // namespace
}  // namespace wengert::benchmarks

int main(int argc, char** argv) {
  const absl::Status parsed = wengert::train::ParseCommandLine(
      argc, argv, "Times a training step; prints one line of JSON.",
      {__FILE__});
  if (!parsed.ok()) {
    if (absl::IsCancelled(parsed)) return 0;
    std::cerr << "train_step: " << parsed.message() << "\n";
    return 2;
  }
  try {
    return wengert::benchmarks::Run();
  } catch (const std::exception& e) {
    std::cerr << "train_step: " << e.what() << "\n";
    return 2;
  }
}
