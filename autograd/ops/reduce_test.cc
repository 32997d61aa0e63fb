// Sums, means, maxima and log-sum-exp over any axes, and broadcasting.
#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ReduceTest, KnownValues) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({2, 3}, {1, 2, 3, 4, 5, 9}, dtype);
    EXPECT_EQ(Sum(x).item(), 24);
    EXPECT_EQ(Sum(x).shape(), Shape{});
    EXPECT_THAT(Sum(x, 0).ToVector(), ElementsAre(5, 7, 12));
    EXPECT_THAT(Sum(x, -1).ToVector(), ElementsAre(6, 18));
    EXPECT_EQ(Sum(x, -1).shape(), (Shape{2}));
    EXPECT_EQ(Sum(x, {0}, {.keep_dims = true}).shape(), (Shape{1, 3}));
    EXPECT_EQ(Sum(x, {0, -1}).item(), 24);
    EXPECT_EQ(Sum(x, {}, {.keep_dims = true}).shape(), (Shape{1, 1}));
    EXPECT_EQ(Mean(x).item(), 4);
    EXPECT_THAT(Mean(x, 1).ToVector(), ElementsAre(2, 6));
    EXPECT_EQ(Max(x).item(), 9);
    EXPECT_THAT(Max(x, 0).ToVector(), ElementsAre(4, 5, 9));
    EXPECT_THAT(ArgMax(x, 1).ToVector(), ElementsAre(2, 2));
    EXPECT_EQ(ArgMax(x, 1).dtype(), DType::kInt64);
    const Tensor y = Values({2, 2, 2}, {1, 8, 3, 4, 5, 6, 7, 2}, dtype);
    EXPECT_THAT(Sum(y, {0, 2}).ToVector(), ElementsAre(20, 16));
    EXPECT_THAT(Max(y, {0, 2}).ToVector(), ElementsAre(8, 7));
    EXPECT_THAT(ArgMax(y, 0).ToVector(), ElementsAre(1, 0, 1, 0));
    EXPECT_THAT(ArgMax(y, 1).ToVector(), ElementsAre(1, 0, 1, 0));
    EXPECT_EQ(ArgMax(y, 1).shape(), (Shape{2, 2}));
    EXPECT_THAT(SumTo(y, {2, 1}).ToVector(), ElementsAre(20, 16));
    EXPECT_EQ(SumTo(y, {}).item(), 36);
    EXPECT_THAT(BroadcastTo(Values({2, 1}, {1, 2}, dtype), {2, 2}).ToVector(),
                ElementsAre(1, 1, 2, 2));
  }
}

TEST(ReduceTest, MinimaAndPlaces) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({2, 3}, {4, 1, 3, 2, 9, -5}, dtype);
    EXPECT_EQ(Min(x).item(), -5);
    EXPECT_THAT(Min(x, 0).ToVector(), ElementsAre(2, 1, -5));
    EXPECT_EQ(Min(x, {1}, {.keep_dims = true}).shape(), (Shape{2, 1}));
    EXPECT_THAT(ArgMin(x, 1).ToVector(), ElementsAre(1, 2));
    EXPECT_EQ(ArgMin(x).item(), 5);
    EXPECT_EQ(ArgMin(x, {0, 1}, {.keep_dims = true}).shape(), (Shape{1, 1}));
    // Over several axes, row-major through those alone.
    const Tensor y =
        Values({2, 2, 3}, {1, 8, 3, 4, 5, 6, 7, 2, 9, 0, 11, 10}, dtype);
    EXPECT_THAT(ArgMax(y, {0, 2}).ToVector(), ElementsAre(5, 4));
    EXPECT_THAT(ArgMin(y, {0, 2}).ToVector(), ElementsAre(0, 3));
    EXPECT_THAT(ArgMax(y, {1, 2}).ToVector(), ElementsAre(1, 4));
    EXPECT_THAT(ArgMin(y, {0, 1}).ToVector(), ElementsAre(3, 2, 0));
    EXPECT_THAT(ArgMax(y, {1}, {.keep_dims = true}).ToVector(),
                ElementsAre(1, 0, 1, 0, 1, 1));
    EXPECT_EQ(ArgMax(y).item(), 10);
    EXPECT_EQ(ArgMin(Values({}, {3}, dtype)).item(), 0);
    EXPECT_EQ(ArgMax(Tensor::Zeros({0, 2}, dtype), 1).shape(), (Shape{0}));
  }
}

