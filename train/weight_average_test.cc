#include "train/weight_average.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "autograd/error.h"
#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/checkpoint.h"
#include "train/files_testlib.h"
#include "train/loop_testlib.h"

namespace wengert::train {
namespace {

using nn::ParameterStore;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void Set(Tensor x, std::vector<double> values) {
  std::copy(values.begin(), values.end(), x.mutable_data<double>());
}

TEST(WeightAverageTest, FollowsTheFormula) {
  ParameterStore store(DType::kFloat64);
  const Tensor w = store.root().Constant("w", {2}, 1);
  WeightAverage average(store, {.decay = 0.75});
  const Tensor a = average.store().Find("w");
  EXPECT_THAT(a.ToVector(), ElementsAre(1, 1));
  Set(w, {5, -3});
  average.Update();
  EXPECT_THAT(a.ToVector(), ElementsAre(2, 0));
  Set(w, {2, 8});
  average.Update();
  EXPECT_THAT(a.ToVector(), ElementsAre(2, 2));
  EXPECT_THAT(w.ToVector(), ElementsAre(2, 8));
  EXPECT_EQ(average.updates(), 2);
}

TEST(WeightAverageTest, WarmUpForgetsTheStart) {
  ParameterStore store(DType::kFloat64);
  const Tensor w = store.root().Constant("w", {1}, 0);
  WeightAverage average(store, {.decay = 0.15, .warm_up = true});
  Set(w, {1});
  double wanted = 0;
  for (double decay : {1.0 / 10, 0.15, 0.15}) {  // 2/11 is above 0.15
    average.Update();
    wanted = decay * wanted + (1 - decay);
    EXPECT_NEAR(average.store().Find("w").item(), wanted, 1e-15);
  }
}

TEST(WeightAverageTest, SwapGivesTheModelTheAverageAndTakesItBack) {
  ParameterStore store;
  const Tensor w = store.root().Normal("w", {100}, 1);
  store.root().Tied("head", w);
  WeightAverage average(store, {.decay = 0.5});
  const Tensor first = w.Clone();
  for (float& v : absl::MakeSpan(Tensor(w).mutable_data<float>(), 100)) v += 1;
  const Tensor second = w.Clone();
  average.Update();
  const Tensor mean = average.store().Find("head").Clone();
  {
    const WeightAverage::Swap swap(average);
    EXPECT_TRUE(SameBits(w, mean));
    EXPECT_THAT(ErrorOf([&] { average.Update(); }),
                HasSubstr("WeightAverage::Update: the model has its average"));
    EXPECT_THAT(ErrorOf([&] { WeightAverage::Swap again(average); }),
                HasSubstr("WeightAverage::Swap: the model has its average"));
    EXPECT_THAT(ErrorOf([&] { average.State(); }),
                HasSubstr("the model has its average"));
    EXPECT_TRUE(SameBits(w, mean));
  }
  EXPECT_TRUE(SameBits(w, second));
  EXPECT_TRUE(SameBits(average.store().Find("w"), mean));
}

TEST(WeightAverageTest, Errors) {
  ParameterStore store;
  store.root().Ones("w", {2});
  for (double decay : {-0.1, 1.1, double{NAN}}) {
    EXPECT_THAT(ErrorOf([&] { WeightAverage(store, {.decay = decay}); }),
                HasSubstr("WeightAverage: the decay is "));
  }
  WeightAverage average(store);
  store.root().Ones("late", {2});
  EXPECT_EQ(ErrorOf([&] { average.Update(); }),
            "WeightAverage::Update: the store has 2 parameters; wanted the 1 "
            "that it had when the average was made");
}

// A small run with an average.
struct AveragedRun : SmallRun {
  TrainingRun parts() {
    TrainingRun all = SmallRun::parts();
    all.average = &average;
    return all;
  }
  // Trains for some steps from where it stands; returns what to save.
  CheckpointInfo Train(int64_t steps, const CheckpointInfo& from = {}) {
    Loop loop(parts(), {.steps = 100, .step_budget = steps});
    if (from.step > 0) loop.Restore(from);
    EXPECT_TRUE(
        loop.Run([&](absl::Span<const int64_t> rows) { return Loss(rows); })
            .ok());
    CheckpointInfo info;
    loop.Save(info);
    return info;
  }

  WeightAverage average{store, {.warm_up = true}};
};

using WeightAverageFilesTest = FilesTest;

TEST_F(WeightAverageFilesTest, AResumedRunGoesOnWithItsAverage) {
  const std::string path = Path("run.safetensors");
  AveragedRun whole, first, second;
  whole.Train(9);
  EXPECT_EQ(whole.average.updates(), 9);
  ASSERT_TRUE(SaveCheckpoint(path, first.parts(), first.Train(4)).ok());
  const auto info = LoadCheckpoint(path, second.parts());
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(second.average.updates(), 4);
  second.Train(5, *info);
  EXPECT_EQ(second.average.updates(), 9);
  const auto averaged = [](const AveragedRun& run) {
    return run.average.store().Find("up.weight");
  };
  EXPECT_TRUE(SameBits(second.up.weight(), whole.up.weight()));
  EXPECT_TRUE(SameBits(averaged(second), averaged(whole)));
  EXPECT_FALSE(SameBits(averaged(second), second.up.weight()));

  // One without an average passes over it; one with an average misses it.
  SmallRun plain;
  EXPECT_TRUE(LoadCheckpoint(path, plain.parts()).ok());
  EXPECT_TRUE(SameBits(plain.up.weight(), first.up.weight()));
  ASSERT_TRUE(SaveCheckpoint(path, plain.parts(), *info).ok());
  AveragedRun wants;
  EXPECT_THAT(
      std::string(LoadCheckpoint(path, wants.parts()).status().message()),
      HasSubstr("the file has no 'average.updates'; the file has no "
                "'average.weights.up.weight'"));
  EXPECT_EQ(wants.average.updates(), 0);
}

TEST_F(WeightAverageFilesTest, NothingIsSavedWhileTheModelHasItsAverage) {
  AveragedRun run;
  const CheckpointInfo info = run.Train(1);
  const WeightAverage::Swap swap(run.average);
  EXPECT_THAT(
      ErrorOf([&] { (void)SaveCheckpoint(Path("x"), run.parts(), info); }),
      HasSubstr("the model has its average"));
}

}  // namespace
}  // namespace wengert::train
