// Softmax and log-softmax, fused and composed.
#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Op = Tensor (*)(const Tensor&, int);

constexpr Op kSoftmaxes[] = {Softmax, SoftmaxComposed};
constexpr Op kLogSoftmaxes[] = {LogSoftmax, LogSoftmaxComposed};

double Accuracy(DType dtype) { return dtype == DType::kFloat32 ? 1e-6 : 1e-14; }

TEST(SoftmaxTest, KnownValues) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({2, 3}, {1, 2, 3, 7, 7, 7}, dtype);
    for (Op f : kSoftmaxes) {
      ExpectRelative(f(x, -1).ToVector(),
                     {0.090030573170380457, 0.24472847105479764,
                      0.66524095577482189, 1.0 / 3, 1.0 / 3, 1.0 / 3},
                     Accuracy(dtype));
      const std::vector<double> columns = f(x, 0).ToVector();
      EXPECT_NEAR(columns[0], 0.0024726231566347743, 1e-8);
      EXPECT_NEAR(columns[0] + columns[3], 1, 1e-7);
    }
    for (Op f : kLogSoftmaxes) {
      ExpectRelative(
          f(x, -1).ToVector(),
          {-2.4076059644443806, -1.4076059644443806, -0.40760596444438046,
           -std::log(3), -std::log(3), -std::log(3)},
          Accuracy(dtype));
    }
  }
}

TEST(SoftmaxTest, GradientOfASquare) {
  for (DType dtype : kFloats) {
    for (Op f : kSoftmaxes) {
      const auto loss = [&](Inputs x) {
        return Sum(Square(f(x[0], -1)) * Values({1, 2}, x[0].dtype()));
      };
      for (bool recorded : {false, true}) {
        EXPECT_THAT(
            GradientOf(loss, Values({0, 0}, dtype), recorded),
            ElementsAre(DoubleNear(-0.25, 1e-7), DoubleNear(0.25, 1e-7)));
      }
    }
  }
}

TEST(SoftmaxTest, ThirdDerivative) {
  for (DType dtype : kFloats) {
    for (Op f : kSoftmaxes) {
      Tape tape;
      const Tensor z = Values({std::log(3), 0}, dtype);
      tape.Watch(z);
      const Tensor first = Values({1, 0}, dtype);
      Tensor y = f(z, -1);
      for (double wanted : {0.75, 0.1875, -0.09375, -0.0234375}) {
        EXPECT_NEAR(y.ToVector()[0], wanted, 5 * Accuracy(dtype));
        y = tape.Gradient(Sum(y * first), z, {.create_graph = true});
      }
    }
    for (Op f : kLogSoftmaxes) {  // log of the above
      Tape tape;
      const Tensor z = Values({std::log(3), 0}, dtype);
      tape.Watch(z);
      const Tensor first = Values({1, 0}, dtype);
      Tensor y = f(z, -1);
      for (double wanted : {std::log(0.75), 0.25, -0.1875, 0.09375}) {
        EXPECT_NEAR(y.ToVector()[0], wanted, 5 * Accuracy(dtype));
        y = tape.Gradient(Sum(y * first), z, {.create_graph = true});
      }
    }
  }
}

// A slice of -inf gives zeros and no gradient; beside it nothing changes.
TEST(SoftmaxTest, AllMasked) {
  for (DType dtype : kFloats) {
    const Tensor x =
        Values({3, 2}, {-kInf, -kInf, 0, std::log(3), -kInf, 5}, dtype);
    const Tensor dy = Values({3, 2}, {1, 2, 1, 0, 3, 5}, dtype);
    for (Op op : kSoftmaxes) {
      const auto f = [&](Inputs x) { return op(x[0], -1); };
      for (bool recorded : {false, true}) {
        const auto d = Differentiate(f, {x}, dy, recorded);
        EXPECT_THAT(d.value.ToVector(),
                    ElementsAre(0, 0, DoubleNear(0.25, 1e-7),
                                DoubleNear(0.75, 1e-7), 0, 1));
        EXPECT_THAT(d.gradients[0].ToVector(),
                    ElementsAre(0, 0, DoubleNear(0.1875, 1e-7),
                                DoubleNear(-0.1875, 1e-7), 0, 0));
      }
      // The slice may be a column.
      EXPECT_THAT(op(Transpose(x), 0).ToVector(),
                  ElementsAre(0, DoubleNear(0.25, 1e-7), 0, 0,
                              DoubleNear(0.75, 1e-7), 1));
      // Higher derivatives stay numbers.
      Tape tape;
      tape.Watch(x);
      Tensor y = op(x, -1);
      for (int order = 0; order < 3; ++order) {
        y = tape.Gradient(Sum(y * dy), x, {.create_graph = true});
        for (double v : y.ToVector()) EXPECT_TRUE(std::isfinite(v)) << order;
      }
    }
    for (Op op : kLogSoftmaxes) {
      const auto f = [&](Inputs x) { return op(x[0], -1); };
      for (bool recorded : {false, true}) {
        const auto d = Differentiate(f, {x}, dy, recorded);
        EXPECT_THAT(d.value.ToVector(),
                    ElementsAre(-kInf, -kInf, DoubleNear(std::log(0.25), 1e-6),
                                DoubleNear(std::log(0.75), 1e-6), -kInf, 0));
        const std::vector<double> g = d.gradients[0].ToVector();
        EXPECT_EQ(g[0], 0);
        EXPECT_EQ(g[1], 0);
        EXPECT_NEAR(g[2], 0.75, 1e-7);
        EXPECT_NEAR(g[3], -0.75, 1e-7);
        EXPECT_EQ(g[5], -3);
      }
    }
  }
}

TEST(SoftmaxTest, LargeLogits) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({1e30, 1e30, -1e30}, dtype);
    for (Op f : kSoftmaxes) {
      EXPECT_THAT(f(x, -1).ToVector(), ElementsAre(0.5, 0.5, 0));
    }
    const Tensor z = Values({1000, 1000}, dtype);
    for (Op f : kLogSoftmaxes) {
      EXPECT_THAT(f(z, -1).ToVector(), Each(DoubleNear(-std::log(2), 1e-7)));
    }
  }
}

TEST(SoftmaxTest, Errors) {
  const Tensor x = Tensor::Zeros({2, 3});
  const std::pair<std::string, Op> ops[] = {{"Softmax", Softmax},
                                            {"LogSoftmax", LogSoftmax}};
  for (const auto& [name, op] : ops) {
    EXPECT_EQ(ErrorOf([&, op = op] { op(x, 2); }),
              name +
                  ": axis 2 is out of range for shape [2, 3]; wanted one in "
                  "[-2, 2)");
    EXPECT_THAT(ErrorOf([&, op = op] { op(Tensor::Scalar(1), -1); }),
                StartsWith(name + ": axis -1 is out of range for shape []"));
    EXPECT_THAT(
        ErrorOf([&, op = op] { op(x.To(DType::kInt32), -1); }),
        AllOf(StartsWith(name + ": got int32 [2, 3]"), HasSubstr("wanted")));
    EXPECT_THAT(ErrorOf([&, op = op] { op({}, -1); }),
                StartsWith(name + ": got undefined"));
  }
}

TEST(SoftmaxTest, SameBitsForAnyNumberOfThreads) {
  for (DType dtype : kFloats) {
    ExpectSameBitsForThreads(
        [](Inputs x) { return Softmax(x[0]) * LogSoftmax(x[0], 0); },
        {Spread({601, 133}, -3, 3).To(dtype)});
  }
}

}  // namespace
}  // namespace wengert
