// Arithmetic with broadcasting, powers and angles.
#include <numbers>

#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ArithmeticTest, KnownValues) {
  for (DType dtype : kFloats) {
    const Tensor a = Values({1, -2, 3}, dtype), b = Values({4, 0.5, -3}, dtype);
    EXPECT_THAT((a + b).ToVector(), ElementsAre(5, -1.5, 0));
    EXPECT_THAT((a - b).ToVector(), ElementsAre(-3, -2.5, 6));
    EXPECT_THAT((a * b).ToVector(), ElementsAre(4, -1, -9));
    EXPECT_THAT((a / b).ToVector(), ElementsAre(0.25, -4, -1));
    EXPECT_THAT(Maximum(a, b).ToVector(), ElementsAre(4, 0.5, 3));
    EXPECT_THAT(Minimum(a, b).ToVector(), ElementsAre(1, -2, -3));
    EXPECT_THAT((-a).ToVector(), ElementsAre(-1, 2, -3));
    EXPECT_THAT(Affine(a, 2, 1).ToVector(), ElementsAre(3, -3, 7));
    EXPECT_THAT((a + 1).ToVector(), ElementsAre(2, -1, 4));
    EXPECT_THAT((1 + a).ToVector(), ElementsAre(2, -1, 4));
    EXPECT_THAT((a - 1).ToVector(), ElementsAre(0, -3, 2));
    EXPECT_THAT((1 - a).ToVector(), ElementsAre(0, 3, -2));
    EXPECT_THAT((a * 2).ToVector(), ElementsAre(2, -4, 6));
    EXPECT_THAT((2 * a).ToVector(), ElementsAre(2, -4, 6));
    EXPECT_THAT((a / 2).ToVector(), ElementsAre(0.5, -1, 1.5));
    EXPECT_THAT(Pow(a, 2).ToVector(), ElementsAre(1, 4, 9));
    EXPECT_THAT(Pow(a, 3).ToVector(), ElementsAre(1, -8, 27));
    EXPECT_THAT(Pow(a, -1).ToVector()[1], -0.5);
    EXPECT_THAT(Pow(a, 0).ToVector(), ElementsAre(1, 1, 1));
    EXPECT_EQ((a + b).dtype(), dtype);
  }
}

TEST(ArithmeticTest, BroadcastsAsNumPyDoes) {
  for (DType dtype : kFloats) {
    const Tensor column = Values({2, 1}, {1, 2}, dtype);
    const Tensor row = Values({1, 3}, {10, 20, 30}, dtype);
    const Tensor y = column * row;
    EXPECT_EQ(y.shape(), (Shape{2, 3}));
    EXPECT_THAT(y.ToVector(), ElementsAre(10, 20, 30, 20, 40, 60));
    for (bool recorded : {false, true}) {
      const auto d = Differentiate([](Inputs x) { return x[0] * x[1]; },
                                   {column, row}, {}, recorded);
      EXPECT_EQ(d.gradients[0].shape(), (Shape{2, 1}));
      EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(60, 60));
      EXPECT_EQ(d.gradients[1].shape(), (Shape{1, 3}));
      EXPECT_THAT(d.gradients[1].ToVector(), ElementsAre(3, 3, 3));
    }
    EXPECT_EQ((column + Values({3}, {0, 0, 0}, dtype)).shape(), (Shape{2, 3}));
    EXPECT_EQ((column + Tensor::Scalar(1, dtype)).shape(), (Shape{2, 1}));
    EXPECT_EQ((Tensor::Zeros({0, 1}, dtype) + row).shape(), (Shape{0, 3}));
  }
}

