// Learns to go on with a text, byte by byte, and shows what it writes. The text
// may be larger than memory.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "autograd/parallel.h"
#include "autograd/random.h"
#include "examples/next_byte/counting.h"
#include "examples/next_byte/model.h"
#include "train/adam.h"
#include "train/batch_stream.h"
#include "train/command_line.h"
#include "train/loop.h"
#include "train/metrics.h"
#include "train/prefetch.h"
#include "train/recorder.h"
#include "train/run_flags.h"
#include "train/schedule.h"
#include "train/token_file.h"

ABSL_FLAG(std::string, text, "",
          "The text to learn, any file; its last tenth is held out. Without "
          "it: lines that count, \"seven, eight, nine, ten, eleven.\"");
ABSL_FLAG(std::string, prompt, "seven, eight, ",
          "What it goes on with at the end.");
ABSL_FLAG(int64_t, sample_bytes, 150, "How many bytes it writes then.");
ABSL_FLAG(double, temperature, 0.3,
          "Of what it writes: 0 takes the likeliest byte, 1 what it learned.");
ABSL_FLAG(uint64_t, seed, 1, "Of the start, the order and the dropout.");
ABSL_FLAG(int64_t, steps, 1000, "Training steps.");
ABSL_FLAG(int64_t, batch_size, 16, "Blocks of text in a step.");
ABSL_FLAG(int64_t, evaluate_every, 100, "Steps between two evaluations.");
ABSL_FLAG(int64_t, patience, 0,
          "Stop after so many evaluations with no better loss; 0: never.");
ABSL_FLAG(double, lr, 4e-3, "Highest learning rate.");
ABSL_FLAG(int64_t, length, 64, "Bytes in a block.");
ABSL_FLAG(int64_t, d_model, 64, "Width of the model.");
ABSL_FLAG(int64_t, n_heads, 4, "Attention heads; they divide d_model.");
ABSL_FLAG(int64_t, n_layers, 2, "Layers.");
ABSL_FLAG(double, dropout, 0, "Dropout probability while training.");
ABSL_FLAG(int64_t, threads, 0,
          "Threads, 0 for all cores; the result is the same for any number.");

namespace wengert {
namespace {

constexpr char kAbout[] =
    "Trains a small GPT on the bytes of a text and lets it write.\n\n"
    "Exit status: 0, 2 for a wrong flag or file, 130 when Ctrl-C stopped it.";

absl::Status CheckFlags() {
  for (const absl::Status& status :
       {train::CheckFlag<int64_t>(FLAGS_steps, 1, int64_t{1} << 40),
        train::CheckFlag<int64_t>(FLAGS_batch_size, 1, 1 << 20),
        train::CheckFlag<int64_t>(FLAGS_evaluate_every, 1, int64_t{1} << 40),
        train::CheckFlag<int64_t>(FLAGS_patience, 0, 1 << 20),
        train::CheckFlag<int64_t>(FLAGS_length, 1, 1 << 16),
        train::CheckFlag<int64_t>(FLAGS_d_model, 1, 1 << 14),
        train::CheckFlag<int64_t>(FLAGS_n_heads, 1, 1 << 14),
        train::CheckFlag<int64_t>(FLAGS_n_layers, 1, 1000),
        train::CheckFlag<int64_t>(FLAGS_sample_bytes, 0, 1 << 20),
        train::CheckFlag<int64_t>(FLAGS_threads, 0, 1024),
        train::CheckFlag<double>(FLAGS_lr, 0, 1e3),
        train::CheckFlag<double>(FLAGS_dropout, 0, 0.99),
        train::CheckFlag<double>(FLAGS_temperature, 0, 100)}) {
    if (!status.ok()) return status;
  }
  if (absl::GetFlag(FLAGS_d_model) % absl::GetFlag(FLAGS_n_heads) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--n_heads=", absl::GetFlag(FLAGS_n_heads),
        " does not divide --d_model=", absl::GetFlag(FLAGS_d_model)));
  }
  if (absl::GetFlag(FLAGS_prompt).empty()) {
    return absl::InvalidArgumentError("--prompt: wanted a byte or more");
  }
  return absl::OkStatus();
}

// The last `length` bytes of a text, [1, T].
Tensor Context(const std::string& text, int64_t length) {
  const std::string tail =
      text.substr(text.size() - std::min<size_t>(text.size(), length));
  return Tensor::From(
      {1, static_cast<int64_t>(tail.size())},
      std::vector<int64_t>(
          reinterpret_cast<const uint8_t*>(tail.data()),
          reinterpret_cast<const uint8_t*>(tail.data()) + tail.size()));
}

// What the model writes behind the prompt: each byte drawn by its probability,
// sharpened by the temperature.
std::string Write(const Model& model, const std::string& prompt, int64_t length,
                  uint64_t seed) {
  const double temperature = absl::GetFlag(FLAGS_temperature);
  std::string text = prompt;
  for (int64_t i = 0; i < absl::GetFlag(FLAGS_sample_bytes); ++i) {
    const Tensor logits = model(Context(text, length));
    Tensor last = Slice(logits, 1, logits.dim(1) - 1, 1);
    int64_t byte = ArgMax(last, -1).span<int64_t>()[0];
    if (temperature > 1e-3) {  // below it is the likeliest byte, too
      last = Softmax(last / temperature, -1);
      double left = Uniform01(seed, i, 0);
      for (byte = 0; byte < Model::kBytes - 1; ++byte) {
        left -= last.span<float>()[byte];
        if (left < 0) break;
      }
    }
    text.push_back(static_cast<char>(byte));
  }
  return text.substr(prompt.size());
}

