// Arithmetic with broadcasting, powers and comparisons.
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

TEST(ArithmeticTest, Comparisons) {
  for (DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64}) {
    const Tensor a = Values({1, 2, 3}, dtype), b = Values({2, 2, 2}, dtype);
    EXPECT_EQ(Equal(a, b).dtype(), DType::kBool);
    EXPECT_THAT(Equal(a, b).ToVector(), ElementsAre(0, 1, 0));
    EXPECT_THAT(Less(a, b).ToVector(), ElementsAre(1, 0, 0));
    EXPECT_THAT(Greater(a, b).ToVector(), ElementsAre(0, 0, 1));
    EXPECT_EQ(Less(a, Values({2, 1}, {1, 2}, dtype)).shape(), (Shape{2, 3}));
  }
  const Tensor t = SomeTrue({3});
  EXPECT_THAT(Equal(t, t).ToVector(), ElementsAre(1, 1, 1));
  const Tensor nan = Values({NAN}, DType::kFloat32);
  EXPECT_THAT(Equal(nan, nan).ToVector(), ElementsAre(0));
}

TEST(ArithmeticTest, ErrorsGiveBothShapes) {
  const Tensor a = Tensor::Zeros({2, 3}), b = Tensor::Zeros({4, 3});
  const Tensor d = Tensor::Zeros({2, 3}, DType::kFloat64);
  using Op = Tensor (*)(const Tensor&, const Tensor&);
  const std::pair<const char*, Op> ops[] = {
      {"Add", Add},     {"Sub", Sub},         {"Mul", Mul},
      {"Div", Div},     {"Maximum", Maximum}, {"Minimum", Minimum},
      {"Equal", Equal}, {"Less", Less},       {"Greater", Greater}};
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
  EXPECT_THAT(ErrorOf([&] { Pow(ids, 2); }), StartsWith("Pow: got int64 [2]"));
  EXPECT_THAT(ErrorOf([&] { Affine(ids, 2, 0); }),
              StartsWith("Affine: got int64 [2]"));
}

TEST(ArithmeticTest, SameBitsForAnyNumberOfThreads) {
  for (DType dtype : kFloats) {
    const Tensor a = Spread({301, 1, 157}, 0.5, 2, 1).To(dtype);
    const Tensor b = Spread({3, 157}, 0.5, 2, 2).To(dtype);
    ExpectSameBitsForThreads(
        [](Inputs x) {
          return Pow(x[0] / x[1], 1.3) * x[0] + Maximum(x[0], x[1]);
        },
        {a, b});
  }
}

}  // namespace
}  // namespace wengert
