// Three arms of a spiral, which no straight line parts: an MLP learns which arm
// a point of the plane belongs to, and draws what it learned.
#include <array>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <numbers>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/random.h"
#include "nn/nn.h"
#include "train/adam.h"
#include "train/command_line.h"
#include "train/loop.h"
#include "train/png.h"
#include "train/recorder.h"
#include "train/run_flags.h"
#include "train/schedule.h"
#include "train/split.h"
#include "train/text_file.h"

ABSL_FLAG(std::string, picture, "",
          "Where to draw what was learned, as a PNG file: the colour of a "
          "place is the arm that the model sees there, paler where it is less "
          "sure; dots are the points, rings those held out.");
ABSL_FLAG(int64_t, points, 100, "Points of each arm; a fifth is held out.");
ABSL_FLAG(double, noise, 0.1, "How far the points stray, in radians.");
ABSL_FLAG(int64_t, hidden, 64, "Width of the MLP.");
ABSL_FLAG(int64_t, steps, 600, "Training steps.");
ABSL_FLAG(double, lr, 0.02, "Highest learning rate.");
ABSL_FLAG(uint64_t, seed, 1, "Of the points, the start and the order.");

namespace wengert {
namespace {

constexpr int kArms = 3;

struct Points {
  std::vector<float> places;  // x, y of each, within [-1, 1]
  std::vector<int64_t> arms;
};

// Arm a turns once and a half round the middle, from a * 120 degrees.
Points Spiral(int64_t per_arm, double noise, uint64_t seed) {
  std::vector<double> stray(kArms * per_arm);
  FillNormal(seed, /*offset=*/0, 0, noise, kArms * per_arm, stray.data());
  Points points;
  for (int64_t i = 0; i < kArms * per_arm; ++i) {
    const int64_t arm = i % kArms;
    const double radius = 0.1 + 0.9 * static_cast<double>(i / kArms) / per_arm;
    const double angle = 2 * std::numbers::pi * arm / kArms +
                         1.5 * std::numbers::pi * radius + stray[i];
    points.places.push_back(static_cast<float>(radius * std::cos(angle)));
    points.places.push_back(static_cast<float>(radius * std::sin(angle)));
    points.arms.push_back(arm);
  }
  return points;
}

class Model {
 public:
  Model(nn::Params p, int64_t hidden)
      : in_(p.Sub("in"), 2, hidden),
        middle_(p.Sub("middle"), hidden, hidden),
        out_(p.Sub("out"), hidden, kArms) {}

  // places [B, 2] -> logits [B, 3]
  Tensor operator()(const Tensor& places) const {
    return out_(Tanh(middle_(Tanh(in_(places)))));
  }

