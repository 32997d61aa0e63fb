// What it costs to record a run: trains a model with and without a Recorder at
// its default intervals, in turn, and prints one line of JSON.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "autograd/parallel.h"
#include "benchmarks/measure.h"
#include "benchmarks/models.h"
#include "train/command_line.h"
#include "train/loop.h"
#include "train/recorder.h"

ABSL_FLAG(std::string, model, "toy", "toy, small or medium.");
ABSL_FLAG(int64_t, threads, 1, "Threads.");
ABSL_FLAG(int64_t, log_every, 10, "Steps between two rows.");
ABSL_FLAG(double, seconds, 20, "How long each of the two is trained.");
ABSL_FLAG(double, block_seconds, 1, "How long before it is the other's turn.");

namespace wengert::benchmarks {
namespace {

// A run that trains for some steps at a time.
struct Run {
  Run(const std::string& model, int64_t block)
      : work(MakeWorkload(model)),
        batches(1, 1, /*seed=*/1),
        loop({&work->store(), &work->optimizer(), nullptr, &batches},
             {.steps = int64_t{1} << 40,
              .step_budget = block,
              .stop_on_signals = false}) {}

  double Block() {
    const double begin = Now();
    const auto end = loop.Run([&](auto) {
      return train::BatchLoss(work->Forward(), work->tokens());
    });
    if (!end.ok()) std::cerr << end.status().message() << "\n";
    return Now() - begin;
  }

  std::unique_ptr<Workload> work;
  train::BatchStream batches;
  train::Loop loop;
};

int Main() {
  const std::string model = absl::GetFlag(FLAGS_model);
  if (!MakeWorkload(model)) {
    std::cerr << "--model=" << model << ": wanted toy, small or medium\n";
    return 2;
  }
  SetNumThreads(static_cast<int>(absl::GetFlag(FLAGS_threads)));
  Run guess(model, 20);
  guess.Block();
  const double block_seconds = absl::GetFlag(FLAGS_block_seconds);
  const int64_t block = std::max<int64_t>(
      1, static_cast<int64_t>(20 * block_seconds / guess.Block()));

  std::string folder = std::filesystem::temp_directory_path() / "runXXXXXX";
  if (!mkdtemp(folder.data())) {
    std::cerr << folder << ": cannot be made\n";
    return 2;
  }
  Run plain(model, block), recorded(model, block);
  const auto recorder = train::Recorder::Open(
      recorded.loop, {.run_dir = folder + "/run",
                      .log_every = absl::GetFlag(FLAGS_log_every)});
  if (!recorder.ok()) {
    std::cerr << recorder.status().message() << "\n";
    return 2;
  }
  plain.Block(), recorded.Block();  // warm up
  double plain_seconds = 0, recorded_seconds = 0;
  std::vector<double> ratios;
  while (plain_seconds < absl::GetFlag(FLAGS_seconds)) {
    const double a = plain.Block(), b = recorded.Block();
    plain_seconds += a;
    recorded_seconds += b;
    ratios.push_back(b / a);
  }
  std::sort(ratios.begin(), ratios.end());
  const absl::Status status =
      (*recorder)->Finish(train::LoopEnd{train::LoopEnd::kSteps});
  if (!status.ok()) std::cerr << status.message() << "\n";
  std::filesystem::remove_all(folder);
  std::cout << absl::StrFormat(
      "{\"model\": \"%s\", \"threads\": %d, \"log_every\": %d, \"blocks\": %d, "
      "\"steps_per_block\": %d, \"plain_s\": %.4g, \"recorded_s\": %.4g, "
      "\"ratio_of_sums\": %.4f, \"median_ratio\": %.4f}\n",
      model, absl::GetFlag(FLAGS_threads), absl::GetFlag(FLAGS_log_every),
      ratios.size(), block, plain_seconds, recorded_seconds,
      recorded_seconds / plain_seconds, ratios[ratios.size() / 2]);
  return 0;
}

}  // namespace
}  // namespace wengert::benchmarks

int main(int argc, char** argv) {
  const absl::Status parsed = wengert::train::ParseCommandLine(
      argc, argv,
      "Times training with a Recorder against training without, in turn.",
      {__FILE__});
  if (!parsed.ok()) {
    if (absl::IsCancelled(parsed)) return 0;
    std::cerr << "recording: " << parsed.message() << "\n";
    return 2;
  }
  return wengert::benchmarks::Main();
}
