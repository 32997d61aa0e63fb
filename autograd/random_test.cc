#include "autograd/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "autograd/error.h"
#include "autograd/parallel.h"
#include "gtest/gtest.h"

namespace wengert {
namespace {

constexpr uint64_t kSeed = 0x123456789abcdef;
constexpr uint64_t kOffset = 5;

template <typename T>
std::vector<T> Uniform(double lo, double hi, int64_t n,
                       uint64_t offset = kOffset) {
  std::vector<T> y(n);
  FillUniform(kSeed, offset, lo, hi, n, y.data());
  return y;
}

template <typename T>
std::vector<T> Normal(double mean, double stddev, int64_t n,
                      uint64_t offset = kOffset) {
  std::vector<T> y(n);
  FillNormal(kSeed, offset, mean, stddev, n, y.data());
  return y;
}

template <typename T>
std::vector<T> TruncatedNormal(double mean, double stddev, double lo, double hi,
                               int64_t n, uint64_t offset = kOffset) {
  std::vector<T> y(n);
  FillTruncatedNormal(kSeed, offset, mean, stddev, lo, hi, n, y.data());
  return y;
}

// The mean of f over x.
template <typename T, typename F>
double Mean(const std::vector<T>& x, F f) {
  double sum = 0;
  for (T v : x) sum += f(v);
  return sum / x.size();
}

// The known answers of Random123's kat_vectors for philox4x32, 10 rounds.
TEST(PhiloxTest, KnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox::Block(0, 0, 0),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint64_t kOnes = ~uint64_t{0};
  EXPECT_EQ(Philox::Block(kOnes, kOnes, kOnes),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      Philox::Block(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
      (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  static_assert(Philox::Block(0, 0, 0)[0] == 0x6627e8d5);
}

TEST(GeneratorTest, TakesOneOffsetAnOperation) {
  Generator generator(7, 40);
  EXPECT_EQ(generator.seed(), 7u);
  EXPECT_EQ(generator.Take(), 40u);
  EXPECT_EQ(generator.Take(), 41u);
  EXPECT_EQ(generator.offset(), 42u);
  generator.set_offset(3);
  EXPECT_EQ(generator.Take(), 3u);
  EXPECT_EQ(Generator(7).offset(), 0u);
}

// Computed independently, in Python. Whoever changes a stream changes what
// every saved seed means.
TEST(StreamTest, NeverChanges) {
  const uint32_t bits[] = {0xb341ed12, 0x7899c9cc, 0x8d35f144,
                           0x68eba6fb, 0xd0460919, 0x520893a9};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(RandomBits(kSeed, kOffset, i), bits[i]) << i;
  }
  const uint64_t bits64[] = {0x7899c9ccb341ed12, 0x68eba6fb8d35f144,
                             0x520893a9d0460919, 0xa1bd1919cd7aeb5c};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(RandomBits64(kSeed, kOffset, i), bits64[i]) << i;
  }
  const double uniform01[] = {0x1.e2672732cd07ap-2, 0x1.a3ae9bee34d7cp-2,
                              0x1.48224ea741182p-2, 0x1.437a32339af5dp-1,
                              0x1.556d0a0c895e0p-5};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Uniform01(kSeed, kOffset, i), uniform01[i]) << i;
  }
  EXPECT_EQ(Uniform<double>(-0.5, 1.5, 5),
            (std::vector<double>{0x1.c4ce4e659a0f4p-2, 0x1.475d37dc69af8p-2,
                                 0x1.20893a9d04608p-3, 0x1.86f4646735ebap-1,
                                 -0x1.aaa4bd7cdda88p-2}));
  const double normal[] = {0.92939412058622,   4.316862857906939,
                           0.9593735882747105, 0.7773345974459263,
                           7.997081889882009,  3.6718877741881957};
  const auto y = Normal<double>(3, 2, 6);
  for (int i = 0; i < 6; ++i) {  // libm's last bit may differ
    EXPECT_NEAR(y[i], normal[i], 4e-15) << i;
  }
  const int64_t integers[] = {471, 409, 320, 631, 41, 21};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(UniformInt(kSeed, kOffset, i, 1000), integers[i]) << i;
  }
  EXPECT_EQ(Permutation(kSeed, kOffset, 10),
            (std::vector<int64_t>{1, 8, 4, 9, 5, 0, 7, 2, 3, 6}));
  EXPECT_EQ(StreamKey(0, ""), 0x5b21f68ffa77f14c);
  EXPECT_EQ(StreamKey(0, "weight"), 0x8478013ed1b6f90d);
  EXPECT_EQ(StreamKey(1, "weight"), 0xf6db3ac4c530fc47);
  EXPECT_EQ(StreamKey(1, "layers.0.mlp.up.weight"), 0xf76f98ce3c8c074f);
}

