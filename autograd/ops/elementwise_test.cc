// Functions of one argument, the activations among them, and casts.
#include <numbers>

#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::StartsWith;
using Unary = Tensor (*)(const Tensor&);

template <Activation f>
Tensor Composed(const Tensor& x) {
  return ActivateComposed(f, x);
}

// Relative accuracy that results are held to.
double Accuracy(DType dtype) { return dtype == DType::kFloat32 ? 2e-6 : 1e-14; }

struct Known {
  const char* name;
  Unary f;
  std::vector<double> x, y, dy;  // value and slope
};

std::vector<Known> KnownValues() {
  const double e = std::numbers::e, pi = std::numbers::pi;
  return {
      {"Exp", Exp, {0, 1, -2}, {1, e, 1 / (e * e)}, {1, e, 1 / (e * e)}},
      {"Log", Log, {1, 2, 0.5}, {0, std::log(2), -std::log(2)}, {1, 0.5, 2}},
      {"Tanh",
       Tanh,
       {0, 0.5, -1},
       {0, 0.46211715726000976, -0.76159415595576489},
       {1, 0.78644773296592742, 0.41997434161402608}},
      {"Sigmoid",
       Sigmoid,
       {0, 2, -2},
       {0.5, 0.88079707797788243, 0.11920292202211756},
       {0.25, 0.10499358540350651, 0.10499358540350651}},
      {"Erf",
       Erf,
       {0, 0.5, -1},
       {0, 0.52049987781304654, -0.84270079294971487},
       {2 / std::sqrt(pi), 0.87878257893544479, 0.41510749742059470}},
      {"Erfc",
       Erfc,
       {0, 0.5, 3},
       {1, 0.47950012218695348, 2.2090496998585441e-5},
       {-2 / std::sqrt(pi), -0.87878257893544479, -1.3925305194674785e-4}},
      {"Square", Square, {3, -4}, {9, 16}, {6, -8}},
      {"Sqrt", Sqrt, {4, 0.25}, {2, 0.5}, {0.25, 1}},
      {"Rsqrt", Rsqrt, {4, 0.25}, {0.5, 2}, {-1.0 / 16, -4}},
      {"Expm1",
       Expm1,
       {0, 1, -2, 1e-10},
       {0, e - 1, -0.86466471676338731, 1.00000000005e-10},
       {1, e, 1 / (e * e), 1.0000000001}},
      {"Log1p",
       Log1p,
       {0, 1, -0.5, 1e-10},
       {0, std::log(2), -std::log(2), 9.9999999995e-11},
       {1, 0.5, 2, 0.9999999999}},
      {"Sin",
       Sin,
       {0, 0.5, -1, 1e5},
       {0, 0.47942553860420300, -0.84147098480789651, std::sin(1e5)},
       {1, 0.87758256189037272, 0.54030230586813972, std::cos(1e5)}},
      {"Cos",
       Cos,
       {0, 0.5, -1, 1e5},
       {1, 0.87758256189037272, 0.54030230586813972, std::cos(1e5)},
       {0, -0.47942553860420300, 0.84147098480789651, -std::sin(1e5)}},
      {"Sign", Sign, {-2, 0, 3}, {-1, 0, 1}, {0, 0, 0}},
      {"Floor", Floor, {-1.5, -0.25, 2.75}, {-2, -1, 2}, {0, 0, 0}},
      {"Ceil", Ceil, {-1.5, -0.25, 2.75}, {-1, 0, 3}, {0, 0, 0}},
      {"Trunc", Trunc, {-1.5, -0.25, 2.75}, {-1, 0, 2}, {0, 0, 0}},
      {"Round", Round, {-1.5, 0.5, 2.5, 2.75}, {-2, 0, 2, 3}, {0, 0, 0, 0}},
      {"Relu", Relu, {2, -1, 0}, {2, 0, 0}, {1, 0, 0}},
      {"Gelu",
       Gelu,
       {0, 1, -1, -6},
       {0, 0.84134474606854295, -0.15865525393145705, -5.9195258702261888e-9},
       {0.5, 1.0833154705876863, -0.083315470587686298,
        -3.5468709453902015e-8}},
      {"GeluTanh",
       GeluTanh,
       {0, 1, -1, -6},
       {0, 0.84119199060827670, -0.15880800939172330, -8.4396467007622971e-11},
       {0.5, 1.0829640838457826, -0.082964083845782555,
        -7.7099739309536955e-10}},
      {"Silu",
       Silu,
       {0, 1, -1},
       {0, 0.73105857863000488, -0.26894142136999512},
       {0.5, 0.92767051187148674, 0.072329488128513268}},
  };
}