TEST(ReduceTest, MinimumTiesAndNan) {
  for (DType dtype : kFloats) {
    for (bool recorded : {false, true}) {
      EXPECT_THAT(GradientOf([](Inputs x) { return Min(x[0], 0); },
                             Values({2, 2}, {3, 1, 3, 1}, dtype), recorded),
                  ElementsAre(1, 1, 0, 0));
    }
    for (int64_t n : {3, 100}) {
      std::vector<double> values(n, 1);
      values[1] = values[2] = NAN;
      const Tensor x = Values(values, dtype);
      EXPECT_TRUE(std::isnan(Min(x).item()));
      EXPECT_EQ(ArgMin(x).item(), 1);
      EXPECT_EQ(ArgMax(x).item(), 1);
    }
    EXPECT_EQ(ArgMin(Values({2, 1, 1}, dtype), 0).item(), 1);
    EXPECT_EQ(Min(Values({kInf, kInf}, dtype)).item(), kInf);
  }
}

TEST(ReduceTest, AnyAndAll) {
  const Tensor x = Tensor::Of<bool>({2, 3}, {1, 0, 0, 1, 1, 0});
  EXPECT_THAT(Any(x, 0).ToVector(), ElementsAre(1, 1, 0));
  EXPECT_THAT(All(x, 0).ToVector(), ElementsAre(1, 0, 0));
  EXPECT_EQ(Any(x).item(), 1);
  EXPECT_EQ(All(x).item(), 0);
  EXPECT_EQ(Any(x, {1}, {.keep_dims = true}).shape(), (Shape{2, 1}));
  EXPECT_EQ(Any(x).dtype(), DType::kBool);
  const Tensor none = Tensor::Zeros({2, 0}, DType::kBool);
  EXPECT_THAT(Any(none, 1).ToVector(), ElementsAre(0, 0));
  EXPECT_THAT(All(none, 1).ToVector(), ElementsAre(1, 1));
  EXPECT_EQ(Any(Tensor::Of<int32_t>({2}, {0, -3})).item(), 1);
  EXPECT_EQ(All(Tensor::Of<float>({2}, {NAN, 0.5})).item(), 1);
  EXPECT_EQ(Any(Tensor::Of<double>({2}, {0, -0.0})).item(), 0);
  // One that differs, anywhere in a long row or column.
  for (int64_t n : {5, 300, 20000}) {
    for (int64_t at : {int64_t{0}, n / 2, n - 1}) {
      std::vector<bool> one(2 * n, false), but_one(2 * n, true);
      one[2 * at] = true;
      but_one[2 * at] = false;
      const Tensor a = Tensor::From({n, 2}, one);
      const Tensor b = Tensor::From({n, 2}, but_one);
      EXPECT_THAT(Any(a, 0).ToVector(), ElementsAre(1, 0)) << n << " " << at;
      EXPECT_THAT(All(b, 0).ToVector(), ElementsAre(0, 1)) << n << " " << at;
      EXPECT_EQ(Any(a).item(), 1) << n << " " << at;
      EXPECT_EQ(All(b).item(), 0) << n << " " << at;
      EXPECT_EQ(Any(Reshape(Slice(a, 0, 0, at), {-1})).item(), 0);
    }
  }
  EXPECT_THAT(ErrorOf([&] { Any(x, 2); }), StartsWith("Any: axis 2"));
  EXPECT_THAT(ErrorOf([&] { All({}); }), StartsWith("All: "));
}

TEST(ReduceTest, MeansAndQuotientsAreDivided) {
  for (DType dtype : kFloats) {
    for (int64_t n : {41, 49, 1000}) {
      EXPECT_EQ(Mean(Tensor::Ones({n}, dtype)).item(), 1) << n;
      EXPECT_EQ((Tensor::Full({}, n, dtype) / n).item(), 1) << n;
    }
    EXPECT_EQ((Tensor::Zeros({}, dtype) / 1e-39).item(), 0);
  }
}

