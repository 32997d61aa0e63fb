// Variances, standard deviations and norms: known values, edges, accuracy.
#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::StartsWith;

constexpr double kPs[] = {2, 1, 3.5, 0.5, -1, -2.5, 0, kInf, -kInf};

// 0 .. n - 1 as [n, 1].
Tensor RowNumbers(int64_t n) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < n; ++i) numbers.push_back(i);
  return Tensor::From({n, 1}, numbers);
}

TEST(VarTest, KnownValues) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({2, 4}, {1, 2, 3, 6, -1, 0, 0, 5}, dtype);
    EXPECT_THAT(Var(x, -1, {.correction = 0}).ToVector(),
                ElementsAre(3.5, 5.5));
    EXPECT_NEAR(Var(x, 1).ToVector()[0], 14 / 3., 1e-6);
    EXPECT_THAT(Var(x, 0).ToVector(), ElementsAre(2, 2, 4.5, 0.5));
    EXPECT_EQ(Var(x, 0, {.keep_dims = true}).shape(), (Shape{1, 4}));
    EXPECT_NEAR(Var(x).item(), 44 / 7., 1e-6);
    EXPECT_THAT(Std(x, 0, {.correction = 0}).ToVector(),
                ElementsAre(1, 1, 1.5, 0.5));
    EXPECT_EQ(Std(x, {0, 1}, {.keep_dims = true}).shape(), (Shape{1, 1}));
    EXPECT_EQ(Std(Values({4, 4, 4}, dtype)).item(), 0);
  }
}

// The count less the correction is never below 0; 0 / 0 is NaN.
TEST(VarTest, TooFewElements) {
  for (DType dtype : kFloats) {
    EXPECT_TRUE(std::isnan(Var(Values({3}, dtype)).item()));
    EXPECT_TRUE(
        std::isnan(Var(Values({3}, dtype), 0, {.correction = 2}).item()));
    EXPECT_EQ(Var(Values({3}, dtype), 0, {.correction = 0}).item(), 0);
    EXPECT_EQ(Var(Values({3, 4}, dtype), 0, {.correction = 3}).item(), kInf);
    EXPECT_EQ(Var(Values({3, 4}, dtype), 0, {.correction = 1.5}).item(), 1);
    const Tensor none = Tensor::Zeros({2, 0}, dtype);
    for (double v : Var(none, 1).ToVector()) EXPECT_TRUE(std::isnan(v));
    EXPECT_EQ(Var(none, 0).shape(), (Shape{0}));
    EXPECT_TRUE(std::isnan(Std(Tensor::Zeros({}, dtype)).item()));
  }
}

// A one-pass float variance is wrong in the first digit here.
TEST(VarTest, FloatsFarFromZero) {
  for (int64_t repeat : {1, 10, 100, 10000}) {
    std::vector<double> values;
    for (int64_t i = 0; i < 4 * repeat; ++i) values.push_back(20000 + i % 4);
    const Tensor x = Values(values, DType::kFloat32);
    EXPECT_NEAR(Var(x, 0, {.correction = 0}).item(), 1.25, 2e-7) << repeat;
    const Tensor columns = Permute(BroadcastTo(x, {3, x.size()}), {1, 0});
    for (double v : Var(columns, 0, {.correction = 0}).ToVector()) {
      EXPECT_NEAR(v, 1.25, 2e-7) << repeat;
    }
  }
}

// Chunks of a long slice have means of their own.
TEST(VarTest, LongSlices) {
  for (DType dtype : kFloats) {
    for (int64_t n : {300, 40000}) {
      std::vector<double> values;
      for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<double>(i));
      const Tensor x = Values(values, dtype);
      const double wanted = (static_cast<double>(n) * n - 1) / 12;
      const VarOptions population{.correction = 0};
      EXPECT_NEAR(Var(x, 0, population).item() / wanted, 1, 1e-6) << n;
      const Tensor columns = Permute(BroadcastTo(x, {70, n}), {1, 0});
      for (double v : Var(columns, 0, population).ToVector()) {
        EXPECT_NEAR(v / wanted, 1, 1e-6) << n;
      }
    }
  }
}