TEST(ElementwiseTest, KnownValuesAndSlopes) {
  for (const Known& known : KnownValues()) {
    for (DType dtype : kFloats) {
      SCOPED_TRACE(std::string(known.name) + " " + Name(dtype));
      const Tensor x = Values(known.x, dtype);
      const Tensor y = known.f(x);
      EXPECT_EQ(y.dtype(), dtype);
      EXPECT_EQ(y.shape(), x.shape());
      ExpectRelative(y.ToVector(), known.y, Accuracy(dtype));
      for (bool recorded : {false, true}) {
        const auto f = [&](Inputs x) { return known.f(x[0]); };
        ExpectRelative(GradientOf(f, x, recorded), known.dy,
                       2 * Accuracy(dtype));
      }
    }
  }
}

// The left tail must not round to 0 as 1 + erf and 1 + tanh do.
TEST(ElementwiseTest, GeluKeepsItsLeftTail) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({-6}, dtype);
    for (Unary f : {Unary{Gelu}, Unary{Composed<Activation::kGelu>}}) {
      EXPECT_NEAR(f(x).item() / -5.9195e-9, 1, 1e-5);
    }
    for (Unary f : {Unary{GeluTanh}, Unary{Composed<Activation::kGeluTanh>}}) {
      EXPECT_NEAR(f(x).item() / -8.4396e-11, 1, 1e-5);
    }
  }
  // Down to where floats end, with its slope and curvature.
  const Tensor x = Values({-8, -11, -12.5}, DType::kFloat32);
  for (Unary f : {Unary{Gelu}, Unary{Composed<Activation::kGelu>}}) {
    const auto single = Derivatives(f, x, 2);
    const auto exact = Derivatives(f, x.To(DType::kFloat64), 2);
    for (int order : {0, 1, 2}) {
      SCOPED_TRACE(order);
      ExpectRelative(single[order], exact[order], 3e-5);
    }
  }
}

TEST(ElementwiseTest, ActivationsFarOut) {
  const std::pair<const char*, Unary> activations[] = {
      {"Gelu", Gelu},
      {"GeluComposed", Composed<Activation::kGelu>},
      {"GeluTanh", GeluTanh},
      {"GeluTanhComposed", Composed<Activation::kGeluTanh>},
      {"Silu", Silu},
      {"SiluComposed", Composed<Activation::kSilu>}};
  for (const auto& [name, f] : activations) {
    for (DType dtype : kFloats) {
      SCOPED_TRACE(std::string(name) + " " + Name(dtype));
      for (double far : {1e20, 1e30, 100.0}) {
        const Tensor x = Values({-far, far}, dtype);
        const auto d = Derivatives(f, x, 4);
        EXPECT_NEAR(d[0][0], 0, 1e-35);
        EXPECT_EQ(d[0][1], x.ToVector()[1]);
        EXPECT_NEAR(d[1][0], 0, 1e-35);
        EXPECT_EQ(d[1][1], 1);
        for (int order : {2, 3, 4}) {
          EXPECT_NEAR(d[order][0], 0, 1e-35) << order;
          EXPECT_NEAR(d[order][1], 0, 1e-35) << order;
        }
        EXPECT_THAT(GradientOf([&, f = f](Inputs x) { return f(x[0]); }, x),
                    ElementsAre(testing::DoubleNear(0, 1e-35), 1));
      }
    }
  }
}