TEST(ReduceTest, Nothing) {
  for (DType dtype : kFloats) {
    const Tensor none = Tensor::Zeros({2, 0}, dtype);
    EXPECT_EQ(Sum(none).item(), 0);
    EXPECT_THAT(Sum(none, 1).ToVector(), ElementsAre(0, 0));
    EXPECT_EQ(Sum(none, 0).shape(), (Shape{0}));
    EXPECT_EQ(Max(none, 0).shape(), (Shape{0}));
    EXPECT_THAT(LogSumExp(none, 1).ToVector(), Each(-kInf));
    EXPECT_THAT(GradientOf([](Inputs x) { return Sum(x[0], 1); }, none),
                testing::IsEmpty());
  }
}

TEST(ReduceTest, MaximumTiesGoToTheFirst) {
  for (DType dtype : kFloats) {
    const auto max = [](Inputs x) { return Max(x[0]); };
    for (bool recorded : {false, true}) {
      EXPECT_THAT(GradientOf(max, Values({2, 2, 1}, dtype), recorded),
                  ElementsAre(1, 0, 0));
      EXPECT_THAT(GradientOf([](Inputs x) { return Max(x[0], 0); },
                             Values({2, 2}, {3, 1, 3, 1}, dtype), recorded),
                  ElementsAre(1, 1, 0, 0));
    }
    EXPECT_THAT(ArgMax(Values({2, 2, 1}, dtype), 0).ToVector(), ElementsAre(0));
    EXPECT_EQ(Max(Values({-kInf, -kInf}, dtype)).item(), -kInf);
    EXPECT_TRUE(std::isnan(Max(Values({1, NAN, 2}, dtype)).item()));
  }
}

TEST(ReduceTest, LogSumExpIsStable) {
  for (DType dtype : kFloats) {
    const auto f = [](Inputs x) { return LogSumExp(x[0]); };
    for (bool recorded : {false, true}) {
      auto d = Differentiate(f, {Values({1000, 1000}, dtype)}, {}, recorded);
      EXPECT_NEAR(d.value.item(), 1000.693147,
                  dtype == DType::kFloat32 ? 6e-5 : 1e-6);
      EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(0.5, 0.5));
      d = Differentiate(f, {Values({-kInf, -kInf}, dtype)}, {}, recorded);
      EXPECT_EQ(d.value.item(), -kInf);
      EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(0, 0));
      d = Differentiate(f, {Values({-kInf, 3}, dtype)}, {}, recorded);
      EXPECT_EQ(d.value.item(), 3);
      EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(0, 1));
      d = Differentiate(f, {Values({kInf, 3, -kInf}, dtype)}, {}, recorded);
      EXPECT_EQ(d.value.item(), kInf);
      EXPECT_THAT(d.gradients[0].ToVector(),
                  ElementsAre(testing::IsNan(), 0, 0));
    }
    // One row that is all -inf leaves the others alone, at the second order
    // too.
    const Tensor x = Values({2, 2}, {-kInf, -kInf, 0, std::log(3)}, dtype);
    const auto rows = [](Inputs x) { return LogSumExp(x[0], -1); };
    EXPECT_THAT(GradientOf(rows, x, true),
                ElementsAre(0, 0, testing::DoubleNear(0.25, 1e-7),
                            testing::DoubleNear(0.75, 1e-7)));
    Tape tape;
    tape.Watch(x);
    const Tensor first =
        tape.Gradient(Sum(rows({&x, 1})), x, {.create_graph = true});
    const Tensor weights = Values({2, 2}, {1, 1, 1, 0}, dtype);
    const Tensor second = tape.Gradient(Sum(first * weights), x);
    EXPECT_THAT(second.ToVector(),
                ElementsAre(0, 0, testing::DoubleNear(0.1875, 1e-7),
                            testing::DoubleNear(-0.1875, 1e-7)));
  }
}

