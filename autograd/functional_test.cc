#include "autograd/functional.h"

#include <cmath>
#include <vector>

#include "autograd/ops.h"
#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor D(const Shape& shape, const std::vector<double>& values) {
  return Tensor::From(shape, values);
}

void ExpectNear(const Tensor& got, const Shape& shape,
                const std::vector<double>& want) {
  ASSERT_EQ(got.shape(), shape);
  const std::vector<double> values = got.ToVector();
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(values[i], want[i], 1e-12) << "element " << i;
  }
}

// Rosenbrock's function of two numbers: (1 - a)² + 100 (b - a²)².
Tensor Rosenbrock(const Tensor& x) {
  const Tensor a = Slice(x, 0, 0, 1), b = Slice(x, 0, 1, 1);
  return Sum(Square(1 - a) + 100 * Square(b - Square(a)));
}

TEST(Functional, ValueAndGrad) {
  const auto [value, gradient] = ValueAndGrad(Rosenbrock, D({2}, {2, 3}));
  EXPECT_EQ(value.item(), 101);
  ExpectNear(gradient, {2}, {802, -200});
}

TEST(Functional, ValueAndGradOfSeveral) {
  const auto [value, gradients] = ValueAndGrad(
      [](absl::Span<const Tensor> xs) { return Sum(xs[0] * xs[1]); },
      {D({2}, {1, 2}), D({2}, {3, 5}), D({}, {7})});
  EXPECT_EQ(value.item(), 13);
  ExpectNear(gradients[0], {2}, {3, 5});
  ExpectNear(gradients[1], {2}, {1, 2});
  ExpectNear(gradients[2], {}, {0});
}

// dp_i/dx_j = p_i (δ_ij - p_j) for p = softmax(x).
TEST(Functional, JacobianOfSoftmax) {
  const Tensor x = D({3}, {0.5, -1, 2});
  const std::vector<double> p = Softmax(x, 0).ToVector();
  std::vector<double> want;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) want.push_back(p[i] * ((i == j) - p[j]));
  }
  ExpectNear(Jacobian([](const Tensor& x) { return Softmax(x, 0); }, x), {3, 3},
             want);
}

TEST(Functional, JacobianHasTheShapesOfBoth) {
  const Tensor w = D({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto f = [&](const Tensor& x) { return MatMul(w, x); };  // [3, 1]
  ExpectNear(Jacobian(f, D({2, 1}, {7, 8})), {3, 1, 2, 1}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(Jacobian(Rosenbrock, D({2}, {2, 3})).shape(), Shape({2}));
  EXPECT_EQ(
      Jacobian([](const Tensor& x) { return Square(x); }, D({0}, {})).shape(),
      Shape({0, 0}));
}

TEST(Functional, Hessian) {
  const Tensor x = D({2}, {2, 3});
  const std::vector<double> want = {3602, -800, -800, 200};
  ExpectNear(Hessian(Rosenbrock, x), {2, 2}, want);
  ExpectNear(HessianVectorProduct(Rosenbrock, x, D({2}, {1, -2})), {2},
             {3602 + 1600, -800 - 400});
  // Of a fused operation, too: sum gelu(x) has a diagonal one.
  const Tensor h =
      Hessian([](const Tensor& x) { return Sum(Gelu(x)); }, D({2}, {0.3, -1}));
  const auto second = [](double t) {  // (2 - t²) φ(t)
    return (2 - t * t) * std::exp(-t * t / 2) / std::sqrt(2 * M_PI);
  };
  ExpectNear(h, {2, 2}, {second(0.3), 0, 0, second(-1)});
}

TEST(Functional, ProductsAgreeWithTheJacobian) {
  const auto f = [](const Tensor& x) {
    return Tanh(MatMul(x, x, {.transpose_b = true}));
  };
  const Tensor x = D({2, 3}, {0.1, 0.4, -0.2, 0.3, -0.5, 0.2});
  const std::vector<double> v = {1, -2, 0.5, 3, 0, 1}, u = {2, -1, 0.5, 1};
  const std::vector<double> j = Jacobian(f, x).ToVector();
  std::vector<double> jv(4, 0.0), uj(6, 0.0);
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 6; ++k) {
      jv[i] += j[i * 6 + k] * v[k];
      uj[k] += u[i] * j[i * 6 + k];
    }
  }
  const auto forward = JacobianVectorProduct(f, x, D({2, 3}, v));
  ExpectNear(forward.gradient, {2, 2}, jv);
  EXPECT_TRUE(SameBits(forward.value, f(x)));
  const auto backward = VectorJacobianProduct(f, x, D({2, 2}, u));
  ExpectNear(backward.gradient, {2, 3}, uj);
  EXPECT_TRUE(SameBits(backward.value, f(x)));
}

// A function that is constant, or linear: its derivatives are zeros.
TEST(Functional, WhatDoesNotDependGivesZeros) {
  const Tensor x = D({2}, {1, 2});
  const auto constant = [](const Tensor&) { return D({}, {5}); };
  const auto linear = [](const Tensor& x) { return Sum(3 * x); };
  ExpectNear(ValueAndGrad(constant, x).gradient, {2}, {0, 0});
  ExpectNear(Jacobian(constant, x), {2}, {0, 0});
  ExpectNear(Hessian(constant, x), {2, 2}, {0, 0, 0, 0});
  ExpectNear(Hessian(linear, x), {2, 2}, {0, 0, 0, 0});
  ExpectNear(HessianVectorProduct(linear, x, x), {2}, {0, 0});
  ExpectNear(JacobianVectorProduct(constant, x, x).gradient, {}, {0});
  ExpectNear(VectorJacobianProduct(constant, x, D({}, {1})).gradient, {2},
             {0, 0});
}

TEST(Functional, FloatAndInsideAnotherTape) {
  const Tensor x = Tensor::Of<float>({2}, {1, 2});
  Tape tape;
  tape.Watch(x);
  const auto result =
      ValueAndGrad([](const Tensor& x) { return Sum(Square(x)); }, x);
  EXPECT_EQ(result.gradient.dtype(), DType::kFloat32);
  EXPECT_THAT(result.gradient.ToVector(), ElementsAre(2, 4));
  EXPECT_FALSE(tape.Tracks(result.value));
  EXPECT_FALSE(tape.Tracks(result.gradient));
}

TEST(Functional, RefusesWrongShapes) {
  const Tensor x = D({2}, {1, 2});
  const auto square = [](const Tensor& x) { return Square(x); };
  EXPECT_EQ(ErrorOf([&] { ValueAndGrad(square, x); }),
            "ValueAndGrad: f(x) float64 [2]; wanted one element");
  EXPECT_THAT(ErrorOf([&] { Hessian(square, x); }), HasSubstr("one element"));
  EXPECT_EQ(ErrorOf([&] {
              VectorJacobianProduct(square, x, D({3}, {1, 2, 3}));
            }),
            "VectorJacobianProduct: u float64 [3]; wanted f(x)'s float64 [2]");
  EXPECT_THAT(ErrorOf([&] { JacobianVectorProduct(square, x, D({}, {1})); }),
              HasSubstr("wanted x's float64 [2]"));
  EXPECT_THAT(ErrorOf([&] { Jacobian(square, Tensor::Of<int64_t>({1}, {3})); }),
              HasSubstr("wanted a float"));
}

}  // namespace
}  // namespace wengert