// By SciPy from Philox in Python. The upper tail is drawn from its own end.
TEST(StreamTest, TruncatedNormalsNeverChange) {
  const std::vector<double> wide = {3.5212571391268663, 3.3250300621264812,
                                    3.0436397320207345, 4.067192339922409,
                                    2.145353235955029,  2.0747972403585537};
  const std::vector<double> tail = {5.1424872869010505, 5.16838117130617,
                                    5.213758775984447,  5.0874371086061245,
                                    5.567884602375932,  5.671849891349006};
  const auto y = TruncatedNormal<double>(3, 2, 2, 6, 6);
  const auto z = TruncatedNormal<double>(0, 1, 5, 6, 6);
  const auto mirrored = TruncatedNormal<double>(0, 1, -6, -5, 6);
  const auto single = TruncatedNormal<float>(0, 1, 5, 6, 6);
  for (int i = 0; i < 6; ++i) {
    EXPECT_NEAR(y[i], wide[i], 4e-15) << i;
    EXPECT_NEAR(z[i], tail[i], 8e-15) << i;
    EXPECT_EQ(mirrored[i], -z[i]) << i;
    EXPECT_EQ(single[i], static_cast<float>(z[i])) << i;
  }
}

TEST(StreamTest, AnElementDependsOnSeedOffsetAndIndexOnly) {
  constexpr int64_t n = 100001;  // several chunks
  const std::vector<double> uniform = Uniform<double>(0, 1, n);
  const std::vector<double> normal = Normal<double>(0, 1, n);
  const auto truncated = TruncatedNormal<double>(0, 1, -1, 2, n);
  const std::vector<double> chances(n, 0.3);
  std::vector<double> coins(n), again(n);
  FillBernoulli(kSeed, kOffset, n, chances.data(), coins.data());
  for (int threads : {1, 2, 3, 5}) {
    SetNumThreads(threads);
    EXPECT_EQ(TruncatedNormal<double>(0, 1, -1, 2, n), truncated);
    FillBernoulli(kSeed, kOffset, n, chances.data(), again.data());
    EXPECT_EQ(again, coins);
    EXPECT_EQ(Uniform<double>(0, 1, n), uniform);
    EXPECT_EQ(Normal<double>(0, 1, n), normal);
  }
  for (int64_t i = 0; i < n; i += 997) {
    ASSERT_EQ(uniform[i], Uniform01(kSeed, kOffset, i)) << i;
    ASSERT_EQ(coins[i], uniform[i] < 0.3) << i;
  }
  for (int64_t m : {0, 1, 2, 5, 16384, 16385, 16386}) {
    EXPECT_EQ(Uniform<double>(0, 1, m),
              std::vector<double>(uniform.begin(), uniform.begin() + m));
    EXPECT_EQ(Normal<double>(0, 1, m),
              std::vector<double>(normal.begin(), normal.begin() + m));
    EXPECT_EQ(TruncatedNormal<double>(0, 1, -1, 2, m),
              std::vector<double>(truncated.begin(), truncated.begin() + m));
  }
}

