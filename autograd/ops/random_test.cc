// Random arrays: their streams, their distributions, what they refuse.
#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr uint64_t kSeed = 0x123456789abcdef;

// Every operation takes the next offset and is the fill from it.
TEST(RandomTest, EachTakesOneOffset) {
  for (DType dtype : kFloats) {
    Generator g(kSeed, 5);
    const Tensor uniform = RandomUniform({3, 2}, g, -0.5, 1.5, dtype);
    const Tensor normal = RandomNormal({6}, g, 3, 2, dtype);
    const Tensor truncated =
        RandomTruncatedNormal({2, 3}, g, 3, 2, 2, 6, dtype);
    const Tensor coins = RandomBernoulli(Tensor::Full({6}, 0.5, dtype), g);
    EXPECT_EQ(g.offset(), 9u);
    RandomPermutation(4, g);
    RandomCategorical(Tensor::Zeros({4}, dtype), 3, g);
    RandomUniform({0}, g);
    EXPECT_EQ(g.offset(), 12u);
    EXPECT_EQ(uniform.shape(), (Shape{3, 2}));
    EXPECT_EQ(coins.dtype(), dtype);
    WithFloat(dtype, [&](auto t) {
      using T = decltype(t);
      T want[6];
      const auto expect = [&](const Tensor& got) {
        EXPECT_EQ(std::vector<T>(got.data<T>(), got.data<T>() + 6),
                  std::vector<T>(want, want + 6));
      };
      FillUniform(kSeed, 5, -0.5, 1.5, 6, want);
      expect(uniform);
      FillNormal(kSeed, 6, 3, 2, 6, want);
      expect(normal);
      FillTruncatedNormal(kSeed, 7, 3, 2, 2, 6, 6, want);
      expect(truncated);
      const std::vector<T> half(6, T(0.5));
      FillBernoulli(kSeed, 8, 6, half.data(), want);
      expect(coins);
    });
  }
}

TEST(RandomTest, DefaultsAreTheStandardOnes) {
  Generator g(1), h(1);
  EXPECT_TRUE(SameBits(RandomUniform({9}, g), RandomUniform({9}, h, 0, 1)));
  EXPECT_TRUE(SameBits(RandomNormal({9}, g), RandomNormal({9}, h, 0, 1)));
  EXPECT_TRUE(SameBits(RandomTruncatedNormal({9}, g),
                       RandomTruncatedNormal({9}, h, 0, 1, -2, 2)));
}

TEST(RandomTest, UniformStaysBelowItsUpperBound) {
  Generator g(1);
  const float hi = 1 + std::numeric_limits<float>::epsilon();
  for (double v : RandomUniform({1000}, g, 1, hi).ToVector()) ASSERT_EQ(v, 1);
}

// From the uniform numbers of the stream, which Python made: .471, .410, .320,
// .632, .042, .021, .385, .343, .393, .677, .443, .622.
TEST(RandomCategoricalTest, KnownAnswers) {
  const std::vector<double> p = {0.1, 0.2, 0.3, 0.4};
  for (DType dtype : kFloats) {
    Generator g(kSeed, 5);
    const Tensor row = Log(Values(p, dtype)) + 7;  // need not be normalised
    EXPECT_THAT(RandomCategorical(row, 12, g).ToVector(),
                ElementsAre(2, 2, 2, 3, 0, 0, 2, 2, 2, 3, 2, 3));
    g.set_offset(5);
    const Tensor rows = BroadcastTo(row, {2, 3, 4});
    const Tensor y = RandomCategorical(rows, 2, g);
    EXPECT_EQ(y.shape(), (Shape{2, 3, 2}));
    EXPECT_EQ(y.dtype(), DType::kInt64);
    EXPECT_THAT(y.ToVector(), ElementsAre(2, 2, 2, 3, 0, 0, 2, 2, 2, 3, 2, 3));
  }
}

TEST(RandomCategoricalTest, Frequencies) {
  constexpr int64_t n = 200000;
  const Tensor logits =
      Values({2, 5}, {-kInf, 0, std::log(3), -kInf, std::log(2),  //
                      -1000, -1001, -999, -kInf, -kInf});
  const double p[2][5] = {{0, 1 / 6., 3 / 6., 0, 2 / 6.},
                          {.24472847, .09003057, .66524096, 0, 0}};
  Generator g(3);
  const Tensor y = RandomCategorical(logits, n, g);
  for (int r = 0; r < 2; ++r) {
    double count[5] = {};
    for (int64_t v : y.span<int64_t>().subspan(r * n, n)) ++count[v];
    double chi2 = 0;
    for (int c = 0; c < 5; ++c) {
      const double want = p[r][c] * n;
      if (want == 0) {
        EXPECT_EQ(count[c], 0) << "drawn, though its logit is -infinity";
      } else {
        chi2 += (count[c] - want) * (count[c] - want) / want;
      }
    }
    EXPECT_LT(chi2, 14);  // two degrees of freedom: one in a thousand
  }
}

TEST(RandomCategoricalTest, Nothing) {
  Generator g(1);
  EXPECT_EQ(RandomCategorical(Tensor::Zeros({0, 3}), 2, g).shape(),
            (Shape{0, 2}));
  EXPECT_THAT(RandomCategorical(Tensor::Zeros({3}), 0, g).ToVector(),
              IsEmpty());
  EXPECT_THAT(RandomCategorical(Tensor::Zeros({1}), 3, g).ToVector(),
              ElementsAre(0, 0, 0));
}

