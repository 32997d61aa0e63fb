// Matrix products in all their forms, and the linear layer.
#include "autograd/ops/ops_testlib.h"
#include "autograd/storage.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// op(a) op(b) of two matrices, by the definition.
std::vector<double> Product(const Tensor& a, const Tensor& b,
                            MatMulOptions o = {}) {
  const std::vector<double> va = a.ToVector(), vb = b.ToVector();
  const int64_t m = a.dim(o.transpose_a ? 1 : 0);
  const int64_t k = a.dim(o.transpose_a ? 0 : 1);
  const int64_t n = b.dim(o.transpose_b ? 0 : 1);
  std::vector<double> y(m * n, 0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t t = 0; t < k; ++t) {
        y[i * n + j] += va[o.transpose_a ? t * m + i : i * k + t] *
                        vb[o.transpose_b ? j * k + t : t * n + j];
      }
    }
  }
  return y;
}

Tensor Matrix(const Tensor& batch, int64_t i) {
  return Reshape(Slice(batch, 0, i, 1), batch.shape().dims().subspan(1));
}

TEST(MatMulTest, KnownValues) {
  for (DType dtype : kFloats) {
    const Tensor a = Values({2, 3}, {1, 2, 3, 4, 5, 6}, dtype);
    const Tensor ones = Tensor::Ones({2, 2}, dtype);
    const auto f = [](Inputs x) {
      return MatMul(x[0], x[1], {.transpose_a = true});
    };
    EXPECT_THAT(f({a, ones}).ToVector(), ElementsAre(5, 5, 7, 7, 9, 9));
    EXPECT_EQ(f({a, ones}).shape(), (Shape{3, 2}));
    for (bool recorded : {false, true}) {
      EXPECT_THAT(
          Differentiate(f, {a, ones}, {}, recorded).gradients[0].ToVector(),
          Each(2));
    }
    const Tensor b = Values({3, 2}, {7, 8, 9, 10, 11, 12}, dtype);
    EXPECT_THAT(MatMul(a, b).ToVector(), ElementsAre(58, 64, 139, 154));
  }
}

TEST(MatMulTest, EveryTransposeAndSize) {
  for (DType dtype : kFloats) {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                                  {3, 5, 7},
                                  {33, 17, 65},
                                  {4, 3, 0},
                                  {0, 2, 3},
                                  {2, 0, 3},
                                  {1, 37, 2}}) {
      for (int bits = 0; bits < 4; ++bits) {
        const MatMulOptions o{(bits & 1) != 0, (bits & 2) != 0};
        const Shape a_shape = o.transpose_a ? Shape{k, m} : Shape{m, k};
        const Shape b_shape = o.transpose_b ? Shape{n, k} : Shape{k, n};
        const Tensor a = Spread(a_shape, -1, 1, 1).To(dtype);
        const Tensor b = Spread(b_shape, -1, 1, 2).To(dtype);
        const Tensor y = MatMul(a, b, o);
        EXPECT_EQ(y.shape(), (Shape{m, n}));
        ExpectClose(y, Values({m, n}, Product(a, b, o)),
                    dtype == DType::kFloat32 ? 3e-6 : 1e-14, "product");
      }
    }
  }
}

TEST(MatMulTest, BatchesBroadcast) {
  for (DType dtype : kFloats) {
    // [2, 1, 3, 4] x [3, 4, 5] -> [2, 3, 3, 5]
    const Tensor a = Spread({2, 1, 3, 4}, -1, 1, 1).To(dtype);
    const Tensor b = Spread({3, 4, 5}, -1, 1, 2).To(dtype);
    const Tensor y = MatMul(a, b);
    ASSERT_EQ(y.shape(), (Shape{2, 3, 3, 5}));
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        const Tensor wanted =
            Values({3, 5}, Product(Matrix(Matrix(a, i), 0), Matrix(b, j)));
        ExpectClose(Matrix(Matrix(y, i), j), wanted, 3e-6, "batch entry");
      }
    }
    EXPECT_EQ(MatMul(Tensor::Ones({3, 4}, dtype), b).shape(), (Shape{3, 3, 5}));
    EXPECT_EQ(MatMul(a, Tensor::Ones({4, 2}, dtype)).shape(),
              (Shape{2, 1, 3, 2}));
    EXPECT_EQ(
        MatMul(Tensor::Ones({2, 3, 0}, dtype), Tensor::Ones({0, 2}, dtype))
            .ToVector(),
        std::vector<double>(12, 0));
    EXPECT_EQ(
        MatMul(Tensor::Ones({0, 3, 2}, dtype), Tensor::Ones({2, 2}, dtype))
            .shape(),
        (Shape{0, 3, 2}));
  }
}