// Fused against composed where slices are cut into chunks and tiles.
TEST(StatisticsTest, LargeShapesAgreeWithTheComposition) {
  const std::pair<Shape, Axes> cases[] = {{{3, 20000}, 1},
                                          {{700, 70}, 0},
                                          {{5, 300, 67}, 1},
                                          {{9, 30, 70}, {0, 2}}};
  for (const auto& [shape, axes] : cases) {
    const Tensor x = Spread(shape, -1, 2);
    const auto check = [&, axes = axes](
                           Tensor (*f)(const Tensor&, const Axes&),
                           Tensor (*g)(const Tensor&, const Axes&)) {
      const auto fused =
          Differentiate([&](Inputs x) { return f(x[0], axes); }, {x});
      const auto composed =
          Differentiate([&](Inputs x) { return g(x[0], axes); }, {x});
      ExpectClose(fused.value, composed.value, 1e-13, "value");
      ExpectClose(fused.gradients[0], composed.gradients[0], 1e-12, "gradient");
    };
    check([](const Tensor& x, const Axes& a) { return Var(x, a); },
          [](const Tensor& x, const Axes& a) { return VarComposed(x, a); });
    check([](const Tensor& x, const Axes& a) { return Std(x, a); },
          [](const Tensor& x, const Axes& a) { return StdComposed(x, a); });
    check([](const Tensor& x, const Axes& a) { return Norm(x, 2, a); },
          [](const Tensor& x, const Axes& a) { return NormComposed(x, 2, a); });
    check([](const Tensor& x, const Axes& a) { return Norm(x, 3, a); },
          [](const Tensor& x, const Axes& a) { return NormComposed(x, 3, a); });
    check([](const Tensor& x, const Axes& a) { return Norm(x, 1, a); },
          [](const Tensor& x, const Axes& a) { return NormComposed(x, 1, a); });
  }
}

TEST(VarTest, EqualElementsHaveExactlyNone) {
  for (DType dtype : kFloats) {
    for (double value : {777.7, 0.1, -1e-3, 1e9 / 7}) {
      for (int64_t n : {2, 3, 41, 257, 1000, 16385, 100003}) {
        const Tensor x = Tensor::Full({n}, value, dtype);
        EXPECT_EQ(Var(x).item(), 0) << value << " x " << n;
        const Tensor y = Tensor::Full({n, 2}, value, dtype);
        EXPECT_THAT(Var(y, 0).ToVector(), Each(0)) << value << " x " << n;
      }
    }
  }
}

TEST(StdTest, GradientIsZeroWhereItIs) {
  for (DType dtype : kFloats) {
    for (bool recorded : {false, true}) {
      const auto f = [](Inputs x) { return Std(x[0], -1); };
      EXPECT_THAT(GradientOf(f, Values({4, 4, 4}, dtype), recorded), Each(0));
      EXPECT_THAT(GradientOf(f, Tensor::Full({41}, 777.7, dtype), recorded),
                  Each(0));
      const double r = std::sqrt(0.5);  // the other row is left alone
      const std::vector<double> rows =
          GradientOf(f, Values({2, 2}, {7, 7, 1, 3}, dtype), recorded);
      EXPECT_THAT(rows, ElementsAre(0, 0, testing::DoubleNear(-r, 1e-7),
                                    testing::DoubleNear(r, 1e-7)));
    }
    // And so is the second derivative.
    Tape tape;
    const Tensor x = Values({4, 4, 4}, dtype);
    tape.Watch(x);
    const Tensor first = tape.Gradient(Std(x), x, {.create_graph = true});
    EXPECT_THAT(tape.Gradient(Sum(Square(first)), x).ToVector(), Each(0));
  }
}

