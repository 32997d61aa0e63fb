#include "train/loop.h"

#include <cmath>
#include <csignal>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/clip.h"
#include "train/loop_testlib.h"
#include "train/schedule.h"
#include "train/sgd.h"

namespace wengert::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Runs, and returns what was known after each step.
struct Steps {
  absl::StatusOr<LoopEnd> end = LoopEnd{};
  std::vector<StepInfo> infos;
};
Steps Train(SmallRun& run, Loop& loop, const EvaluateFunction& evaluate = {}) {
  // The loop keeps the function that writes here.
  const auto infos = std::make_shared<std::vector<StepInfo>>();
  loop.OnStep([infos](const StepInfo& info) { infos->push_back(info); });
  const auto end =
      loop.Run([&](auto rows) { return run.Loss(rows); }, evaluate);
  return {end, *infos};
}

// The same parameters as a loop that is written out by hand.
TEST(Loop, DoesWhatTheWrittenOutLoopDoes) {
  SmallRun by_hand;
  const WarmupCosine schedule(0.05, 2, 8);
  std::vector<double> losses;
  for (int64_t step = 0; step < 8; ++step) {
    Tape tape(by_hand.generator);
    const Tensor loss = by_hand.Loss(by_hand.batches.Next()).loss;
    tape.Backward(loss);
    ClipGradNorm(by_hand.store, 0.5);
    by_hand.optimizer.set_lr(schedule(step));
    by_hand.optimizer.Step();
    losses.push_back(loss.item());
  }
  SmallRun run;
  Loop loop(run.parts(), {.steps = 8, .clip_norm = 0.5, .schedule = schedule});
  const Steps steps = Train(run, loop);
  ASSERT_TRUE(steps.end.ok());
  EXPECT_EQ(steps.end->why, LoopEnd::kSteps);
  ASSERT_EQ(steps.infos.size(), 8u);
  bool clipped = false;
  for (int64_t i = 0; i < 8; ++i) {
    const StepInfo& info = steps.infos[i];
    EXPECT_EQ(info.step, i + 1);
    EXPECT_EQ(info.loss, losses[i]);
    EXPECT_EQ(info.lr, schedule(i));
    EXPECT_EQ(info.last, i == 7);
    EXPECT_EQ(info.epoch, i / 5);
    EXPECT_EQ(info.units, i == 4 ? 2 : 3);
    clipped = clipped || info.grad_norm > 0.5;
  }
  EXPECT_TRUE(clipped);
  EXPECT_EQ(loop.state().units, 8 * 3 - 1);
  for (size_t i = 0; i < run.store.parameters().size(); ++i) {
    EXPECT_TRUE(SameBits(run.store.parameters()[i]->value,
                         by_hand.store.parameters()[i]->value));
  }
}

TEST(Loop, EndsAtEpochsStepsAndBudgets) {
  SmallRun run;
  Loop loop(run.parts(), {.steps = 100, .epochs = 2, .step_budget = 4});
  EXPECT_EQ(loop.total_steps(), 10);
  Steps steps = Train(run, loop);
  EXPECT_EQ(steps.end->why, LoopEnd::kBudget);
  EXPECT_FALSE(steps.end->complete());
  EXPECT_EQ(loop.state().step, 4);
  Train(run, loop);
  EXPECT_EQ(loop.state().step, 8);
  steps = Train(run, loop);
  EXPECT_EQ(steps.end->why, LoopEnd::kEpochs);
  EXPECT_TRUE(steps.end->complete());
  EXPECT_EQ(loop.state().step, 10);
  EXPECT_TRUE(steps.infos.back().last);
  EXPECT_EQ(run.batches.epoch(), 2);
  steps = Train(run, loop);  // it is over
  EXPECT_EQ(steps.end->why, LoopEnd::kEpochs);
  EXPECT_TRUE(steps.infos.empty());

  SmallRun accumulating;
  Loop three(accumulating.parts(), {.epochs = 2, .accumulate = 3});
  EXPECT_EQ(three.total_steps(), 4);  // of 10 batches
  Train(accumulating, three);
  EXPECT_EQ(three.state().step, 4);

  SmallRun timed;
  Loop seconds(timed.parts(), {.steps = 1000000000, .seconds = 0.01});
  EXPECT_EQ(Train(timed, seconds).end->why, LoopEnd::kBudget);
  EXPECT_GE(seconds.state().step, 1);
}

