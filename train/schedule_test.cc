// Values of the learning-rate schedules at their corners.
#include "train/schedule.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "autograd/error.h"
#include "gtest/gtest.h"

namespace wengert::train {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

TEST(ConstantSchedule, IsConstant) {
  const ConstantSchedule lr(0.1);
  EXPECT_EQ(lr(0), 0.1);
  EXPECT_EQ(lr(1'000'000'000'000), 0.1);
  EXPECT_EQ(ConstantSchedule(0)(3), 0);
}

TEST(WarmupCosine, GoesOnWhereARunIsResumed) {
  const WarmupCosine lr(1e-3, 0, 100);
  EXPECT_NEAR(lr(44), 5.936907e-4, 5e-11);
  EXPECT_NEAR(lr(45), 5.782172e-4, 5e-11);
  EXPECT_NEAR(lr(46), 5.626666e-4, 5e-11);
  EXPECT_EQ(lr(0), 1e-3);
  EXPECT_DOUBLE_EQ(lr(50), 5e-4);
}

TEST(WarmupCosine, StaysAtTheMinimumAfterTheEnd) {
  const WarmupCosine lr(1e-3, 0, 100, 1e-4);
  EXPECT_GT(lr(99), 1e-4);
  EXPECT_EQ(lr(100), 1e-4);
  EXPECT_EQ(lr(101), 1e-4);
  EXPECT_EQ(lr(std::numeric_limits<int64_t>::max()), 1e-4);
  EXPECT_DOUBLE_EQ(lr(50), 5.5e-4);
}

TEST(WarmupCosine, WarmsUpFromAboveZero) {
  const WarmupCosine lr(0.8, 4, 8);
  EXPECT_DOUBLE_EQ(lr(0), 0.2);
  EXPECT_DOUBLE_EQ(lr(1), 0.4);
  EXPECT_DOUBLE_EQ(lr(3), 0.8);
  EXPECT_DOUBLE_EQ(lr(4), 0.8);
  EXPECT_DOUBLE_EQ(lr(6), 0.4);
  EXPECT_EQ(lr(8), 0);
}

TEST(WarmupCosine, WarmUpMayBeTheWholeRun) {
  const WarmupCosine lr(0.8, 4, 4, 0.1);
  EXPECT_DOUBLE_EQ(lr(0), 0.2);
  EXPECT_DOUBLE_EQ(lr(3), 0.8);
  EXPECT_EQ(lr(4), 0.1);
  const WarmupCosine one_step(0.8, 1, 1);
  EXPECT_EQ(one_step(0), 0.8);
  EXPECT_EQ(one_step(1), 0);
}

TEST(Schedules, RefuseBadArguments) {
  for (const double rate : {-1e-3, kNan, kInfinity}) {
    EXPECT_THROW(ConstantSchedule{rate}, Error);
    EXPECT_THROW(WarmupCosine(rate, 0, 10), Error);
    EXPECT_THROW(WarmupCosine(1, 0, 10, rate), Error);
  }
  EXPECT_THROW(WarmupCosine(1e-3, 0, 10, 2e-3), Error);
  EXPECT_THROW(WarmupCosine(1e-3, -1, 10), Error);
  EXPECT_THROW(WarmupCosine(1e-3, 11, 10), Error);
  EXPECT_THROW(WarmupCosine(1e-3, 0, 0), Error);
  EXPECT_THROW(ConstantSchedule(1)(-1), Error);
  EXPECT_THROW(WarmupCosine(1, 0, 10)(-1), Error);
  EXPECT_NO_THROW(WarmupCosine(1e-3, 10, 10, 1e-3));
}

// Expects the rates of PyTorch 2.15's scheduler of that kind.
template <class Schedule>
void ExpectRates(const Schedule& lr,
                 const std::vector<std::pair<int64_t, double>>& want) {
  for (const auto& [step, rate] : want) {
    EXPECT_NEAR(lr(step), rate, 1e-15) << "step " << step;
  }
}

TEST(LinearSchedule, AgreesWithPyTorch) {
  ExpectRates(LinearSchedule(0.025, 0.075, 8), {{0, 0.025},
                                                {1, 0.03125},
                                                {4, 0.05},
                                                {7, 0.06875},
                                                {8, 0.075},
                                                {20, 0.075}});
}

TEST(PolynomialSchedule, AgreesWithPyTorch) {
  ExpectRates(PolynomialSchedule(0.1, 10, 2),
              {{0, 0.1}, {1, 0.081}, {5, 0.025}, {9, 0.001}, {10, 0}, {12, 0}});
  EXPECT_EQ(PolynomialSchedule(0.1, 10, 1, 0.05)(10), 0.05);
}

TEST(StepSchedule, AgreesWithPyTorch) {
  ExpectRates(
      StepSchedule(0.1, 3, 0.5),
      {{0, 0.1}, {2, 0.1}, {3, 0.05}, {5, 0.05}, {6, 0.025}, {9, 0.0125}});
}

TEST(CosineRestarts, AgreesWithPyTorch) {
  ExpectRates(CosineRestarts(0.1, 5, 2, 0.01), {{0, 0.1},
                                                {1, 0.09140576474687263},
                                                {4, 0.01859423525312737},
                                                {5, 0.1},
                                                {6, 0.09779754323328192},
                                                {14, 0.012202456766718092},
                                                {15, 0.1},
                                                {34, 0.010554024673218806},
                                                {35, 0.1},
                                                {36, 0.09986128001799077}});
  ExpectRates(CosineRestarts(0.1, 4), {{0, 0.1},
                                       {3, 0.014644660940672627},
                                       {4, 0.1},
                                       {41, 0.08535533905932738}});
  EXPECT_TRUE(std::isfinite(CosineRestarts(
      1, 1, 1'000'000'000)(std::numeric_limits<int64_t>::max())));
}

TEST(OneCycle, AgreesWithPyTorch) {
  ExpectRates(OneCycle(0.1, 20), {{0, 0.004},
                                  {1, 0.013167184270002533},
                                  {3, 0.06683281572999747},
                                  {5, 0.1},
                                  {6, 0.09874640062350874},
                                  {10, 0.07169430017913009},
                                  {19, 4e-7},
                                  {25, 4e-7}});
  EXPECT_TRUE(std::isfinite(OneCycle(0.1, 2, {.rising = 0.5})(0)));
}

TEST(InverseSqrt, RisesThenFalls) {
  ExpectRates(InverseSqrt(0.4, 4),
              {{0, 0.1}, {1, 0.2}, {3, 0.4}, {15, 0.2}, {63, 0.1}});
}

TEST(ChainedSchedule, AgreesWithPyTorch) {
  const ChainedSchedule lr(
      {{LinearSchedule(0.01, 0.1, 4), 4}, {PolynomialSchedule(0.1, 6), 6}});
  ExpectRates(lr, {{0, 0.01},
                   {1, 0.0325},
                   {3, 0.0775},
                   {4, 0.1},
                   {5, 0.08333333333333334},
                   {9, 0.016666666666666663},
                   {10, 0},
                   {11, 0}});
}

TEST(Schedules, RefuseWhatIsOutOfRange) {
  EXPECT_THROW(LinearSchedule(-1, 0, 5), Error);
  EXPECT_THROW(LinearSchedule(1, kNan, 5), Error);
  EXPECT_THROW(LinearSchedule(1, 0, 0), Error);
  EXPECT_THROW(PolynomialSchedule(1, 5, 0), Error);
  EXPECT_THROW(PolynomialSchedule(1, 5, 1, 2), Error);
  EXPECT_THROW(StepSchedule(1, 0), Error);
  EXPECT_THROW(StepSchedule(1, 3, kInfinity), Error);
  EXPECT_THROW(CosineRestarts(1, 0), Error);
  EXPECT_THROW(CosineRestarts(1, 3, 0), Error);
  EXPECT_THROW(OneCycle(1, 1), Error);
  EXPECT_THROW(OneCycle(1, 9, {.rising = 1}), Error);
  EXPECT_THROW(InverseSqrt(1, 0), Error);
  EXPECT_THROW(ChainedSchedule({}), Error);
  EXPECT_THROW(ChainedSchedule({{ConstantSchedule(1), 0}}), Error);
  EXPECT_THROW(ChainedSchedule({{nullptr, 3}}), Error);
  EXPECT_THROW(OneCycle(1, 9)(-1), Error);
}

TEST(PlateauSchedule, FollowsPyTorch) {
  // ReduceLROnPlateau(factor=0.5, patience=1, threshold=0.1, cooldown=2,
  // min_lr=0.2) from 1, after each of these measures.
  const std::vector<std::pair<double, double>> steps = {
      {5.0, 1.0},  {4.0, 1.0}, {3.9, 1.0},  {3.8, 0.5},  {3.7, 0.5},
      {3.7, 0.5},  {3.7, 0.5}, {3.7, 0.25}, {3.0, 0.25}, {std::nan(""), 0.25},
      {3.0, 0.25}, {3.0, 0.2}, {3.0, 0.2},  {3.0, 0.2},  {3.0, 0.2},
      {3.0, 0.2},  {3.0, 0.2}, {3.0, 0.2},  {3.0, 0.2},
  };
  PlateauSchedule plateau(1, {.factor = 0.5,
                              .patience = 1,
                              .threshold = 0.1,
                              .cooldown = 2,
                              .min_lr = 0.2});
  PlateauSchedule higher(
      1,
      {.factor = 0.5, .patience = 1, .threshold = 0, .lower_is_better = false});
  for (const auto& [value, lr] : steps) {
    plateau.Observe(value);
    EXPECT_EQ(plateau.lr(), lr) << value;
  }
  for (const double value : {1.0, 2.0, 2.0, 1.0}) higher.Observe(value);
  EXPECT_EQ(higher.lr(), 0.5);
  for (const PlateauOptions& bad :
       {PlateauOptions{.factor = 1}, PlateauOptions{.patience = -1},
        PlateauOptions{.min_lr = -1}}) {
    EXPECT_THROW(PlateauSchedule(1, bad), Error);
  }
}

}  // namespace
}  // namespace wengert::train