TEST(StreamTest, SeedsAndOffsetsGiveOtherStreams) {
  std::set<uint64_t> seen;
  for (uint64_t seed : {0, 1, 2}) {
    for (uint64_t offset : {0, 1, 2}) {
      for (uint64_t i = 0; i < 100; ++i) {
        seen.insert(RandomBits64(seed, offset, i));
      }
      seen.insert(StreamKey(seed, std::to_string(offset)));
    }
  }
  EXPECT_EQ(seen.size(), 909u);
}

TEST(StreamTest, FloatsAreTheRoundedDoubles) {
  const auto uniform = Uniform<double>(-0.3, 0.7, 10000);
  const auto uniform_float = Uniform<float>(-0.3, 0.7, 10000);
  const auto normal = Normal<double>(1, 0.02, 10000);
  const auto normal_float = Normal<float>(1, 0.02, 10000);
  for (int i = 0; i < 10000; ++i) {
    ASSERT_EQ(uniform_float[i], static_cast<float>(uniform[i])) << i;
    ASSERT_EQ(normal_float[i], static_cast<float>(normal[i])) << i;
  }
}

TEST(UniformTest, MomentsAndEvenness) {
  constexpr int64_t n = 400000;
  const auto x = Uniform<double>(0, 1, n);
  // Bounds of five standard errors.
  const double bound = 5 / std::sqrt(n);
  EXPECT_NEAR(Mean(x, [](double v) { return v; }), 0.5, bound * 0.289);
  EXPECT_NEAR(Mean(x, [](double v) { return v * v; }), 1. / 3, bound * 0.299);
  std::vector<double> products(n - 1);  // neighbours are independent
  for (int64_t i = 0; i + 1 < n; ++i) {
    products[i] = (x[i] - 0.5) * (x[i + 1] - 0.5);
  }
  EXPECT_NEAR(Mean(products, [](double v) { return v; }), 0, bound / 12);
  // Chi square over 100 bins: mean 99, standard deviation 14.
  std::vector<int> bins(100, 0);
  for (double v : x) ++bins[static_cast<int>(v * 100)];
  double chi2 = 0;
  for (int count : bins) chi2 += std::pow(count - n / 100., 2) / (n / 100.);
  EXPECT_GT(chi2, 40);
  EXPECT_LT(chi2, 170);
  // Each of 53 bits is set half the time.
  for (int bit = 0; bit < 53; ++bit) {
    const double ones = Mean(x, [&](double v) {
      return static_cast<int64_t>(v * 0x1p53) >> bit & 1;
    });
    EXPECT_NEAR(ones, 0.5, bound / 2) << bit;
  }
}

TEST(UniformTest, StaysBelowTheUpperBound) {
  for (float v : Uniform<float>(0, 1, 100000)) {
    ASSERT_GE(v, 0);
    ASSERT_LT(v, 1);
  }
  // Half of these would round to the upper bound.
  const float hi = 1 + std::numeric_limits<float>::epsilon();
  EXPECT_EQ(Uniform<float>(1, hi, 1000), std::vector<float>(1000, 1.f));
  const double hi2 = 1 + std::numeric_limits<double>::epsilon();
  EXPECT_EQ(Uniform<double>(1, hi2, 1000), std::vector<double>(1000, 1.));
  EXPECT_EQ(Uniform<float>(2, 2, 10), std::vector<float>(10, 2.f));
  const auto x = Uniform<double>(-3, -2, 100000);
  EXPECT_GE(*std::min_element(x.begin(), x.end()), -3);
  EXPECT_LT(*std::min_element(x.begin(), x.end()), -2.9999);
  EXPECT_LT(*std::max_element(x.begin(), x.end()), -2);
  EXPECT_GT(*std::max_element(x.begin(), x.end()), -2.0001);
}