std::vector<train::AttentionMap> AttentionOf(const Model& model,
                                             const std::string& text) {
  std::vector<std::string> labels;
  for (const char c : text) labels.emplace_back(1, c == ' ' ? '_' : c);
  return train::AttentionMaps(
      text, labels, labels,
      model.Attention(Context(text, static_cast<int64_t>(text.size()))));
}

absl::StatusOr<int> Run(int argc, char** argv) {
  const absl::Status parsed =
      train::ParseRunCommandLine(argc, argv, kAbout, __FILE__);
  if (!parsed.ok()) return parsed;
  if (absl::Status s = CheckFlags(); !s.ok()) return s;
  const int64_t threads = absl::GetFlag(FLAGS_threads);
  SetNumThreads(threads > 0
                    ? static_cast<int>(threads)
                    : std::max(1u, std::thread::hardware_concurrency()));

  const std::string file = absl::GetFlag(FLAGS_text);
  const std::string path = file.empty() ? "counting" : train::UserPath(file);
  const std::string counting = file.empty() ? Counting() : "";
  const auto text =
      file.empty() ? train::TokenFile::Parse(
                         {reinterpret_cast<const uint8_t*>(counting.data()),
                          counting.size()},
                         path, train::ElementType::kU8, Model::kBytes)
                   : train::TokenFile::Open(path, train::ElementType::kU8,
                                            Model::kBytes);
  if (!text.ok()) return text.status();
  const int64_t length = absl::GetFlag(FLAGS_length);
  if (text->size() < 10 * length) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has ", text->size(), " bytes; wanted ",
                     10 * length, " for blocks of --length=", length));
  }
  const int64_t n_blocks = train::NumBlocks(text->size(), length);
  const int64_t n_held_out = std::max<int64_t>(1, n_blocks / 10);

  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  nn::ParameterStore store(DType::kFloat32, seed);
  const Model model(store.root(), {.length = length,
                                   .d_model = absl::GetFlag(FLAGS_d_model),
                                   .n_heads = absl::GetFlag(FLAGS_n_heads),
                                   .n_layers = absl::GetFlag(FLAGS_n_layers),
                                   .dropout = absl::GetFlag(FLAGS_dropout)});
  const int64_t batch_size = absl::GetFlag(FLAGS_batch_size);
  train::BatchStream batches(n_blocks - n_held_out, batch_size, seed,
                             {.low_memory = n_blocks > (1 << 24)});
  train::AdamW optimizer(store, {.decay_filter = train::IsMatrix});
  Generator generator(seed);

  const double lr = absl::GetFlag(FLAGS_lr);
  train::LoopOptions options = train::LoopFlags();
  options.steps = absl::GetFlag(FLAGS_steps);
  options.clip_norm = 1;
  options.schedule = train::WarmupCosine(
      lr, std::min<int64_t>(50, options.steps), options.steps, lr / 10);
  options.schedule_name = absl::StrCat("cosine from ", lr, " to its tenth in ",
                                       options.steps, " steps");
  options.evaluate_every = absl::GetFlag(FLAGS_evaluate_every);
  options.patience = absl::GetFlag(FLAGS_patience);
  train::Loop loop({&store, &optimizer, &generator, &batches}, options);

  const std::string prompt = absl::GetFlag(FLAGS_prompt);
  train::RecorderOptions recording = train::RecorderFlags(seed);
  recording.unit = "bytes";
  recording.attention = [&] {
    return AttentionOf(model, prompt.substr(0, std::min<size_t>(length, 24)));
  };
  recording.samples = [&]() -> std::vector<train::ReportSample> {
    return {{prompt, Write(model, prompt, length, seed)}};
  };
  const auto recorder = train::Recorder::Open(loop, recording);
  if (!recorder.ok()) return recorder.status();

  const auto loss_of = [&](const train::TokenFile::Batch& batch) {
    return CrossEntropy(model(batch.x), batch.y);
  };
  train::Prefetch<absl::StatusOr<train::TokenFile::Batch>> prefetch(
      batches, [&](auto blocks) { return text->Blocks(blocks, length); });
  const auto end = loop.Run(
      [&](absl::Span<const int64_t> blocks) -> train::BatchLoss {
        const auto batch = prefetch.Get(blocks).value();
        return {loss_of(batch), batch.y.size()};
      },
      [&]() -> std::vector<train::Metric> {
        // At most 64 batches, evenly from what was held out.
        const int64_t n = std::min(n_held_out, 64 * batch_size);
        return train::Evaluate(n, batch_size, [&](auto rows) {
          std::vector<int64_t> blocks;
          for (const int64_t i : rows) {
            blocks.push_back(n_blocks - n_held_out + i * n_held_out / n);
          }
          const auto batch = text->Blocks(blocks, length).value();
          const double loss = loss_of(batch).item();
          return train::BatchMeans{
              {{"eval/loss", loss}, {"eval/bits_per_byte", loss / std::log(2)}},
              batch.y.size()};
        });
      });
  const absl::Status status = (*recorder)->Finish(end);
  if (!status.ok()) return status;
  if (!end->complete()) return end->signal > 0 ? 128 + end->signal : 0;
  std::cout << prompt << Write(model, prompt, length, seed) << "\n";
  return 0;
}

}  // namespace
}  // namespace wengert

int main(int argc, char** argv) {
  return wengert::train::ExitStatus(
      "next_byte", [&] { return wengert::Run(argc, argv); },
      "a smaller --d_model, --n_layers, --length or "
      "--batch_size takes less");
}
