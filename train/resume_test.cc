// A run that stops in the middle of an epoch and goes on in another process
// has the bits of one that never stopped, with every optimizer and all that may
// stand beside one at once.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/ops.h"
#include "autograd/tensor_testlib.h"
#include "gtest/gtest.h"
#include "nn/nn.h"
#include "train/adafactor.h"
#include "train/adagrad.h"
#include "train/adam.h"
#include "train/checkpoint.h"
#include "train/files_testlib.h"
#include "train/lion.h"
#include "train/loop.h"
#include "train/muon.h"
#include "train/rmsprop.h"
#include "train/sgd.h"
#include "train/weight_average.h"

namespace wengert::train {
namespace {

using Maker =
    std::function<std::unique_ptr<Optimizer>(nn::ParameterStore& store)>;

template <class O, class Options>
Maker MakerOf(Options options) {
  options.lr = 0.02;
  return [=](nn::ParameterStore& store) {
    return std::make_unique<O>(store, options);
  };
}

constexpr int64_t kWords = 7, kRows = 14;

// A tied table of words, a layer that is frozen, dropout, a moving average, and
// a rate that follows a measure. Batches of rows of like length, 3 to a step.
struct FullRun {
  FullRun(DType dtype, const Maker& maker)
      : store(dtype, 1),
        words(store.root().Sub("words"), kWords, 6),
        frozen(store.root().Sub("frozen"), 6, 6),
        hidden(store.root().Sub("hidden"), 6, 6),
        norm(store.root().Sub("norm"), 6),
        head(store.root().Sub("head").Tied("weight", words.weight())),
        generator(5),
        batches(kRows, 2, 7, {.lengths = Lengths(), .window = 3}) {
    store.Freeze("frozen.*");
    optimizer = maker(store);
    average = std::make_unique<WeightAverage>(
        store, WeightAverageOptions{.decay = 0.9, .warm_up = true});
  }

  static std::vector<int32_t> Lengths() {
    std::vector<int32_t> lengths;
    for (int32_t i = 0; i < kRows; ++i) lengths.push_back(i * 5 % 4);
    return lengths;
  }
  TrainingRun parts() {
    return {&store, optimizer.get(), &generator, &batches, average.get()};
  }

  BatchLoss Loss(absl::Span<const int64_t> rows) const {
    std::vector<int64_t> ids, targets;
    for (const int64_t row : rows) {
      ids.push_back(row % kWords);
      targets.push_back(row * row % kWords);
    }
    const int64_t n = static_cast<int64_t>(rows.size());
    Tensor x = words(Tensor::From({n}, ids));
    x = norm(x + wengert::Dropout(hidden(Tanh(frozen(x))), 0.25));
    return {CrossEntropy(Linear(x, head), Tensor::From({n}, targets)), n};
  }
  std::vector<Metric> Evaluate() {
    const WeightAverage::Swap swap(*average);
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < kRows; ++i) rows.push_back(i);
    return {{"eval/loss", Loss(rows).loss.item()}};
  }

  // Goes on from `path`, where there is one, for some steps; what to save.
  CheckpointInfo Train(int64_t budget, const std::string& path = "") {
    Loop loop(parts(), {.steps = 17,
                        .step_budget = budget,
                        .accumulate = 3,
                        .clip_norm = 0.5,
                        .plateau = &plateau,
                        .evaluate_every = 1});
    if (!path.empty()) {
      const auto info = LoadCheckpoint(path, parts());
      EXPECT_TRUE(info.ok()) << info.status();
      if (info.ok()) loop.Restore(*info);
    }
    loop.OnStep([&](const StepInfo& info) {
      seen.push_back(
          absl::StrCat(info.step, " ", info.epoch, " ",
                       absl::Hex(absl::bit_cast<uint64_t>(info.loss)), " ",
                       info.lr, " ", info.grad_norm));
    });
    EXPECT_TRUE(
        loop.Run([&](absl::Span<const int64_t> rows) { return Loss(rows); },
                 [&] { return Evaluate(); })
            .ok());
    CheckpointInfo info;
    loop.Save(info);
    return info;
  }

  nn::ParameterStore store;
  nn::Embedding words;
  nn::Linear frozen, hidden;
  nn::LayerNorm norm;
  Tensor head;
  std::unique_ptr<Optimizer> optimizer;
  Generator generator;
  BatchStream batches;
  std::unique_ptr<WeightAverage> average;
  PlateauSchedule plateau{
      0.02, {.factor = 0.7, .patience = 1, .threshold = 0.2, .cooldown = 1}};
  std::vector<std::string> seen;
};

using ResumeTest = FilesTest;

TEST_F(ResumeTest, AStopInAnEpochChangesNoBit) {
  const std::vector<std::pair<const char*, Maker>> makers = {
      {"sgd", MakerOf<Sgd>(SgdOptions{
                  .momentum = 0.9, .nesterov = true, .weight_decay = 0.1})},
      {"adam", MakerOf<Adam>(AdamOptions{.weight_decay = 0.1})},
      {"adamw", MakerOf<AdamW>(AdamWOptions{.decay_filter = IsMatrix})},
      {"lion", MakerOf<Lion>(LionOptions{.weight_decay = 0.1})},
      {"rmsprop",
       MakerOf<RmsProp>(RmsPropOptions{.momentum = 0.9, .centered = true})},
      {"adagrad",
       MakerOf<Adagrad>(AdagradOptions{.lr_decay = 0.1, .initial_sum = 0.1})},
      {"adafactor", MakerOf<Adafactor>(AdafactorOptions{.weight_decay = 0.1})},
      {"muon", MakerOf<Muon>(
                   MuonOptions{.matrix_filter =
                                   [](const std::string& name, const Tensor&) {
                                     return name != "words.weight";
                                   }})},
  };
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const auto& [name, maker] : makers) {
      SCOPED_TRACE(absl::StrCat(name, " ", Name(dtype)));
      FullRun whole(dtype, maker);
      const Tensor start = whole.frozen.weight().Clone();
      whole.Train(0);
      EXPECT_EQ(whole.seen.size(), 17u);
      // 1 step, then 4 more, then the rest: an epoch is 7 batches.
      std::vector<std::string> seen;
      std::string path;
      for (const int64_t budget : {1, 4, 0}) {
        FullRun part(dtype, maker);
        const CheckpointInfo info = part.Train(budget, path);
        seen.insert(seen.end(), part.seen.begin(), part.seen.end());
        path = Path(absl::StrCat(name, Name(dtype), budget));
        ASSERT_TRUE(SaveCheckpoint(path, part.parts(), info).ok());
        if (budget != 0) continue;
        for (int64_t i = 0; i < whole.store.size(); ++i) {
          EXPECT_TRUE(SameBits(part.store.parameters()[i]->value,
                               whole.store.parameters()[i]->value));
          EXPECT_TRUE(SameBits(part.average->store().parameters()[i]->value,
                               whole.average->store().parameters()[i]->value));
        }
      }
      EXPECT_EQ(seen, whole.seen);
      EXPECT_TRUE(SameBits(whole.frozen.weight(), start));
      EXPECT_LT(whole.plateau.lr(), 0.02);
    }
  }
}

}  // namespace
}  // namespace wengert::train