TEST(MatMulTest, Errors) {
  const Tensor a = Tensor::Zeros({2, 3}), v = Tensor::Zeros({3});
  EXPECT_EQ(ErrorOf([&] { MatMul(a, a); }),
            "MatMul: float32 [2, 3] times float32 [2, 3]: the inner dimensions "
            "differ; wanted [..., m, k] x [..., k, n]");
  EXPECT_THAT(
      ErrorOf([&] {
        MatMul(a, a, {true, true});
      }),
      AllOf(StartsWith("MatMul: float32 [2, 3] transposed times float32 "
                       "[2, 3] transposed: ")));
  EXPECT_THAT(ErrorOf([&] { MatMul(a, v); }),
              AllOf(StartsWith("MatMul: float32 [2, 3] times float32 [3]"),
                    HasSubstr("wanted two operands of rank 2 or more")));
  EXPECT_THAT(
      ErrorOf([&] {
        MatMul(Tensor::Zeros({2, 3, 3}), Tensor::Zeros({4, 3, 3}));
      }),
      AllOf(StartsWith("MatMul: "), HasSubstr("[2]"), HasSubstr("[4]")));
  EXPECT_THAT(ErrorOf([&] { MatMul(a, a.To(DType::kFloat64)); }),
              StartsWith("MatMul: got float32 [2, 3], float64 [2, 3]; wanted"));
  EXPECT_THAT(ErrorOf([&] { MatMul(a, {}); }), StartsWith("MatMul: "));
}

TEST(OuterAndDotTest, KnownValues) {
  for (DType dtype : kFloats) {
    const Tensor a = Values({1, 2}, dtype), b = Values({3, 4, 5}, dtype);
    EXPECT_EQ(Outer(a, b).shape(), (Shape{2, 3}));
    EXPECT_THAT(Outer(a, b).ToVector(), ElementsAre(3, 4, 5, 6, 8, 10));
    EXPECT_EQ(Dot(b, b).shape(), Shape{});
    EXPECT_EQ(Dot(b, b).item(), 50);
    const Tensor none = Tensor::Zeros({0}, dtype);
    EXPECT_EQ(Outer(none, b).shape(), (Shape{0, 3}));
    EXPECT_EQ(Dot(none, none).item(), 0);
    const auto d =
        Differentiate([](Inputs x) { return Dot(x[0], x[1]); }, {b, b * 2});
    EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(6, 8, 10));
  }
}

// A running sum in float would be off by a thousandth.
TEST(OuterAndDotTest, DotKeepsFloatAccuracy) {
  for (int64_t n : {100, 100000, 10000000}) {
    const Tensor x = Tensor::Full({n}, 0.1f);
    const double exact = static_cast<double>(n) * 0.1f * 0.1f;
    EXPECT_NEAR(Dot(x, x).item(), exact, 2e-6 * exact) << n;
  }
}

TEST(OuterAndDotTest, Errors) {
  const Tensor a = Tensor::Zeros({2}), b = Tensor::Zeros({3});
  EXPECT_EQ(ErrorOf([&] { Dot(a, b); }),
            "Dot: float32 [2] and float32 [3]; wanted [n] and [n]");
  EXPECT_EQ(ErrorOf([&] {
              Outer(a, Tensor::Zeros({3, 1}));
            }),
            "Outer: float32 [2] and float32 [3, 1]; wanted [m] and [n]");
  EXPECT_THAT(ErrorOf([&] { Outer(a, b.To(DType::kFloat64)); }),
              StartsWith("Outer: got "));
  EXPECT_THAT(ErrorOf([&] { Dot({}, a); }), StartsWith("Dot: got "));
}

TEST(LinearTest, KnownValues) {
  for (DType dtype : kFloats) {
    const Tensor x = Values({2, 2}, {1, 2, 3, 4}, dtype);
    const Tensor w = Values({3, 2}, {1, 0, 0, 1, 1, -1}, dtype);
    const Tensor b = Values({3}, {10, 20, 30}, dtype);
    for (const auto& linear : {Linear, LinearComposed}) {
      EXPECT_THAT(linear(x, w, b).ToVector(),
                  ElementsAre(11, 22, 29, 13, 24, 29));
      EXPECT_THAT(linear(x, w, {}).ToVector(), ElementsAre(1, 2, -1, 3, 4, -1));
      const auto f = [&](Inputs x) { return linear(x[0], x[1], x[2]); };
      const auto d = Differentiate(f, {x, w, b});
      EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(2, 0, 2, 0));
      EXPECT_THAT(d.gradients[1].ToVector(), ElementsAre(4, 6, 4, 6, 4, 6));
      EXPECT_THAT(d.gradients[2].ToVector(), ElementsAre(2, 2, 2));
      EXPECT_EQ(linear(Reshape(x, {2, 1, 2}), w, b).shape(), (Shape{2, 1, 3}));
      EXPECT_EQ(linear(Values({1, 2}, dtype), w, b).shape(), (Shape{3}));
    }
  }
}