// The first argument that attains the value gets the gradient.
TEST(ArithmeticTest, TiesGoToTheFirst) {
  for (DType dtype : kFloats) {
    const Tensor a = Values({2, 1, 5}, dtype), b = Values({2, 3, 4}, dtype);
    auto d =
        Differentiate([](Inputs x) { return Maximum(x[0], x[1]); }, {a, b});
    EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(1, 0, 1));
    EXPECT_THAT(d.gradients[1].ToVector(), ElementsAre(0, 1, 0));
    d = Differentiate([](Inputs x) { return Minimum(x[0], x[1]); }, {a, b});
    EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(1, 1, 0));
    EXPECT_THAT(d.gradients[1].ToVector(), ElementsAre(0, 0, 1));
    // maximum(a, a) counts once.
    EXPECT_THAT(GradientOf([](Inputs x) { return Maximum(x[0], x[0]); }, a),
                ElementsAre(1, 1, 1));
    // As clamp has it, a bound that is a constant comes first.
    const Tensor bound = Tensor::Scalar(2, dtype);
    EXPECT_THAT(GradientOf([&](Inputs x) { return Maximum(bound, x[0]); }, a),
                ElementsAre(0, 0, 1));
  }
}

TEST(ArithmeticTest, PowersAtZero) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({0, 2}, dtype);
    const auto power = [](double p) {
      return [p](const Tensor& x) { return Pow(x, p); };
    };
    const auto cube = Derivatives(power(3), x, 4);
    EXPECT_THAT(cube[1], ElementsAre(0, 12));
    EXPECT_THAT(cube[2], ElementsAre(0, 12));
    EXPECT_THAT(cube[3], ElementsAre(6, 6));
    EXPECT_THAT(cube[4], ElementsAre(0, 0));
    EXPECT_THAT(Derivatives(power(0), x, 2)[0], ElementsAre(1, 1));
    EXPECT_THAT(Derivatives(power(0), x, 2)[1], ElementsAre(0, 0));
    EXPECT_THAT(Derivatives(power(1), x, 2)[1], ElementsAre(1, 1));
    EXPECT_THAT(Derivatives(power(1), x, 2)[2], ElementsAre(0, 0));
    EXPECT_THAT(Derivatives(power(0.5), x, 1)[1][0], kInf);
  }
  EXPECT_THAT(Pow(Values({-8}, DType::kFloat64), 1.0 / 3).ToVector()[0],
              testing::IsNan());
}

TEST(ArithmeticTest, NanIsNeverHidden) {
  for (DType dtype : kFloats) {
    const Tensor nan = Values({NAN}, dtype), one = Values({1}, dtype);
    for (const Tensor& y : {Maximum(nan, one), Maximum(one, nan),
                            Minimum(nan, one), Minimum(one, nan)}) {
      EXPECT_TRUE(std::isnan(y.item()));
    }
  }
}

TEST(ArithmeticTest, PowersOfTensors) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({2, 3, 0.25, -2, -8}, dtype);
    const Tensor p = Values({3, -1, 0.5, 3, 1.0 / 3}, dtype);
    const std::vector<double> y = Pow(x, p).ToVector();
    ExpectRelative({y.begin(), y.begin() + 4}, {8, 1.0 / 3, 0.5, -8}, 1e-7);
    EXPECT_TRUE(std::isnan(y[4]));
    // At x = 0, and where p is 0.
    const double tiny = dtype == DType::kFloat32 ? 1e-40 : 1e-310;
    const Tensor at = Values({0, 0, 0, 0, 0, -2, kInf, NAN, tiny}, dtype);
    const Tensor to = Values({0, 0.5, 1, 2, -1, 0, 0, 0, 0}, dtype);
    for (bool recorded : {false, true}) {
      const auto d = Differentiate([](Inputs x) { return Pow(x[0], x[1]); },
                                   {at, to}, {}, recorded);
      EXPECT_THAT(d.value.ToVector(),
                  ElementsAre(1, 0, 0, 0, kInf, 1, 1, 1, 1));
      EXPECT_THAT(d.gradients[0].ToVector(),
                  ElementsAre(0, kInf, 1, 0, -kInf, 0, 0, 0, 0));
      const std::vector<double> dp = d.gradients[1].ToVector();
      EXPECT_THAT(std::vector<double>(dp.begin(), dp.begin() + 5),
                  ElementsAre(0, 0, 0, 0, -kInf));
    }
  }
}