TEST(ElementwiseTest, GeluToTheThirdDerivative) {
  // With phi the normal density: Phi + x phi, (2 - x²) phi, (x³ - 4x) phi.
  const std::vector<double> at = {-3, -0.5, 0, 0.75, 2.5};
  std::vector<std::vector<double>> wanted(4);
  for (double x : at) {
    const double phi = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    const double cdf = 0.5 * std::erfc(-x / std::numbers::sqrt2);
    wanted[0].push_back(x * cdf);
    wanted[1].push_back(cdf + x * phi);
    wanted[2].push_back((2 - x * x) * phi);
    wanted[3].push_back((x * x * x - 4 * x) * phi);
  }
  for (DType dtype : kFloats) {
    for (Unary f : {Unary{Gelu}, Unary{Composed<Activation::kGelu>}}) {
      const auto d = Derivatives(f, Values(at, dtype), 3);
      for (int order = 0; order <= 3; ++order) {
        SCOPED_TRACE(order);
        ExpectRelative(d[order], wanted[order], 10 * Accuracy(dtype));
      }
    }
  }
}

TEST(ElementwiseTest, SigmoidSlopeKeepsBothTails) {
  for (DType dtype : kFloats) {
    const auto d = Derivatives(Sigmoid, Values({-40, 40}, dtype), 1);
    const double e = std::exp(-40);
    ExpectRelative(d[1], {e, e}, 1e-5);
    EXPECT_THAT(Derivatives(Sigmoid, Values({-1e4, 1e4}, dtype), 2)[2],
                Each(0));
  }
}

TEST(ElementwiseTest, Expm1SlopeKeepsItsLeftTail) {
  for (DType dtype : kFloats) {
    const auto d = Derivatives(Expm1, Values({-40, -kInf}, dtype), 3);
    for (int order : {1, 2, 3}) {
      ExpectRelative(d[order], {std::exp(-40), 0}, 1e-5);
    }
  }
}

// A gradient of 0, not the lack of one: it may be asked for and added to.
TEST(ElementwiseTest, StepsHaveGradientZero) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({-1.5, 0.3}, dtype);
    for (Unary f : {Sign, Floor, Ceil, Trunc, Round}) {
      const auto d = Derivatives(f, x, 3);
      for (int order : {1, 2, 3}) EXPECT_THAT(d[order], Each(0));
      EXPECT_THAT(GradientOf([f](Inputs x) { return f(x[0]) + 2 * x[0]; }, x),
                  ElementsAre(2, 2));
    }
    EXPECT_TRUE(std::isnan(Sign(Values({NAN}, dtype)).item()));
  }
}

TEST(ElementwiseTest, ReluAtZeroAndNan) {
  for (DType dtype : kFloats) {
    const auto d = Derivatives(Relu, Values({0, -0.0, NAN}, dtype), 2);
    EXPECT_EQ(d[0][0], 0);
    EXPECT_TRUE(std::isnan(d[0][2]));
    EXPECT_EQ(d[1][0], 0);
    EXPECT_EQ(d[1][1], 0);
    EXPECT_THAT(d[2], Each(0));
  }
}

TEST(ElementwiseTest, EdgesOfTheDomain) {
  for (DType dtype : kFloats) {
    EXPECT_EQ(Exp(Values({-kInf}, dtype)).item(), 0);
    EXPECT_EQ(Exp(Values({1e4}, dtype)).item(), kInf);
    EXPECT_EQ(Log(Values({0}, dtype)).item(), -kInf);
    EXPECT_TRUE(std::isnan(Log(Values({-1}, dtype)).item()));
    EXPECT_TRUE(std::isnan(Sqrt(Values({-1}, dtype)).item()));
    EXPECT_EQ(Rsqrt(Values({0}, dtype)).item(), kInf);
    EXPECT_EQ(Tanh(Values({50}, dtype)).item(), 1);
    EXPECT_EQ(Erfc(Values({-50}, dtype)).item(), 2);
  }
}

