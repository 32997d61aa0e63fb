// Fused functions with a bend or with parameters.
#include <numbers>

#include "absl/strings/str_cat.h"
#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::StartsWith;
using Unary = std::function<Tensor(const Tensor&)>;

const double kLn2 = std::numbers::ln2;

// The gradient of either kind of pass.
void ExpectSlopes(const Unary& f, const Tensor& x, std::vector<double> want) {
  for (bool recorded : {false, true}) {
    EXPECT_EQ(GradientOf([&](Inputs x) { return f(x[0]); }, x, recorded), want);
  }
}

TEST(PiecewiseTest, BendsTakeTheirRule) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({-2, -1, 0, 1, 2}, dtype);
    EXPECT_THAT(Abs(x).ToVector(), ElementsAre(2, 1, 0, 1, 2));
    ExpectSlopes(Abs, x, {-1, -1, 0, 1, 1});
    // Constants come first: at a bound the gradient is 0.
    const auto clamp = [](const Tensor& x) { return Clamp(x, -1, 1); };
    EXPECT_THAT(clamp(x).ToVector(), ElementsAre(-1, -1, 0, 1, 1));
    ExpectSlopes(clamp, x, {0, 0, 1, 0, 0});
    ExpectSlopes([](const Tensor& x) { return Clamp(x, -kInf, 1); }, x,
                 {1, 1, 1, 0, 0});
    ExpectSlopes([](const Tensor& x) { return Clamp(x, -kInf, kInf); }, x,
                 {1, 1, 1, 1, 1});
    ExpectSlopes([](const Tensor& x) { return Clamp(x, 0, 0); }, x,
                 {0, 0, 0, 0, 0});
    const auto leaky = [](const Tensor& x) { return LeakyRelu(x, 0.25); };
    EXPECT_THAT(leaky(x).ToVector(), ElementsAre(-0.5, -0.25, 0, 1, 2));
    ExpectSlopes(leaky, x, {0.25, 0.25, 0.25, 1, 1});
    const auto elu = [](const Tensor& x) { return Elu(x, 2); };
    EXPECT_EQ(elu(x).ToVector()[3], 1);
    EXPECT_NEAR(elu(x).ToVector()[1], 2 / std::numbers::e - 2, 1e-6);
    ExpectSlopes(elu, Values({0, 3}, dtype), {2, 1});
    EXPECT_EQ(Clamp(Values({NAN}, dtype), 0, 1).ToVector().size(), 1);
    EXPECT_TRUE(std::isnan(Clamp(Values({NAN}, dtype), 0, 1).item()));
  }
}

TEST(PiecewiseTest, SoftplusAtZero) {
  for (DType dtype : kFloats) {
    const Tensor zero = Values({0}, dtype);
    // ln 2, 1/2, 1/4, 0, -1/8
    for (const Unary& f :
         {Unary([](const Tensor& x) { return Softplus(x); }),
          Unary([](const Tensor& x) { return SoftplusComposed(x); })}) {
      const auto d = Derivatives(f, zero, 4);
      const double want[] = {kLn2, 0.5, 0.25, 0, -0.125};
      for (int i = 0; i < 5; ++i) EXPECT_NEAR(d[i][0], want[i], 1e-7) << i;
    }
    EXPECT_NEAR(Softplus(zero, 4).item(), kLn2 / 4, 1e-8);
    EXPECT_NEAR(LogSigmoid(zero).item(), -kLn2, 1e-7);
  }
}

// Every derivative of the first three, relative to what it is.
TEST(PiecewiseTest, SoftplusAndLogSigmoidKeepTheirTails) {
  for (DType dtype : kFloats) {
    const double e = std::exp(-40);
    const Tensor x = Values({-40, 40}, dtype);
    for (bool composed : {false, true}) {
      SCOPED_TRACE(composed);
      const auto plus = Derivatives(
          [&](const Tensor& x) {
            return composed ? SoftplusComposed(x) : Softplus(x);
          },
          x, 3);
      ExpectRelative(plus[0], {e, 40}, 2e-6);
      ExpectRelative(plus[1], {e, 1}, 2e-6);
      ExpectRelative(plus[2], {e, e}, 2e-6);
      ExpectRelative(plus[3], {e, -e}, 2e-6);
      const auto log =
          Derivatives(composed ? LogSigmoidComposed : LogSigmoid, x, 3);
      ExpectRelative(log[0], {-40, -e}, 2e-6);
      ExpectRelative(log[1], {1, e}, 2e-6);
      ExpectRelative(log[2], {-e, -e}, 2e-6);
      ExpectRelative(log[3], {-e, e}, 2e-6);
      const auto elu = Derivatives(
          [&](const Tensor& x) {
            return composed ? EluComposed(x, 2) : Elu(x, 2);
          },
          x, 3);
      ExpectRelative(elu[0], {-2, 40}, 1e-7);
      ExpectRelative(elu[1], {2 * e, 1}, 2e-6);
      ExpectRelative(elu[2], {2 * e, 0}, 2e-6);
      ExpectRelative(elu[3], {2 * e, 0}, 2e-6);
    }
  }
}