TEST(LinearTest, Errors) {
  const Tensor x = Tensor::Zeros({4, 3}), w = Tensor::Zeros({2, 3});
  EXPECT_EQ(ErrorOf([&] {
              Linear(x, Tensor::Zeros({3, 2}));
            }),
            "Linear: x float32 [4, 3], weight float32 [3, 2], bias undefined; "
            "wanted x [..., in], weight [out, in], bias [out]");
  EXPECT_THAT(ErrorOf([&] { Linear(x, w, Tensor::Zeros({3})); }),
              AllOf(StartsWith("Linear: "), HasSubstr("bias float32 [3]")));
  EXPECT_THAT(ErrorOf([&] { Linear(Tensor::Zeros({}), w); }),
              StartsWith("Linear: x float32 []"));
  EXPECT_THAT(ErrorOf([&] { Linear(x, {}); }),
              StartsWith("Linear: got float32 [4, 3], undefined"));
  EXPECT_THAT(
      ErrorOf([&] { Linear(x, w, Tensor::Zeros({2}, DType::kFloat64)); }),
      AllOf(StartsWith("Linear: got "), HasSubstr("float64 [2]")));
}

TEST(ActivatedLinearTest, HasTheBitsOfTheTwoOperations) {
  for (DType dtype : kFloats) {
    const std::vector<Tensor> xs = {Spread({2, 9, 6}, -3, 3, 1).To(dtype),
                                    Spread({5, 6}, -1, 1, 2).To(dtype),
                                    Spread({5}, -1, 1, 3).To(dtype)};
    for (Activation f : {Activation::kRelu, Activation::kGelu,
                         Activation::kGeluTanh, Activation::kSilu}) {
      const auto fused = Differentiate(
          [f](Inputs x) { return ActivatedLinear(f, x[0], x[1], x[2]); }, xs);
      const auto two = Differentiate(
          [f](Inputs x) { return Linear(Activate(f, x[0]), x[1], x[2]); }, xs);
      EXPECT_EQ(fused.value.ToVector(), two.value.ToVector());
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(fused.gradients[i].ToVector(), two.gradients[i].ToVector());
      }
    }
  }
}

TEST(ActivatedLinearTest, KeepsNoActivation) {
  const Tensor w = Spread({4, 256}, -1, 1, 1);
  const auto kept = [&](auto f) {
    const Tensor x = Spread({512, 256}, -1, 1, 2);
    Tape tape;
    tape.Watch(x);
    const int64_t before = GetPoolStats().live_bytes;
    const Tensor y = f(x);
    return GetPoolStats().live_bytes - before;
  };
  const int64_t activation = 512 * 256 * sizeof(float);
  EXPECT_LT(kept([&](const Tensor& x) {
              return ActivatedLinear(Activation::kGelu, x, w);
            }),
            activation / 2);
  EXPECT_GT(kept([&](const Tensor& x) { return Linear(Gelu(x), w); }),
            activation);
}

// Backward writes f(x) over an x that only the tape holds, and over no other.
TEST(ActivatedLinearTest, LeavesAnInputAloneThatOthersHold) {
  const Tensor w = Spread({4, 8}, -1, 1, 1), x = Spread({5, 8}, -1, 1, 2);
  const std::vector<double> before = x.ToVector();
  std::vector<double> first;
  for (const bool retain : {false, true}) {
    for (const bool held : {false, true}) {
      Tape tape;
      tape.Watch(w);
      tape.Watch(x);
      Tensor h = Affine(x, 2, 0);
      const std::vector<double> h_before = h.ToVector();
      const Tensor y = Sum(ActivatedLinear(Activation::kGelu, h, w));
      const Tensor keeper = held ? h : Tensor();
      h = {};
      const std::vector<Tensor> xs = {x, w};
      for (int i = 0; i <= retain; ++i) {
        const auto d = tape.Gradient(y, xs, {.retain = retain});
        if (first.empty()) first = d[1].ToVector();
        EXPECT_EQ(d[1].ToVector(), first);
      }
      if (held) {
        EXPECT_EQ(keeper.ToVector(), h_before);
      }
    }
  }
  EXPECT_EQ(x.ToVector(), before);
}

TEST(ActivatedLinearTest, ErrorsNameIt) {
  EXPECT_THAT(ErrorOf([&] {
                ActivatedLinear(Activation::kGelu, Tensor::Zeros({4, 3}),
                                Tensor::Zeros({3, 2}));
              }),
              StartsWith("ActivatedLinear: x float32 [4, 3], weight"));
}

TEST(MatMulTest, SameBitsForAnyNumberOfThreads) {
  for (DType dtype : kFloats) {
    ExpectSameBitsForThreads([](Inputs x) { return Linear(x[0], x[1], x[2]); },
                             {Spread({185, 132}, -1, 1, 1).To(dtype),
                              Spread({264, 132}, -1, 1, 2).To(dtype),
                              Spread({264}, -1, 1, 3).To(dtype)});
    ExpectSameBitsForThreads(
        [](Inputs x) { return ActivatedLinear(Activation::kSilu, x[0], x[1]); },
        {Spread({185, 132}, -1, 1, 1).To(dtype),
         Spread({264, 132}, -1, 1, 2).To(dtype)});
    ExpectSameBitsForThreads(
        [](Inputs x) { return MatMul(x[0], x[1], {.transpose_b = true}); },
        {Spread({5, 3, 37, 44}, -1, 1, 1).To(dtype),
         Spread({3, 41, 44}, -1, 1, 2).To(dtype)});
  }
}

}  // namespace
}  // namespace wengert