TEST(RandomPermutationTest, IsThePermutation) {
  Generator g(kSeed, 5);
  const Tensor y = RandomPermutation(10, g);
  EXPECT_EQ(y.dtype(), DType::kInt64);
  EXPECT_THAT(y.ToVector(), ElementsAre(1, 8, 4, 9, 5, 0, 7, 2, 3, 6));
  EXPECT_EQ(RandomPermutation(0, g).shape(), (Shape{0}));
}

TEST(RandomTest, NothingIsRecorded) {
  Generator g(1);
  Tape tape(g);
  const Tensor p = Tensor::Full({3}, 0.5);
  tape.Watch(p);
  EXPECT_FALSE(tape.Tracks(RandomBernoulli(p, g)));
  EXPECT_FALSE(tape.Tracks(RandomCategorical(p, 2, g)));
  EXPECT_EQ(tape.size(), 0u);
}

TEST(RandomTest, SameBitsForAnyNumberOfThreads) {
  const auto draw = [](Inputs x) {
    Generator g(5);
    return Concat(
        {{x[0], RandomUniform({100003}, g), RandomNormal({100003}, g),
          RandomTruncatedNormal({100003}, g), RandomBernoulli(x[0], g),
          Reshape(RandomCategorical(Reshape(x[0], {100, 1000}), 50, g), {-1})
              .To(DType::kFloat32)}},
        0);
  };
  ExpectSameBitsForThreads(draw, {Tensor::Full({100000}, 0.3)});
}

// An error takes no offset.
TEST(RandomTest, Errors) {
  Generator g(1);
  EXPECT_EQ(ErrorOf([&] { RandomUniform({2}, g, 1, 0); }),
            "RandomUniform: bounds 1 and 0; wanted finite ones with lo <= hi");
  EXPECT_THAT(ErrorOf([&] { RandomUniform({2}, g, 0, kInf); }),
              StartsWith("RandomUniform: bounds 0 and inf"));
  EXPECT_THAT(ErrorOf([&] { RandomUniform({2}, g, NAN, 1); }),
              StartsWith("RandomUniform: bounds nan"));
  EXPECT_EQ(ErrorOf([&] { RandomUniform({2}, g, 0, 1, DType::kInt32); }),
            "RandomUniform: dtype int32; wanted float32 or float64");
  EXPECT_THAT(ErrorOf([&] { RandomNormal({2}, g, 0, -1); }),
              StartsWith("RandomNormal: mean 0, stddev -1; wanted"));
  EXPECT_THAT(ErrorOf([&] { RandomNormal({2}, g, kInf, 1); }),
              StartsWith("RandomNormal: mean inf"));
  EXPECT_THAT(ErrorOf([&] { RandomTruncatedNormal({2}, g, 0, 1, 40, 41); }),
              StartsWith("RandomTruncatedNormal: mean 0, stddev 1, bounds 40 "
                         "and 41; wanted"));
  EXPECT_THAT(ErrorOf([&] { RandomTruncatedNormal({2}, g, 0, 1, 1, -1); }),
              StartsWith("RandomTruncatedNormal: "));
  EXPECT_THAT(ErrorOf([&] { RandomTruncatedNormal({2}, g, 0, 0, -1, 1); }),
              StartsWith("RandomTruncatedNormal: "));
  EXPECT_EQ(ErrorOf([&] {
              RandomBernoulli(Tensor::Of({2, 2}, {0, 1, 1.5, 0}), g);
            }),
            "RandomBernoulli: 1.5 at position 2 of float32 [2, 2]; wanted "
            "probabilities in [0, 1]");
  EXPECT_THAT(ErrorOf([&] { RandomBernoulli(Tensor::Of({1}, {NAN}), g); }),
              StartsWith("RandomBernoulli: nan at position 0"));
  const auto of_row = [&](std::vector<double> row) {
    row.insert(row.begin(), {0, 0});
    return ErrorOf([&] { RandomCategorical(Values({2, 2}, row), 1, g); });
  };
  EXPECT_EQ(of_row({-kInf, -kInf}),
            "RandomCategorical: row 1 of float64 [2, 2] is -infinity "
            "everywhere; wanted numbers, of which some may be -infinity");
  EXPECT_THAT(of_row({NAN, kInf}),
              StartsWith("RandomCategorical: row 1 of float64 [2, 2] holds "
                         "NaN;"));
  EXPECT_THAT(of_row({0, kInf}),
              StartsWith("RandomCategorical: row 1 of float64 [2, 2] holds "
                         "infinity;"));
  EXPECT_THAT(ErrorOf([&] {
                RandomCategorical(Tensor::Zeros({2, 0}), 1, g);
              }),
              StartsWith("RandomCategorical: float32 [2, 0] has no classes"));
  EXPECT_THAT(ErrorOf([&] { RandomCategorical(Tensor::Zeros({}), 1, g); }),
              StartsWith("RandomCategorical: 1 draws from float32 []"));
  EXPECT_THAT(ErrorOf([&] { RandomCategorical(Tensor::Zeros({2}), -1, g); }),
              StartsWith("RandomCategorical: -1 draws"));
  EXPECT_THAT(ErrorOf([&] { RandomPermutation(-1, g); }),
              StartsWith("RandomPermutation: n = -1"));
  EXPECT_EQ(g.offset(), 0u);
}

}  // namespace
}  // namespace wengert
