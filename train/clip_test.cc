// The global norm, what is scaled, and what happens to gradients that are not
// finite.
#include "train/clip.h"

#include <cmath>
#include <limits>

#include "autograd/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/adam.h"
#include "train/optimizer_testlib.h"
#include "train/sgd.h"

namespace wengert::train {
namespace {

using nn::ParameterStore;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class ClipGradNormTest : public ::testing::TestWithParam<DType> {
 protected:
  ParameterStore store_{GetParam()};
  Tensor a_ = store_.root().Ones("a", {2});
  Tensor b_ = store_.root().Ones("b", {1});
};
INSTANTIATE_TEST_SUITE_P(Floats, ClipGradNormTest,
                         ::testing::Values(DType::kFloat32, DType::kFloat64));

TEST_P(ClipGradNormTest, ScalesAllByTheGlobalNorm) {
  AddGradient(a_, {2, -4});
  AddGradient(b_, {4.});
  const ClipResult result = ClipGradNorm(store_, 3);
  EXPECT_EQ(result.norm, 6);
  EXPECT_TRUE(result.clipped);
  EXPECT_TRUE(result.finite);
  EXPECT_THAT(a_.grad().ToVector(), ElementsAre(1, -2));
  EXPECT_THAT(b_.grad().ToVector(), ElementsAre(2));
  EXPECT_EQ(ClipGradNorm(store_, 3).norm, 3);
}

TEST_P(ClipGradNormTest, LeavesSmallOnesAlone) {
  AddGradient(a_, {3, -4});
  for (double max_norm : {5., 6., kInfinity}) {
    const ClipResult result = ClipGradNorm(store_, max_norm);
    EXPECT_EQ(result.norm, 5);
    EXPECT_FALSE(result.clipped);
    EXPECT_TRUE(result.finite);
  }
  EXPECT_THAT(a_.grad().ToVector(), ElementsAre(3, -4));
  EXPECT_FALSE(b_.grad().defined());
}

TEST_P(ClipGradNormTest, ZerosStayZeros) {
  AddGradient(a_, {0, 0});
  for (double max_norm : {1., 0.}) {
    const ClipResult result = ClipGradNorm(store_, max_norm);
    EXPECT_EQ(result.norm, 0);
    EXPECT_FALSE(result.clipped);
    EXPECT_TRUE(result.finite);
    EXPECT_THAT(a_.grad().ToVector(), Each(0));
  }
  store_.ZeroGrad();
  EXPECT_EQ(ClipGradNorm(store_, 1).norm, 0);  // nothing gathered
}

TEST_P(ClipGradNormTest, DropsWhatIsNotFinite) {
  Adam optimizer(store_, {.lr = 0.5});
  for (double bad : {kInfinity, -kInfinity, std::nan("")}) {
    AddGradient(a_, {bad, 1});
    AddGradient(b_, {1.});
    const ClipResult result = ClipGradNorm(store_, 1);
    EXPECT_FALSE(result.finite);
    EXPECT_FALSE(result.clipped);
    EXPECT_EQ(result.norm, kInfinity);
    optimizer.Step();
    EXPECT_THAT(a_.ToVector(), ElementsAre(1, 1));
    EXPECT_EQ(b_.item(), 1);
    EXPECT_EQ(optimizer.State().parameters.at("b").step, 0);
  }
  AddGradient(b_, {1.});
  EXPECT_TRUE(ClipGradNorm(store_, 1).finite);
  optimizer.Step();
  EXPECT_NEAR(b_.item(), 0.5, 1e-6);
}

TEST_P(ClipGradNormTest, CountsOnlyGradientsThatWait) {
  Sgd optimizer(store_, {.lr = 1});
  AddGradient(a_, {3, 4});
  optimizer.Step();
  AddGradient(b_, {2.});
  EXPECT_EQ(ClipGradNorm(store_, 1).norm, 2);
  EXPECT_THAT(a_.grad().ToVector(), ElementsAre(3, 4));
  AddGradient(b_, {kInfinity});
  ClipGradNorm(store_, 1);
  EXPECT_THAT(a_.grad().ToVector(), ElementsAre(3, 4));
}

TEST_P(ClipGradNormTest, CountsASharedGradientOnce) {
  store_.root().Tied("c", a_);
  AddGradient(a_, {3, 4});
  EXPECT_EQ(ClipGradNorm(store_, kInfinity).norm, 5);
}

TEST_P(ClipGradNormTest, ReachesTheEndsOfTheRange) {
  const bool is_float = GetParam() == DType::kFloat32;
  for (double unit : {is_float ? 1e37 : 1e300, is_float ? 1e-37 : 1e-300}) {
    AddGradient(a_, {3 * unit, 4 * unit});
    EXPECT_NEAR(ClipGradNorm(store_, kInfinity).norm / unit, 5, 1e-6);
    const ClipResult result = ClipGradNorm(store_, unit);
    EXPECT_TRUE(result.finite);
    EXPECT_TRUE(result.clipped);
    EXPECT_NEAR(a_.grad().ToVector()[1] / unit, 0.8, 1e-6);
    store_.ZeroGrad();
  }
}

TEST(ClipGradNorm, AddsInDouble) {
  ParameterStore store;
  const Tensor w = store.root().Ones("w", {1'000'000});
  AddGradient(w, Tensor::Full({1'000'000}, 0.1));
  const double element = 0.1f;
  EXPECT_NEAR(ClipGradNorm(store, 1).norm, 1000 * element, 1e-11);
  EXPECT_NEAR(ClipGradNorm(store, 1).norm, 1, 1e-7);
}

TEST(ClipGradNorm, RefusesMisuse) {
  ParameterStore store;
  const Tensor w = store.root().Ones("w", {});
  EXPECT_THROW(ClipGradNorm(store, -1), Error);
  EXPECT_THROW(ClipGradNorm(store, std::nan("")), Error);
  ThrowInBackward(w);
  EXPECT_THAT([&] { ClipGradNorm(store, 1); },
              ThrowsMessage<Error>(HasSubstr("ZeroGrad first")));
  EXPECT_THAT([&] { Sgd(store).Step(); },
              ThrowsMessage<Error>(HasSubstr("ZeroGrad first")));
}

TEST(ClipGradValue, ClampsEachElement) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  nn::ParameterStore store(DType::kFloat64);
  const Tensor a = store.root().Ones("a", {4}), b = store.root().Ones("b", {1});
  AddGradient(a, {3, -0.5, -kInf, 2});
  AddGradient(b, {-4});
  const ClipResult result = ClipGradValue(store, 2);
  EXPECT_TRUE(result.clipped);
  EXPECT_TRUE(result.finite);
  EXPECT_EQ(a.grad().ToVector(), (std::vector<double>{2, -0.5, -2, 2}));
  EXPECT_EQ(b.grad().ToVector(), (std::vector<double>{-2}));
  EXPECT_FALSE(ClipGradValue(store, 2).clipped);
  EXPECT_NEAR(ClipGradValue(store, kInf).norm, std::sqrt(16.25), 1e-12);

  store.ZeroGrad();
  AddGradient(a, {1, std::nan(""), 1, 1});
  AddGradient(b, {1});
  EXPECT_FALSE(ClipGradValue(store, 2).finite);
  EXPECT_FALSE(b.grad().defined());
  EXPECT_THROW(ClipGradValue(store, -1), Error);
  EXPECT_THROW(ClipGradValue(store, std::nan("")), Error);
}

}  // namespace
}  // namespace wengert::train