// No factor of 0 that meets an infinite one becomes NaN later.
TEST(ArithmeticTest, PowersOfTensorsAtZeroToTheThirdDerivative) {
  for (DType dtype : kFloats) {
    const Tensor cubes = Values({3, 3}, dtype);
    const auto by_x =
        Derivatives([&](const Tensor& x) { return Pow(x, cubes); },
                    Values({0, 2}, dtype), 3);
    EXPECT_THAT(by_x[1], ElementsAre(0, 12));
    EXPECT_THAT(by_x[2], ElementsAre(0, 12));
    EXPECT_THAT(by_x[3], ElementsAre(6, 6));
    const Tensor zero = Values({0, 0}, dtype);
    const auto by_p = Derivatives([&](const Tensor& p) { return Pow(zero, p); },
                                  Values({0, 2}, dtype), 3);
    for (int order : {1, 2, 3}) EXPECT_THAT(by_p[order], ElementsAre(0, 0));
    const auto flat = Derivatives([&](const Tensor& x) { return Pow(x, zero); },
                                  Values({0, 2}, dtype), 3);
    for (int order : {1, 2, 3}) EXPECT_THAT(flat[order], ElementsAre(0, 0));
  }
}

TEST(ArithmeticTest, Angles) {
  const double pi = std::numbers::pi;
  for (DType dtype : kFloats) {
    const Tensor y = Values({0, 1, 1, -1, 0, -0.0, kInf, -kInf}, dtype);
    const Tensor x = Values({1, 0, -1, -1, -1, -1, kInf, 5}, dtype);
    ExpectRelative(
        Atan2(y, x).ToVector(),
        {0, pi / 2, pi * 3 / 4, -pi * 3 / 4, pi, -pi, pi / 4, -pi / 2}, 2e-7);
    // Gradients: none at the origin and at infinity, and no overflow between.
    const Tensor down = Values({0, 3, 3e20, -1e-20, kInf, 1, 0}, dtype);
    const Tensor across = Values({0, 4, 4e20, 0, 1, -kInf, -0.0}, dtype);
    for (bool recorded : {false, true}) {
      const auto d = Differentiate([](Inputs x) { return Atan2(x[0], x[1]); },
                                   {down, across}, {}, recorded);
      ExpectRelative(d.gradients[0].ToVector(), {0, 0.16, 0.16e-20, 0, 0, 0, 0},
                     2e-7);
      ExpectRelative(d.gradients[1].ToVector(),
                     {0, -0.12, -0.12e-20, 1e20, 0, 0, 0}, 2e-7);
    }
    const auto d = Derivatives(
        [&](const Tensor& y) {
          return Atan2(y, Values({0, 4, 4e20, 1, -kInf, -0.0}, dtype));
        },
        Values({0, 3, 3e20, kInf, 1, 0}, dtype), 3);
    for (int order : {1, 2, 3}) {
      for (double v : d[order]) EXPECT_TRUE(std::isfinite(v)) << order;
    }
  }
}

TEST(ArithmeticTest, LerpMeetsBothEnds) {
  for (DType dtype : kFloats) {
    const Tensor a = Values({0.1, 1e9, -3}, dtype);
    const Tensor b = Values({0.7, 0.3, 1e-9}, dtype);
    EXPECT_EQ(Lerp(a, b, 0).ToVector(), a.ToVector());
    EXPECT_EQ(Lerp(a, b, 1).ToVector(), b.ToVector());
    EXPECT_EQ(Lerp(a, b, Values({0, 1, 0}, dtype)).ToVector()[1],
              b.ToVector()[1]);
    const Tensor u = Values({1, 2}, dtype), v = Values({3, -2}, dtype);
    EXPECT_THAT(Lerp(u, v, 0.25).ToVector(), ElementsAre(1.5, 1));
    EXPECT_THAT(Lerp(u, v, 1.5).ToVector(), ElementsAre(4, -4));
    const auto d =
        Differentiate([](Inputs x) { return Lerp(x[0], x[1], x[2]); },
                      {u, v, Values({2, 1}, {0.25, 0.5}, dtype)});
    EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(1.25, 1.25));
    EXPECT_THAT(d.gradients[1].ToVector(), ElementsAre(0.75, 0.75));
    EXPECT_EQ(d.gradients[2].shape(), (Shape{2, 1}));
    EXPECT_THAT(d.gradients[2].ToVector(), ElementsAre(-2, -2));
  }
}