TEST(Loop, CountsTheStepsOfAnEndlessRun) {
  SmallRun run;
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Loop(run.parts(), {.epochs = kMax}).total_steps(), kMax);
  EXPECT_EQ(Loop(run.parts(), {.epochs = 1, .accumulate = kMax}).total_steps(),
            1);
}

TEST(Loop, EndsWhenAskedTo) {
  SmallRun run;
  Loop loop(run.parts(), {.steps = 100});
  loop.OnStep([&](const StepInfo& info) {
    if (info.step == 3) loop.Stop();
  });
  EXPECT_EQ(Train(run, loop).end->why, LoopEnd::kStop);
  EXPECT_EQ(loop.state().step, 3);
}

// Batches of 3 and 2 rows together weigh as the five rows in one batch.
TEST(Loop, AccumulatesByUnits) {
  const auto train = [](int64_t batch_size, int64_t accumulate) {
    SmallRun run(DType::kFloat64, /*dropout=*/0);
    Sgd sgd(run.store, {.lr = 0.3});
    BatchStream five(5, batch_size, 1, {.shuffle = false});
    Loop loop({&run.store, &sgd, &run.generator, &five},
              {.steps = 4, .accumulate = accumulate});
    const Steps steps = Train(run, loop);
    std::vector<double> values = {steps.infos[3].loss,
                                  steps.infos[3].grad_norm};
    for (const Parameter* p : run.store.parameters()) {
      const std::vector<double> v = p->value.ToVector();
      values.insert(values.end(), v.begin(), v.end());
    }
    EXPECT_EQ(steps.infos[0].units, 5);
    return values;
  };
  const std::vector<double> whole = train(5, 1), parts = train(3, 2);
  ASSERT_EQ(whole.size(), parts.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(whole[i], parts[i], 1e-13) << i;
  }
}

// Of padding alone there is nothing to learn.
TEST(Loop, AStepWithoutUnitsChangesNothing) {
  for (const int64_t accumulate : {1, 2}) {
    SmallRun run;
    const Tensor before = run.store.parameters()[0]->value.Clone();
    Loop loop(run.parts(), {.steps = 3, .accumulate = accumulate});
    loop.OnStep([&](const StepInfo& info) {
      EXPECT_EQ(info.loss, 0);
      EXPECT_FALSE(info.skipped);
    });
    const auto end = loop.Run(
        [&](auto rows) { return BatchLoss(run.Loss(rows).loss, /*units=*/0); });
    EXPECT_TRUE(end.ok());
    EXPECT_TRUE(SameBits(run.store.parameters()[0]->value, before));
  }
  SmallRun run;
  Loop loop(run.parts(), {.steps = 1});
  EXPECT_THAT(ErrorOf([&] {
                (void)loop.Run([&](auto rows) {
                  return BatchLoss(run.Loss(rows).loss, -1);
                });
              }),
              HasSubstr("a loss of -1 units"));
}

TEST(Loop, SkipsStepsThatAreNotFinite) {
  SmallRun run;
  Loop loop(run.parts(), {.steps = 6, .max_skipped = 3});
  std::vector<bool> skipped;
  std::vector<Tensor> before;
  loop.OnStep([&](const StepInfo& info) {
    skipped.push_back(info.skipped);
    const Tensor value = run.store.parameters()[0]->value;
    if (info.skipped) {
      EXPECT_TRUE(SameBits(value, before.back()));
    }
    before.push_back(value.Clone());
    run.bias = info.step == 1 || info.step == 2 || info.step == 4
                   ? (info.step == 4 ? std::nan("") : kInfinity)
                   : 0;
  });
  EXPECT_EQ(Train(run, loop).end->why, LoopEnd::kSteps);
  EXPECT_THAT(skipped, ElementsAre(false, true, true, false, true, false));
  EXPECT_EQ(loop.state().skipped, 3);
  EXPECT_EQ(loop.state().skipped_in_a_row, 0);
  for (const auto& [name, entry] : run.optimizer.State().parameters) {
    EXPECT_EQ(entry.step, 3) << name;
  }
}