 private:
  nn::Linear in_, middle_, out_;
};

struct Batch {
  Tensor places, arms;
};

Batch Pick(const Points& points, absl::Span<const int64_t> rows) {
  std::vector<float> places;
  std::vector<int64_t> arms;
  for (const int64_t row : rows) {
    places.push_back(points.places[2 * row]);
    places.push_back(points.places[2 * row + 1]);
    arms.push_back(points.arms[row]);
  }
  const int64_t n = static_cast<int64_t>(rows.size());
  return {Tensor::From({n, 2}, places), Tensor::From({n}, arms)};
}

double Accuracy(const Model& model, const Batch& batch) {
  const Tensor hit = Equal(ArgMax(model(batch.places), -1), batch.arms);
  return Mean(hit.To(DType::kFloat64)).item();
}

// The probabilities of the arms at the middles of size x size cells over
// [-1.1, 1.1]², line by line from the top: [size * size, 3].
Tensor Plane(const Model& model, int64_t size) {
  std::vector<float> places;
  for (int64_t i = 0; i < size * size; ++i) {
    const auto at = [size](int64_t cell) {
      return static_cast<float>(1.1 * (2.0 * cell + 1 - size) / size);
    };
    places.push_back(at(i % size));
    places.push_back(-at(i / size));
  }
  return Softmax(model(Tensor::From({size * size, 2}, places)));
}

// What the terminal shows: a letter for each arm, small where the model is less
// than nine tenths sure.
std::string Letters(const Model& model) {
  constexpr int64_t kSize = 24;
  const Tensor p = Plane(model, kSize);
  const Tensor arm = ArgMax(p, -1);
  std::string text;
  for (int64_t i = 0; i < kSize * kSize; ++i) {
    const int64_t a = arm.span<int64_t>()[i];
    const char first = p.span<float>()[i * kArms + a] < 0.9f ? 'a' : 'A';
    text.append(2, static_cast<char>(first + a));  // a letter is half as wide
    if (i % kSize == kSize - 1) text.push_back('\n');
  }
  return text;
}

// The picture of --picture.
std::string Png(const Model& model, const Points& points,
                absl::Span<const int64_t> held_out) {
  constexpr int kSize = 480;
  constexpr std::array<std::array<double, 3>, kArms> kColors = {
      {{38, 110, 180}, {222, 135, 30}, {40, 150, 90}}};
  std::vector<uint8_t> pixels(3 * kSize * kSize);
  const Tensor p = Plane(model, kSize);
  for (int64_t i = 0; i < kSize * kSize; ++i) {
    for (int c = 0; c < 3; ++c) {
      double shade = 0;  // half-way to white, as light as a dot is dark
      for (int a = 0; a < kArms; ++a) {
        shade += p.span<float>()[i * kArms + a] * (kColors[a][c] + 255) / 2;
      }
      pixels[3 * i + c] = static_cast<uint8_t>(std::lround(shade));
    }
  }
  std::vector<bool> ring(points.arms.size());
  for (const int64_t row : held_out) ring[row] = true;
  for (size_t i = 0; i < points.arms.size(); ++i) {
    const auto pixel = [](double v) {
      return static_cast<int>((v / 1.1 + 1) / 2 * kSize);
    };
    const int x = pixel(points.places[2 * i]);
    const int y = pixel(-points.places[2 * i + 1]);
    for (int dy = -5; dy <= 5; ++dy) {
      for (int dx = -5; dx <= 5; ++dx) {
        const int far = dx * dx + dy * dy;
        const int px = x + dx, py = y + dy;
        if (far > 25 || px < 0 || py < 0 || px >= kSize || py >= kSize)
          continue;
        for (int c = 0; c < 3; ++c) {
          const double color = far > 12 || (ring[i] && far < 4)
                                   ? 255  // a rim, and the ring's middle
                                   : 0.8 * kColors[points.arms[i]][c];
          pixels[3 * (py * kSize + px) + c] = static_cast<uint8_t>(color);
        }
      }
    }
  }
  return train::RgbPng(kSize, kSize, pixels);
}

absl::Status CheckFlags() {
  for (const absl::Status& status :
       {train::CheckFlag<int64_t>(FLAGS_points, 5, 1 << 20),
        train::CheckFlag<int64_t>(FLAGS_hidden, 1, 1 << 14),
        train::CheckFlag<int64_t>(FLAGS_steps, 1, int64_t{1} << 40),
        train::CheckFlag<double>(FLAGS_noise, 0, 10),
        train::CheckFlag<double>(FLAGS_lr, 0, 1e3)}) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Run(int argc, char** argv) {
  const absl::Status parsed = train::ParseRunCommandLine(
      argc, argv,
      "Trains an MLP to tell the arms of a spiral apart.\n\n"
      "Exit status: 0 if it reads 95 % of the held-out points right, 1 "
      "otherwise, 2 for a wrong flag or file, 130 when Ctrl-C stopped it.",
      __FILE__);
  if (!parsed.ok()) return parsed;
  if (absl::Status s = CheckFlags(); !s.ok()) return s;

  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  const Points points =
      Spiral(absl::GetFlag(FLAGS_points), absl::GetFlag(FLAGS_noise), seed);
  const train::Split split =
      train::SplitBySeed(static_cast<int64_t>(points.arms.size()), 0.2, seed);
  const Batch held_out = Pick(points, split.held_out);

  nn::ParameterStore store(DType::kFloat32, seed);
  const Model model(store.root(), absl::GetFlag(FLAGS_hidden));
  train::AdamW optimizer(store, {.decay_filter = train::IsMatrix});
  train::BatchStream batches(static_cast<int64_t>(split.train.size()), 64,
                             seed);
  train::LoopOptions options = train::LoopFlags();
  options.steps = absl::GetFlag(FLAGS_steps);
  options.evaluate_every = 100;
  options.best_metric = "eval/accuracy";
  options.lower_is_better = false;
  const double lr = absl::GetFlag(FLAGS_lr);
  options.schedule = train::WarmupCosine(lr, 0, options.steps);
  options.schedule_name =
      absl::StrCat("cosine from ", lr, " to 0 in ", options.steps, " steps");
  train::Loop loop({&store, &optimizer, nullptr, &batches}, options);
  train::RecorderOptions recording = train::RecorderFlags(seed);
  recording.unit = "points";
  const auto recorder = train::Recorder::Open(loop, recording);
  if (!recorder.ok()) return recorder.status();

  const auto end = loop.Run(
      [&](absl::Span<const int64_t> rows) -> train::BatchLoss {
        std::vector<int64_t> picked;
        for (const int64_t row : rows) picked.push_back(split.train[row]);
        const Batch batch = Pick(points, picked);
        return {CrossEntropy(model(batch.places), batch.arms),
                static_cast<int64_t>(rows.size())};
      },
      [&]() -> std::vector<train::Metric> {
        return {{"eval/accuracy", Accuracy(model, held_out)}};
      });
  if (absl::Status s = (*recorder)->Finish(end); !s.ok()) return s;
  const std::string picture = absl::GetFlag(FLAGS_picture);
  if (!picture.empty()) {
    const std::string path = train::UserPath(picture);
    absl::Status s = train::WriteFile(path, Png(model, points, split.held_out));
    if (!s.ok()) return s;
    std::cout << "wrote " << path << "\n";
  }
  if (!end->complete()) return end->signal > 0 ? 128 + end->signal : 0;
  const double accuracy = Accuracy(model, held_out);
  std::cout << Letters(model);
  absl::PrintF("held-out accuracy %.1f %%\n", 100 * accuracy);
  return accuracy >= 0.95 ? 0 : 1;
}

}  // namespace
}  // namespace wengert

int main(int argc, char** argv) {
  return wengert::train::ExitStatus("mlp_spiral",
                                    [&] { return wengert::Run(argc, argv); });
}
