// Values of the learning-rate schedules at their corners.
#include "train/schedule.h"

#include <cmath>
#include <limits>

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

}  // namespace
}  // namespace wengert::train