TEST(Loop, GivesUpAndNamesTheOperation) {
  SmallRun run;
  Loop loop(run.parts(), {.steps = 100, .max_skipped = 3});
  int64_t n = 0;
  auto end = loop.Run([&](auto rows) {
    const Tensor loss = run.Loss(rows).loss;
    return BatchLoss(++n < 5 ? loss : Log(loss - loss));
  });
  EXPECT_EQ(n, 7);
  EXPECT_EQ(loop.state().step, 6);
  EXPECT_THAT(std::string(end.status().message()),
              AllOf(HasSubstr("step 7: 3 steps in a row were not finite"),
                    HasSubstr("Log")));
  // Where the data are at fault, it says so.
  run.bias = kInfinity;
  end = loop.Run([&](auto rows) { return run.Loss(rows); });
  EXPECT_THAT(std::string(end.status().message()),
              HasSubstr("values that were not finite before"));
  end = loop.Run([&](auto) {
    return BatchLoss(Mean(run.store.parameters()[0]->value) +
                     Tensor::Full({}, kInfinity));
  });
  EXPECT_THAT(std::string(end.status().message()),
              HasSubstr("look at the parameters and the data"));
}

TEST(Loop, EvaluatesKeepsTheBestAndLosesPatience) {
  SmallRun run;
  const std::vector<double> accuracies = {.1, std::nan(""), .5, .5, .4, .9};
  size_t n = 0;
  const auto evaluate = [&]() -> std::vector<Metric> {
    EXPECT_EQ(Tape::Current(), nullptr);
    return {{"loss", 1}, {"accuracy", accuracies[n++]}};
  };
  Loop loop(run.parts(), {.steps = 100,
                          .evaluate_every = 4,
                          .best_metric = "accuracy",
                          .lower_is_better = false,
                          .patience = 2});
  const Steps steps = Train(run, loop, evaluate);
  EXPECT_EQ(steps.end->why, LoopEnd::kPatience);
  EXPECT_TRUE(steps.end->complete());
  EXPECT_EQ(loop.state().step, 20);
  EXPECT_EQ(*loop.state().best, .5);
  std::vector<int64_t> evaluated, best;
  for (const StepInfo& info : steps.infos) {
    if (!info.evaluation.empty()) evaluated.push_back(info.step);
    if (info.best) best.push_back(info.step);
  }
  EXPECT_THAT(evaluated, ElementsAre(4, 8, 12, 16, 20));
  EXPECT_THAT(best, ElementsAre(4, 12));
  EXPECT_TRUE(steps.infos.back().last);

  SmallRun other;
  n = 0;
  Loop to_the_end(other.parts(), {.steps = 6, .evaluate_every = 4});
  Train(other, to_the_end, evaluate);
  EXPECT_EQ(n, 2u);  // after 4 and at the end
  Loop no_metric(other.parts(), {.steps = 7, .patience = 1});
  EXPECT_THAT(ErrorOf([&] { Train(other, no_metric, evaluate); }),
              HasSubstr("no \"eval/loss\""));
}

TEST(Loop, AnExceptionLeavesNoGradient) {
  SmallRun run;
  const std::vector<double> before =
      run.store.parameters()[0]->value.ToVector();
  Loop loop(run.parts(), {.steps = 2, .accumulate = 2});
  int calls = 0;
  const auto loss = [&](absl::Span<const int64_t> rows) -> BatchLoss {
    if (++calls == 2) throw Error("no such batch");
    return run.Loss(rows);
  };
  EXPECT_EQ(ErrorOf([&] { (void)loop.Run(loss); }), "no such batch");
  for (const Parameter* p : run.store.parameters()) {
    EXPECT_EQ(p->state, Parameter::Grad::kNone);
  }
  EXPECT_EQ(loop.state().step, 0);
  EXPECT_EQ(run.store.parameters()[0]->value.ToVector(), before);
  EXPECT_TRUE(loop.Run(loss).ok());  // and goes on
}

TEST(Loop, AScheduleThatThrowsLeavesNoNewGradient) {
  SmallRun run;
  const auto schedule = [](int64_t step) {
    if (step == 1) throw Error("no rate");
    return 0.1;
  };
  Loop loop(run.parts(), {.steps = std::numeric_limits<int64_t>::max(),
                          .epochs = std::numeric_limits<int64_t>::max(),
                          .schedule = schedule});
  EXPECT_EQ(ErrorOf([&] { Train(run, loop); }), "no rate");
  EXPECT_EQ(loop.state().step, 1);
  for (const Parameter* p : run.store.parameters()) {
    EXPECT_EQ(p->state, Parameter::Grad::kUsed);
  }
}

