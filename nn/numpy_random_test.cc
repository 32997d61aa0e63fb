// NumPy's own numbers, from NumPy 2.4 and from the documents that begin with
// np.random.seed.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/numpy_random_testlib.h"

namespace wengert::testing {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

TEST(NumpyRandom, RandomSample) {
  NumpyRandom random(0);
  EXPECT_EQ(random.RandomSample(), 0.5488135039273248);
  EXPECT_EQ(random.RandomSample(), 0.7151893663724195);
  EXPECT_EQ(random.RandomSample(), 0.6027633760716439);
}

TEST(NumpyRandom, NormalOfSeed3) {
  NumpyRandom random(3);
  EXPECT_THAT(
      random.Normal(6),
      ElementsAre(DoubleEq(1.7886284734303186), DoubleEq(0.43650985051198943),
                  DoubleEq(0.09649746807200862), DoubleEq(-1.8634927033644908),
                  DoubleEq(-0.27738820251439905),
                  DoubleEq(-0.35475897926898675)));
  // The 48th: row 7, column 5 of the document's 8 x 6.
  EXPECT_DOUBLE_EQ(random.Normal(42).back(), 0.02971381536101662);
}

TEST(NumpyRandom, NormalOfSeed0) {
  NumpyRandom random(0);
  const std::vector<double> omega_q = random.Normal(4 * 8);
  EXPECT_DOUBLE_EQ(omega_q[0], 1.764052345967664);
  EXPECT_DOUBLE_EQ(omega_q[31], 0.37816251960217356);
  EXPECT_DOUBLE_EQ(random.Normal(4 * 8)[31], -1.7262826023316769);
  EXPECT_DOUBLE_EQ(random.Normal(), 0.17742614225375283);
}

// The second value of a pair waits while integers are drawn.
TEST(NumpyRandom, NormalAndIntegersInTurn) {
  NumpyRandom random(0);
  random.Normal(5);
  EXPECT_THAT(random.RandInt(3, 20), ElementsAre(0, 2, 0, 0, 0, 2, 1, 2, 2, 0,
                                                 1, 1, 1, 1, 0, 1, 0, 0, 1, 2));
  EXPECT_DOUBLE_EQ(random.Normal(), -0.977277879876411);
  EXPECT_DOUBLE_EQ(random.Normal(), 1.4143771877719702);
}

TEST(NumpyRandom, IntegersOfSeed42) {
  NumpyRandom random(42);
  EXPECT_THAT(random.RandInt(3, 9), ElementsAre(2, 0, 2, 2, 0, 0, 2, 1, 2));
  EXPECT_THAT(random.RandInt(3, 9), ElementsAre(2, 2, 2, 0, 2, 1, 0, 1, 1));
  EXPECT_THAT(random.RandInt(3, 9), ElementsAre(1, 1, 0, 0, 1, 1, 0, 0, 0));
}

TEST(NumpyRandom, LargestSeedAndRanges) {
  NumpyRandom random(4294967295);
  EXPECT_THAT(random.Normal(3), ElementsAre(DoubleEq(0.6484086742306527),
                                            DoubleEq(0.6693235306338161),
                                            DoubleEq(-1.0805437227474493)));
  EXPECT_THAT(random.RandInt(1000, 5), ElementsAre(539, 141, 438, 87, 311));
  EXPECT_THAT(random.RandInt(1, 2), ElementsAre(0, 0));
  EXPECT_EQ(random.RandomSample(), 0.8209010840523723);
  EXPECT_THAT(NumpyRandom(7).RandInt(int64_t{1} << 32, 4),
              ElementsAre(327741615, 976413892, 3349725721, 1369975286));
}

}  // namespace
}  // namespace wengert::testing