TEST(ArithmeticTest, ErrorsGiveBothShapes) {
  const Tensor a = Tensor::Zeros({2, 3}), b = Tensor::Zeros({4, 3});
  const Tensor d = Tensor::Zeros({2, 3}, DType::kFloat64);
  using Op = Tensor (*)(const Tensor&, const Tensor&);
  const std::pair<const char*, Op> ops[] = {
      {"Add", Add}, {"Sub", Sub},         {"Mul", Mul},
      {"Div", Div}, {"Maximum", Maximum}, {"Minimum", Minimum},
      {"Pow", Pow}, {"Atan2", Atan2}};
  for (const auto& [name, op] : ops) {
    EXPECT_THAT(ErrorOf([&, op = op] { op(a, b); }),
                AllOf(StartsWith(std::string(name) + ": "), HasSubstr("[2, 3]"),
                      HasSubstr("[4, 3]"), HasSubstr("wanted")));
    EXPECT_THAT(
        ErrorOf([&, op = op] { op(a, d); }),
        AllOf(StartsWith(std::string(name) + ": "), HasSubstr("float32 [2, 3]"),
              HasSubstr("float64 [2, 3]"), HasSubstr("wanted")));
    EXPECT_THAT(
        ErrorOf([&, op = op] { op(a, {}); }),
        AllOf(StartsWith(std::string(name) + ": "), HasSubstr("undefined")));
    EXPECT_THAT(
        ErrorOf([&, op = op] { op({}, a); }),
        AllOf(StartsWith(std::string(name) + ": "), HasSubstr("undefined")));
  }
  const Tensor ids = Tensor::Zeros({2}, DType::kInt64);
  EXPECT_THAT(ErrorOf([&] { ids + ids; }),
              AllOf(StartsWith("Add: "), HasSubstr("int64 [2], int64 [2]"),
                    HasSubstr("wanted float32 or float64")));
  EXPECT_THAT(ErrorOf([&] { Lerp(a, a, b); }),
              AllOf(StartsWith("Lerp: "), HasSubstr("[2, 3]"),
                    HasSubstr("[4, 3]"), HasSubstr("wanted")));
  EXPECT_THAT(ErrorOf([&] { Lerp(a, a, d); }),
              StartsWith("Lerp: got float32 [2, 3], float32 [2, 3], float64"));
  EXPECT_THAT(ErrorOf([&] { Lerp({}, a, 0.5); }),
              StartsWith("Lerp: got undefined"));
  EXPECT_THAT(ErrorOf([&] { Pow(ids, 2); }), StartsWith("Pow: got int64 [2]"));
  EXPECT_THAT(ErrorOf([&] { Neg(ids); }), StartsWith("Neg: got int64 [2]"));
  EXPECT_THAT(ErrorOf([&] { Affine(ids, 2, 0); }),
              StartsWith("Affine: got int64 [2]"));
}

TEST(ArithmeticTest, SameBitsForAnyNumberOfThreads) {
  for (DType dtype : kFloats) {
    const Tensor a = Spread({301, 1, 157}, 0.5, 2, 1).To(dtype);
    const Tensor b = Spread({3, 157}, 0.5, 2, 2).To(dtype);
    ExpectSameBitsForThreads(
        [](Inputs x) {
          return Pow(x[0] / x[1], 1.3) * x[0] + Maximum(x[0], x[1]) +
                 Pow(x[0], x[1]) * Atan2(x[0], x[1]) + Lerp(x[0], x[1], x[0]);
        },
        {a, b});
  }
}

}  // namespace
}  // namespace wengert