TEST(Loop, StateComesBackFromACheckpoint) {
  SmallRun run;
  Loop loop(run.parts(), {.steps = 9, .schedule_name = "none"});
  loop.OnStep(
      [&](const StepInfo& i) { run.bias = i.step > 6 ? kInfinity : 0; });
  Train(run, loop, [] { return std::vector<Metric>{{"eval/loss", 0.25}}; });
  CheckpointInfo info;
  loop.Save(info);
  EXPECT_EQ(info.step, 9);
  EXPECT_EQ(info.schedule, "none");
  EXPECT_EQ(info.cursor->position, run.batches.position());
  Loop other(run.parts(), {.steps = 9});
  other.Restore(info);
  EXPECT_EQ(other.state().step, 9);
  EXPECT_EQ(other.state().skipped, 2);
  EXPECT_EQ(other.state().skipped_in_a_row, 2);
  EXPECT_EQ(other.state().units, loop.state().units);
  EXPECT_EQ(*other.state().best, 0.25);
  other.Restore({});
  EXPECT_FALSE(other.state().best.has_value());
  for (const double bad : {1e300, -1.0, std::nan("")}) {
    info.metrics["loop.units"] = bad;
    other.Restore(info);
    EXPECT_EQ(other.state().units, 0);
  }
}

TEST(Loop, RefusesOptionsOutOfRange) {
  SmallRun run;
  const auto error = [&](LoopOptions options) {
    return ErrorOf([&] { Loop loop(run.parts(), options); });
  };
  EXPECT_EQ(error({}), "Loop: steps is 0; wanted more, or epochs");
  EXPECT_THAT(error({.steps = -1}), HasSubstr("steps is -1"));
  EXPECT_THAT(error({.steps = 1, .accumulate = 0}), HasSubstr("accumulate"));
  EXPECT_THAT(error({.steps = 1, .clip_norm = std::nan("")}),
              HasSubstr("clip_norm is nan"));
  EXPECT_THAT(error({.steps = 1, .max_skipped = 0}), HasSubstr("max_skipped"));
  EXPECT_THAT(ErrorOf([&] { Loop loop({&run.store}, {.steps = 1}); }),
              HasSubstr("an optimizer"));
}

TEST(Loop, EndsAfterTheStepThatASignalFinds) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    SmallRun run;
    Loop loop(run.parts(), {.steps = 100});
    loop.OnStep([&](const StepInfo& info) {
      if (info.step == 5) raise(signal);
    });
    const Steps steps = Train(run, loop);
    EXPECT_EQ(steps.end->why, LoopEnd::kSignal);
    EXPECT_EQ(steps.end->signal, signal);
    EXPECT_EQ(loop.state().step, 5);
  }
}

TEST(Loop, ARateThatFollowsAMeasureGoesOnWhereItStood) {
  const auto evaluate = [] { return std::vector<Metric>{{"eval/loss", 1}}; };
  const auto rates = [&](Loop& loop, SmallRun& run) {
    auto result = std::make_shared<std::vector<double>>();
    loop.OnStep([=](const StepInfo& info) { result->push_back(info.lr); });
    EXPECT_TRUE(
        loop.Run([&](auto rows) { return run.Loss(rows); }, evaluate).ok());
    return *result;
  };
  const PlateauOptions options = {.factor = 0.5, .patience = 1, .cooldown = 1};
  SmallRun straight;
  PlateauSchedule whole(0.5, options);
  Loop loop(straight.parts(),
            {.steps = 12, .plateau = &whole, .evaluate_every = 1});
  const std::vector<double> want = rates(loop, straight);
  EXPECT_EQ(want.front(), 0.5);
  EXPECT_LT(want.back(), 0.2);

  SmallRun run;
  PlateauSchedule first(0.5, options), second(7, options);
  const auto with = [&](PlateauSchedule& plateau, int64_t budget) {
    return Loop(run.parts(), {.steps = 12,
                              .step_budget = budget,
                              .plateau = &plateau,
                              .evaluate_every = 1});
  };
  Loop before = with(first, 4), after = with(second, 0);
  std::vector<double> got = rates(before, run);
  CheckpointInfo info;
  before.Save(info);
  after.Restore(info);
  for (const double lr : rates(after, run)) got.push_back(lr);
  EXPECT_EQ(got, want);
  EXPECT_THAT(
      ErrorOf([&] {
        Loop(run.parts(),
             {.steps = 1, .schedule = ConstantSchedule(1), .plateau = &first});
      }),
      HasSubstr("wanted one of them"));
}

}  // namespace
}  // namespace wengert::train