TEST(NormalTest, Moments) {
  constexpr int64_t n = 400000;
  const auto x = Normal<double>(2, 3, n);
  auto moment = [&](int power) {
    return Mean(x, [&](double v) { return std::pow((v - 2) / 3, power); });
  };
  // Bounds of five standard errors.
  const double bound = 5 / std::sqrt(n);
  EXPECT_NEAR(moment(1), 0, bound);
  EXPECT_NEAR(moment(2), 1, bound * std::sqrt(2));
  EXPECT_NEAR(moment(3), 0, bound * std::sqrt(15));
  EXPECT_NEAR(moment(4), 3, bound * std::sqrt(96));
  // P(|z| < 1) and P(z < -2).
  EXPECT_NEAR(Mean(x, [](double v) { return std::abs(v - 2) < 3; }), 0.682689,
              bound * 0.466);
  EXPECT_NEAR(Mean(x, [](double v) { return v < -4; }), 0.0227501,
              bound * 0.15);
  std::vector<double> products(n - 1);  // neighbours are independent
  for (int64_t i = 0; i + 1 < n; ++i) {
    products[i] = (x[i] - 2) * (x[i + 1] - 2) / 9;
  }
  EXPECT_NEAR(Mean(products, [](double v) { return v; }), 0, bound);
}

TEST(NormalTest, IsFiniteAndWithoutDeviationTheMean) {
  for (float v : Normal<float>(0, 1, 1000000)) ASSERT_LT(std::abs(v), 8.6);
  EXPECT_EQ(Normal<double>(4, 0, 10), std::vector<double>(10, 4.));
}

// Mean and variance are SciPy's.
TEST(TruncatedNormalTest, MomentsAndBounds) {
  constexpr int64_t n = 400000;
  const struct {
    double lo, hi, mean, variance;
  } cases[] = {
      {-2, 2, 0, 0.7737413035499232},
      {-1, 3, 0.2827861107271541, 0.6161417353578291},
      {5, 6, 5.183147090477182, 0.029452430768436844},
      {-HUGE_VAL, -1, -1.525135276160981, 0.19909766557034903},
      {-HUGE_VAL, HUGE_VAL, 0, 1},
  };
  const double bound = 5 / std::sqrt(n);
  for (const auto& c : cases) {
    SCOPED_TRACE(testing::Message() << c.lo << " to " << c.hi);
    const auto x = TruncatedNormal<double>(0, 1, c.lo, c.hi, n);
    EXPECT_GE(*std::min_element(x.begin(), x.end()), c.lo);
    EXPECT_LE(*std::max_element(x.begin(), x.end()), c.hi);
    EXPECT_NEAR(Mean(x, [](double v) { return v; }), c.mean,
                bound * std::sqrt(c.variance));
    EXPECT_NEAR(Mean(x, [&](double v) { return (v - c.mean) * (v - c.mean); }),
                c.variance, bound * 3 * c.variance);
    // Chi square over 50 bins of equal probability: mean 49, deviation 10.
    const double all = NormalProbability(c.lo, c.hi);
    std::vector<int> bins(50, 0);
    for (double v : x) {
      ++bins[std::min(49,
                      static_cast<int>(50 * NormalProbability(c.lo, v) / all))];
    }
    double chi2 = 0;
    for (int count : bins) chi2 += std::pow(count - n / 50., 2) / (n / 50.);
    EXPECT_GT(chi2, 15);
    EXPECT_LT(chi2, 110);
  }
}

TEST(TruncatedNormalTest, FloatsStayWithinTheirBounds) {
  for (float v : TruncatedNormal<float>(0, 1, 0.1, 0.1000001, 10000)) {
    ASSERT_GE(v, 0.1f);
    ASSERT_LE(v, 0.1000001f);
  }
}

TEST(NormalProbabilityTest, KeepsItsAccuracyInTails) {
  EXPECT_NEAR(NormalProbability(-1, 2), 0.8185946141203637, 1e-15);
  EXPECT_NEAR(NormalProbability(-5, -2) / 0.022749845296607316, 1, 1e-14);
  EXPECT_NEAR(NormalProbability(30, 31) / 4.9067139271476384e-198, 1, 1e-12);
  EXPECT_EQ(NormalProbability(-HUGE_VAL, HUGE_VAL), 1);
}