TEST(NormTest, KnownValues) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({2, 3}, {3, -4, 0, -1, 2, -2}, dtype);
    EXPECT_THAT(Norm(x, 2, -1).ToVector(), ElementsAre(5, 3));
    EXPECT_THAT(Norm(x, 1, -1).ToVector(), ElementsAre(7, 5));
    EXPECT_THAT(Norm(x, kInf, -1).ToVector(), ElementsAre(4, 2));
    EXPECT_THAT(Norm(x, -kInf, -1).ToVector(), ElementsAre(0, 1));
    EXPECT_THAT(Norm(x, 0, -1).ToVector(), ElementsAre(2, 3));
    EXPECT_THAT(Norm(x, 0, 1, {.keep_dims = true}).shape(), (Shape{2, 1}));
    EXPECT_THAT(Norm(x, -1, -1).ToVector(),
                ElementsAre(0, testing::DoubleNear(0.5, 1e-7)));
    EXPECT_NEAR(Norm(x, 3, -1).ToVector()[0], std::cbrt(91), 1e-6);
    EXPECT_NEAR(Norm(x).item(), std::sqrt(34), 1e-6);
    EXPECT_EQ(Norm(x, 2, {0, 1}, {.keep_dims = true}).shape(), (Shape{1, 1}));
    EXPECT_EQ(Norm(Values({}, {-3}, dtype)).item(), 3);
  }
}

TEST(NormTest, NothingAndNan) {
  for (DType dtype : kFloats) {
    for (double p : kPs) {
      const Tensor none = Tensor::Zeros({2, 0}, dtype);
      EXPECT_THAT(Norm(none, p, -1).ToVector(), Each(p < 0 ? kInf : 0)) << p;
      EXPECT_EQ(Norm(none, p, 0).shape(), (Shape{0})) << p;
      for (int64_t inner : {1, 2}) {
        const Tensor x = Tensor::Full({40, inner}, 2, dtype);
        const Tensor bad = MaskedFill(
            x, Equal(RowNumbers(40), Tensor::Scalar(17, DType::kInt64)), NAN);
        for (double v : Norm(bad, p, 0).ToVector()) {
          EXPECT_EQ(std::isnan(v), p != 0) << p;
        }
      }
    }
  }
}

// Squares of these leave the range of their type.
TEST(NormTest, NeitherOverflowsNorUnderflows) {
  for (DType dtype : kFloats) {
    const double huge = dtype == DType::kFloat32 ? 0x1p126 : 0x1p1022;
    const double tiny = dtype == DType::kFloat32 ? 0x1p-110 : 0x1p-900;
    for (double scale : {huge / 64, tiny}) {
      for (int64_t repeat : {1, 16, 64}) {
        std::vector<double> row;
        for (int64_t i = 0; i < repeat; ++i) {
          row.insert(row.end(), {3 * scale, -4 * scale});
        }
        const Tensor x = Values(row, dtype);
        const double wanted = 5 * std::sqrt(repeat) * scale;
        const Tensor columns = Concat(
            {{Reshape(x, {-1, 1}), Tensor::Full({2 * repeat, 1}, 1, dtype)}},
            1);
        EXPECT_EQ(Norm(x).item() / wanted, 1) << scale << " " << repeat;
        const std::vector<double> both = Norm(columns, 2, 0).ToVector();
        EXPECT_EQ(both[0] / wanted, 1) << scale << " " << repeat;
        EXPECT_NEAR(both[1], std::sqrt(2 * repeat), 1e-6 * repeat);
        for (bool recorded : {false, true}) {
          const std::vector<double> dx =
              GradientOf([](Inputs in) { return Norm(in[0]); }, x, recorded);
          EXPECT_NEAR(dx[0], 0.6 / std::sqrt(repeat), 1e-6);
          EXPECT_NEAR(dx[1], -0.8 / std::sqrt(repeat), 1e-6);
        }
        EXPECT_NEAR(
            Norm(x, 3.5).item() / scale,
            std::pow(repeat * (std::pow(3, 3.5) + std::pow(4, 3.5)), 1 / 3.5),
            3e-6 * repeat);
      }
    }
    EXPECT_EQ(Norm(Values({kInf, 1}, dtype)).item(), kInf);
    EXPECT_EQ(Norm(Values({kInf, kInf}, dtype), -1).item(), kInf);
    EXPECT_EQ(Norm(Values({kInf, 2}, dtype), -1).item(), 2);
  }
}