TEST(PiecewiseTest, FarOutNothingIsNan) {
  struct Limit {
    const char* name;
    Unary f;
    double left, right;  // slopes
  };
  const Limit limits[] = {
      {"Abs", Abs, -1, 1},
      {"Clamp", [](const Tensor& x) { return Clamp(x, -1, 1); }, 0, 0},
      {"Softplus", [](const Tensor& x) { return Softplus(x); }, 0, 1},
      {"SoftplusComposed", [](const Tensor& x) { return SoftplusComposed(x); },
       0, 1},
      {"Softplus3", [](const Tensor& x) { return Softplus(x, 3); }, 0, 1},
      {"LogSigmoid", LogSigmoid, 1, 0},
      {"LogSigmoidComposed", LogSigmoidComposed, 1, 0},
      {"LeakyRelu", [](const Tensor& x) { return LeakyRelu(x, 0.5); }, 0.5, 1},
      {"Elu", [](const Tensor& x) { return Elu(x); }, 0, 1},
      {"EluComposed", [](const Tensor& x) { return EluComposed(x); }, 0, 1},
  };
  for (const Limit& limit : limits) {
    for (DType dtype : kFloats) {
      for (double far : {1e3, 1e20, kInf}) {
        SCOPED_TRACE(absl::StrCat(limit.name, " ", Name(dtype), " ", far));
        const Tensor x = Values({-far, far}, dtype);
        const auto d = Derivatives(limit.f, x, 3);
        for (double v : d[0]) EXPECT_FALSE(std::isnan(v));
        EXPECT_THAT(d[1], ElementsAre(limit.left, limit.right));
        EXPECT_THAT(d[2], Each(0));
        EXPECT_THAT(d[3], Each(0));
        ExpectSlopes(limit.f, x, {limit.left, limit.right});
      }
    }
  }
}

TEST(PiecewiseTest, ErrorsNameTheOperation) {
  const Tensor ids = Tensor::Zeros({2}, DType::kInt64);
  const std::pair<std::string, Unary> ops[] = {
      {"Abs", Abs},
      {"Clamp", [](const Tensor& x) { return Clamp(x, 0, 1); }},
      {"Softplus", [](const Tensor& x) { return Softplus(x); }},
      {"LogSigmoid", LogSigmoid},
      {"LeakyRelu", [](const Tensor& x) { return LeakyRelu(x); }},
      {"Elu", [](const Tensor& x) { return Elu(x); }}};
  for (const auto& [name, op] : ops) {
    EXPECT_THAT(ErrorOf([&, op = op] { op(ids); }),
                StartsWith(name + ": got int64 [2]; wanted float32"));
    EXPECT_THAT(ErrorOf([op = op] { op({}); }),
                StartsWith(name + ": got undefined; wanted"));
  }
  const Tensor x = Tensor::Zeros({2});
  EXPECT_EQ(ErrorOf([&] { Clamp(x, 2, 1); }),
            "Clamp: the bounds are 2 and 1; wanted lo <= hi");
  EXPECT_THAT(ErrorOf([&] { Clamp(x, NAN, 1); }), StartsWith("Clamp: "));
  for (double beta : {0.0, -1.0, kInf, double{NAN}}) {
    EXPECT_THAT(ErrorOf([&] { Softplus(x, beta); }),
                StartsWith("Softplus: beta is "));
    EXPECT_THAT(ErrorOf([&] { SoftplusComposed(x, beta); }),
                StartsWith("Softplus: beta is "));
  }
  EXPECT_EQ(ErrorOf([&] { LeakyRelu(x, kInf); }),
            "LeakyRelu: the slope is inf; wanted a number");
  EXPECT_EQ(ErrorOf([&] { Elu(x, NAN); }),
            "Elu: alpha is nan; wanted a number");
}

TEST(PiecewiseTest, SameBitsForAnyNumberOfThreads) {
  for (DType dtype : kFloats) {
    ExpectSameBitsForThreads(
        [](Inputs x) {
          return Softplus(x[0], 2) * LogSigmoid(x[0]) + Elu(x[0]) * Abs(x[0]) +
                 LeakyRelu(x[0]) * Clamp(x[0], -1, 1);
        },
        {Spread({70001}, -3, 3).To(dtype)});
  }
}

}  // namespace
}  // namespace wengert