TEST(BernoulliTest, KnownAnswersAndFrequencies) {
  // Beside the uniform numbers of NeverChanges: 0.47, 0.41, 0.32, 0.63, 0.04.
  const float p[] = {0.5f, 0.4f, 0.3f, 0.7f, 0.04f};
  float y[5];
  FillBernoulli(kSeed, kOffset, 5, p, y);
  EXPECT_EQ(std::vector<float>(y, y + 5), (std::vector<float>{1, 0, 0, 1, 0}));
  constexpr int64_t n = 400000;
  std::vector<float> chances(n), coins(n);
  for (int64_t i = 0; i < n; ++i) chances[i] = i % 4 / 3.f;
  FillBernoulli(kSeed, 9, n, chances.data(), coins.data());
  double ones[4] = {};
  for (int64_t i = 0; i < n; ++i) ones[i % 4] += coins[i];
  EXPECT_EQ(ones[0], 0);
  EXPECT_EQ(ones[3], n / 4);
  for (int i : {1, 2}) {
    EXPECT_NEAR(ones[i] / (n / 4), i / 3., 5 * 0.4714 / std::sqrt(n / 4)) << i;
  }
}

TEST(UniformIntTest, RangeAndEvenness) {
  std::vector<int> count(7, 0);
  for (int i = 0; i < 70000; ++i) {
    const int64_t v = UniformInt(kSeed, 1, i, 7);
    ASSERT_GE(v, 0);
    ASSERT_LT(v, 7);
    ++count[v];
  }
  for (int c : count) EXPECT_NEAR(c, 10000, 5 * 93);
  EXPECT_EQ(UniformInt(kSeed, 1, 0, 1), 0);
  // Beyond 2^53 as well.
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const int64_t v = UniformInt(kSeed, 1, i, kMax);
    ASSERT_GE(v, 0);
    sum += static_cast<double>(v) / static_cast<double>(kMax);
  }
  EXPECT_NEAR(sum / 10000, 0.5, 5 * 0.00289);
}

TEST(PermutationTest, EveryOrderIsEquallyLikely) {
  EXPECT_EQ(Permutation(kSeed, 0, 0), std::vector<int64_t>());
  EXPECT_EQ(Permutation(kSeed, 0, 1), std::vector<int64_t>{0});
  auto order = Permutation(kSeed, 0, 1000);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  std::vector<int64_t> all(1000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order, all);

  std::array<int, 27> count{};
  for (int offset = 0; offset < 12000; ++offset) {
    const auto p = Permutation(kSeed, offset, 3);
    ++count[p[0] * 9 + p[1] * 3 + p[2]];
  }
  EXPECT_EQ(std::count(count.begin(), count.end(), 0), 21);
  for (int c : count) {
    if (c > 0) {
      EXPECT_NEAR(c, 2000, 5 * 41);
    }
  }
}

TEST(RandomTest, Misuse) {
  double y[2];
  EXPECT_THROW(FillUniform(0, 0, 1., 0.5, 2, y), Error);
  EXPECT_THROW(FillUniform(0, 0, std::nan(""), 1, 2, y), Error);
  EXPECT_THROW(FillNormal(0, 0, 0, -1, 2, y), Error);
  EXPECT_THROW(FillNormal(0, 0, 0, std::nan(""), 2, y), Error);
  EXPECT_THROW(FillTruncatedNormal(0, 0, 0, 0, -1, 1, 2, y), Error);
  EXPECT_THROW(FillTruncatedNormal(0, 0, 0, 1, 1, 1, 2, y), Error);
  EXPECT_THROW(FillTruncatedNormal(0, 0, 0, 1, 2, 1, 2, y), Error);
  EXPECT_THROW(FillTruncatedNormal(0, 0, 0, 1, 40, 41, 2, y), Error);
  EXPECT_THROW(FillTruncatedNormal(0, 0, std::nan(""), 1, 0, 1, 2, y), Error);
  EXPECT_THROW(UniformInt(0, 0, 0, 0), Error);
  EXPECT_THROW(Permutation(0, 0, -1), Error);
}

}  // namespace
}  // namespace wengert