// a = 2p, b = 3q: dq is exactly 3. A cotangent that two slots hold is never
// written in place.
TEST(ElementwiseTest, SharedCotangentIsNotOverwritten) {
  for (DType dtype : kFloats) {
    const auto f = [](Inputs x) {
      const Tensor a = 2 * x[0], b = 3 * x[1];
      return Sum(Gelu(a) + (a + b));
    };
    const Tensor p = Values({0.3, -1, 2}, dtype), q = Values({1, 2, 3}, dtype);
    for (bool recorded : {false, true}) {
      const auto d = Differentiate(f, {p, q}, {}, recorded);
      EXPECT_THAT(d.gradients[1].ToVector(), ElementsAre(3, 3, 3));
      const auto slope = Derivatives(Gelu, 2 * p, 1)[1];
      for (int i = 0; i < 3; ++i) {
        EXPECT_NEAR(d.gradients[0].ToVector()[i], 2 * slope[i] + 2, 1e-6);
      }
    }
  }
}

TEST(ElementwiseTest, CastsConvertTheGradientBack) {
  const Tensor x = Values({1.5, -2.25, 1e-3}, DType::kFloat32);
  const auto d =
      Differentiate([](Inputs x) { return Square(x[0].To(DType::kFloat64)); },
                    {x}, Values({1, 2, 4}, DType::kFloat64));
  EXPECT_EQ(d.value.dtype(), DType::kFloat64);
  EXPECT_EQ(d.value.ToVector()[1], 5.0625);
  EXPECT_EQ(d.gradients[0].dtype(), DType::kFloat32);
  EXPECT_THAT(d.gradients[0].ToVector(),
              ElementsAre(3, -9, static_cast<float>(8 * 1e-3f)));
  EXPECT_THAT(
      Values({1.7, -1.7, 0}, DType::kFloat32).To(DType::kInt32).ToVector(),
      ElementsAre(1, -1, 0));
  EXPECT_THAT(Values({2, 0}, DType::kInt64).To(DType::kBool).ToVector(),
              ElementsAre(1, 0));
  EXPECT_EQ(x.To(DType::kFloat32).impl(), x.impl());
  // Whole numbers carry no gradient.
  Tape tape;
  tape.Watch(x);
  EXPECT_FALSE(tape.Tracks(x.To(DType::kInt32).To(DType::kFloat32)));
}

TEST(ElementwiseTest, ErrorsNameTheOperation) {
  const Tensor ids = Tensor::Zeros({2, 3}, DType::kInt32);
  const std::pair<std::string, Unary> ops[] = {
      {"Exp", Exp},     {"Log", Log},     {"Tanh", Tanh},
      {"Erf", Erf},     {"Erfc", Erfc},   {"Sigmoid", Sigmoid},
      {"Sqrt", Sqrt},   {"Rsqrt", Rsqrt}, {"Square", Square},
      {"Relu", Relu},   {"Gelu", Gelu},   {"GeluTanh", GeluTanh},
      {"Silu", Silu},   {"Expm1", Expm1}, {"Log1p", Log1p},
      {"Sin", Sin},     {"Cos", Cos},     {"Sign", Sign},
      {"Floor", Floor}, {"Ceil", Ceil},   {"Trunc", Trunc},
      {"Round", Round}};
  for (const auto& [name, op] : ops) {
    EXPECT_EQ(ErrorOf([&, op = op] { op(ids); }),
              name +
                  ": got int32 [2, 3]; wanted float32 or float64, all of one "
                  "dtype");
    EXPECT_THAT(ErrorOf([op = op] { op({}); }),
                StartsWith(name + ": got undefined; wanted"));
  }
}

TEST(ElementwiseTest, SameBitsForAnyNumberOfThreads) {
  for (DType dtype : kFloats) {
    const Tensor x = Spread({70001}, -3, 3).To(dtype);
    ExpectSameBitsForThreads(
        [](Inputs x) {
          return Gelu(x[0]) + GeluTanh(x[0]) * Silu(x[0]) + Tanh(x[0]) +
                 Erf(x[0]) * Sigmoid(x[0]) + Relu(x[0]) + Exp(x[0]) +
                 Sin(x[0]) * Cos(x[0]) + Expm1(x[0]) * Round(x[0]) +
                 Log1p(Square(x[0]));
        },
        {x});
  }
}

}  // namespace
}  // namespace wengert