// One running float would be wrong in the fourth digit here.
TEST(ReduceTest, LongFloatSumsStayExact) {
  constexpr int64_t n = (1 << 21) + 3;
  const Tensor x = Tensor::Full({n}, 0.1);
  const double wanted = static_cast<double>(0.1f) * static_cast<double>(n);
  EXPECT_NEAR(Sum(x).item() / wanted, 1, 3e-7);
  EXPECT_NEAR(Mean(x).item() / static_cast<double>(0.1f), 1, 3e-7);
  EXPECT_NEAR(Sum(Tensor::Full({n, 2}, 0.1), 0).ToVector()[1] / wanted, 1,
              3e-7);
  EXPECT_NEAR(SumTo(Tensor::Full({n, 2}, 0.1), {2}).ToVector()[0] / wanted, 1,
              3e-7);
  const Tensor dy = Tensor::Ones({n});
  const auto spread = [](Inputs x) { return BroadcastTo(x[0], {n}); };
  EXPECT_NEAR(
      Differentiate(spread, {Tensor::Scalar(1)}, x).gradients[0].item() /
          wanted,
      1, 3e-7);
}

TEST(ReduceTest, ErrorsNameAxisAndShape) {
  const Tensor x = Tensor::Zeros({2, 3}), ids = x.To(DType::kInt64);
  using Op = Tensor (*)(const Tensor&, const Axes&, ReduceOptions);
  const std::pair<std::string, Op> ops[] = {{"Sum", Sum},
                                            {"Mean", Mean},
                                            {"Max", Max},
                                            {"Min", Min},
                                            {"ArgMax", ArgMax},
                                            {"ArgMin", ArgMin},
                                            {"LogSumExp", LogSumExp}};
  for (const auto& [name, op] : ops) {
    EXPECT_EQ(ErrorOf([&, op = op] { op(x, 2, {}); }),
              name +
                  ": axis 2 is out of range for shape [2, 3]; wanted one in "
                  "[-2, 2)");
    EXPECT_EQ(ErrorOf([&, op = op] {
                op(x, {0, -2}, {});
              }),
              name + ": axis -2 is named twice for shape [2, 3]");
    EXPECT_THAT(ErrorOf([&, op = op] { op(ids, {}, {}); }),
                StartsWith(name + ": got int64 [2, 3]; wanted float"));
    EXPECT_THAT(ErrorOf([op = op] { op({}, {}, {}); }),
                StartsWith(name + ": got undefined"));
  }
  EXPECT_THAT(ErrorOf([&] {
                Max(Tensor::Zeros({2, 0}), 1);
              }),
              AllOf(StartsWith("Max: "), HasSubstr("float32 [2, 0]")));
  EXPECT_THAT(ErrorOf([&] {
                ArgMin(Tensor::Zeros({2, 0}), 1);
              }),
              AllOf(StartsWith("ArgMin: no minimum of nothing"),
                    HasSubstr("float32 [2, 0]")));
  EXPECT_THAT(ErrorOf([&] { ArgMax(x, 2); }), StartsWith("ArgMax: axis 2"));
  EXPECT_THAT(ErrorOf([&] { SumTo(x, {2}); }),
              AllOf(StartsWith("SumTo: "), HasSubstr("[2]"),
                    HasSubstr("float32 [2, 3]")));
  EXPECT_THAT(ErrorOf([&] {
                BroadcastTo(x, {3, 3});
              }),
              AllOf(StartsWith("BroadcastTo: "), HasSubstr("float32 [2, 3]"),
                    HasSubstr("[3, 3]")));
  EXPECT_THAT(ErrorOf([&] { BroadcastTo({}, {3}); }),
              StartsWith("BroadcastTo: "));
  EXPECT_THAT(ErrorOf([&] { SumTo({}, {3}); }), StartsWith("SumTo: "));
}

TEST(ReduceTest, SameBitsForAnyNumberOfThreads) {
  for (DType dtype : kFloats) {
    const Tensor x = Spread({37, 41, 53}, -1, 1).To(dtype);
    ExpectSameBitsForThreads(
        [](Inputs x) {
          return Sum(x[0]) * LogSumExp(x[0]) + Sum(Mean(x[0], {0, 1})) +
                 Sum(LogSumExp(x[0], 1)) + Sum(Max(x[0], 0) * Min(x[0], 0)) +
                 Sum(Square(Sum(x[0], {0, 2}))) +
                 Sum(Square(SumTo(x[0], {53})));
        },
        {x});
  }
}

}  // namespace
}  // namespace wengert