TEST(NormTest, GradientIsZeroWhereItIs) {
  for (DType dtype : kFloats) {
    for (bool recorded : {false, true}) {
      for (double p : kPs) {
        const auto f = [p](Inputs x) { return Norm(x[0], p, -1); };
        EXPECT_THAT(GradientOf(f, Values({0, 0}, dtype), recorded), Each(0))
            << p;
        // Of a single 0 among others there is none either.
        const double other = GradientOf(f, Values({0, 3}, dtype), recorded)[0];
        EXPECT_EQ(other, 0) << p;
      }
    }
    Tape tape;
    const Tensor x = Values({2, 2}, {0, 0, 3, 4}, dtype);
    tape.Watch(x);
    const Tensor first =
        tape.Gradient(Sum(Norm(x, 2, -1)), x, {.create_graph = true});
    // (1 - x^2 / y^2) / y and -x0 x1 / y^3 in the row that is not 0.
    const std::vector<double> second =
        tape.Gradient(Sum(first * Values({2, 2}, {1, 1, 1, 0}, dtype)), x)
            .ToVector();
    EXPECT_THAT(second, ElementsAre(0, 0, testing::DoubleNear(0.128, 1e-7),
                                    testing::DoubleNear(-0.096, 1e-7)));
  }
}

TEST(NormTest, AmongEqualsTheFirstTakesTheGradient) {
  for (bool recorded : {false, true}) {
    const Tensor x = Tensor::Of({4}, {-2, 3, -3, 2});
    EXPECT_THAT(
        GradientOf([](Inputs x) { return Norm(x[0], kInf); }, x, recorded),
        ElementsAre(0, 1, 0, 0));
    EXPECT_THAT(
        GradientOf([](Inputs x) { return Norm(x[0], -kInf); }, x, recorded),
        ElementsAre(-1, 0, 0, 0));
  }
}

TEST(NormTest, LongFloatsKeepTheirAccuracy) {
  const Tensor x = Spread({300007}, -1, 3);
  for (double p : {1., 2., 3.5, -0.5}) {
    const double exact =
        Norm(x.To(DType::kFloat32).To(DType::kFloat64), p).item();
    EXPECT_NEAR(Norm(x.To(DType::kFloat32), p).item() / exact, 1, 1e-6) << p;
  }
}

TEST(StatisticsTest, Errors) {
  const Tensor x = Tensor::Zeros({2, 3}), ids = x.To(DType::kInt64);
  EXPECT_THAT(ErrorOf([&] { Var(x, 2); }), StartsWith("Var: axis 2 is out"));
  EXPECT_THAT(ErrorOf([&] {
                Std(x, {1, 1});
              }),
              StartsWith("Std: axis 1 is named twice for shape [2, 3]"));
  EXPECT_THAT(ErrorOf([&] { Var(ids); }), StartsWith("Var: got int64 [2, 3]"));
  EXPECT_THAT(ErrorOf([&] { Std({}); }), StartsWith("Std: got undefined"));
  EXPECT_THAT(ErrorOf([&] { Var(x, 0, {.correction = kInf}); }),
              StartsWith("Var: correction inf"));
  EXPECT_THAT(ErrorOf([&] { Norm(x, 2, -3); }), StartsWith("Norm: axis -3"));
  EXPECT_THAT(ErrorOf([&] { Norm(ids, 0); }), StartsWith("Norm: got int64"));
  EXPECT_THAT(ErrorOf([&] { Norm(x, NAN); }), StartsWith("Norm: p is NaN"));
}

TEST(StatisticsTest, SameBitsForAnyNumberOfThreads) {
  for (DType dtype : kFloats) {
    const Tensor x = Spread({37, 41, 53}, -1, 1).To(dtype);
    ExpectSameBitsForThreads(
        [](Inputs x) {
          return Var(x[0]) * Norm(x[0]) + Sum(Std(x[0], 1)) +
                 Sum(Var(x[0], {0, 2})) + Sum(Norm(x[0], 3, 0)) +
                 Sum(Norm(x[0], 1, -1)) + Norm(x[0], -2);
        },
        {x});
  }
}

}  // namespace
}  // namespace wengert
