#include "autograd/kernels/broadcast.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "autograd/kernels/kernel_testlib.h"
#include "gtest/gtest.h"

namespace wengert::kernels {
namespace {

using Shape = std::vector<int64_t>;

// Where element `flat` of a result of shape `out` is read in an operand.
int64_t OperandIndex(Dims out, Dims operand, int64_t flat) {
  int64_t index = 0, stride = 1;
  for (size_t i = 1; i <= out.size(); ++i) {
    const int64_t at = flat % out[out.size() - i];
    flat /= out[out.size() - i];
    if (i > operand.size()) continue;
    const int64_t size = operand[operand.size() - i];
    if (size != 1) index += at * stride;
    stride *= size;
  }
  return index;
}

struct ShapeCase {
  Shape out, a, b;
};

const ShapeCase kShapes[] = {
    {{}, {}, {}},
    {{1}, {}, {1}},
    {{7}, {7}, {7}},
    {{7}, {7}, {1}},
    {{7}, {}, {7}},
    {{5}, {1}, {1}},  // neither fills it
    {{0}, {0}, {1}},
    {{3, 0, 2}, {3, 0, 2}, {2}},
    {{3, 0}, {3, 1}, {1, 0}},
    {{4, 5}, {4, 5}, {5}},
    {{4, 5}, {4, 1}, {4, 5}},
    {{4, 5}, {4, 1}, {5}},
    {{4, 5}, {1, 5}, {4, 1}},
    {{2, 3, 4}, {2, 3, 4}, {3, 1}},
    {{2, 3, 4}, {2, 1, 4}, {2, 3, 4}},
    {{2, 3, 4}, {2, 1, 1}, {3, 4}},
    {{2, 3, 4, 5}, {2, 1, 4, 1}, {3, 1, 5}},
    {{2, 3, 1, 4, 5}, {2, 1, 1, 4, 5}, {3, 1, 1, 5}},
    {{2, 2, 2, 2, 2, 2, 2, 2},
     {2, 1, 2, 1, 2, 1, 2, 1},
     {1, 2, 1, 2, 1, 2, 1, 2}},
    {{37, 19, 53}, {37, 1, 53}, {19, 1}},
    {{3, 20011}, {3, 20011}, {20011}},
    {{20011, 3}, {20011, 1}, {3}},
};

template <class T>
void CheckBinary(Binary op, T (*reference)(T, T)) {
  for (const ShapeCase& s : kShapes) {
    const auto a = RandomVector<T>(NumElements(s.a), 1);
    const auto b = RandomVector<T>(NumElements(s.b), 2);
    std::vector<T> y(NumElements(s.out));
    Apply<T>(op, s.out, a.data(), s.a, b.data(), s.b, y.data());
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], reference(a[OperandIndex(s.out, s.a, i)],
                                b[OperandIndex(s.out, s.b, i)]))
          << "at " << i << " of case " << &s - kShapes;
    }
  }
}

template <class T>
class BroadcastTest : public testing::Test {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(BroadcastTest, Floats);

TYPED_TEST(BroadcastTest, BinaryAgreesWithIndexing) {
  using T = TypeParam;
  CheckBinary<T>(Binary::kAdd, [](T a, T b) { return a + b; });
  CheckBinary<T>(Binary::kSub, [](T a, T b) { return a - b; });
  CheckBinary<T>(Binary::kMul, [](T a, T b) { return a * b; });
  CheckBinary<T>(Binary::kDiv, [](T a, T b) { return a / b; });
  CheckBinary<T>(Binary::kMax, [](T a, T b) { return std::fmax(a, b); });
  CheckBinary<T>(Binary::kMin, [](T a, T b) { return std::fmin(a, b); });
}

TYPED_TEST(BroadcastTest, MaxAndMinTakeTheFirstOfEqualsAndKeepNan) {
  using T = TypeParam;
  const std::vector<T> a = {0, -T{0}, T(NAN), 1, -T(INFINITY)};
  const std::vector<T> b = {-T{0}, 0, 1, T(NAN), T(INFINITY)};
  const Shape dims = {5};
  for (Binary op : {Binary::kMax, Binary::kMin}) {
    std::vector<T> y(5);
    Apply<T>(op, dims, a.data(), dims, b.data(), dims, y.data());
    EXPECT_FALSE(std::signbit(y[0]));
    EXPECT_TRUE(std::signbit(y[1]));
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_TRUE(std::isnan(y[3]));
    EXPECT_EQ(y[4], op == Binary::kMax ? b[4] : a[4]);
  }
}

TYPED_TEST(BroadcastTest, ResultMayBeAnOperandOfItsShape) {
  using T = TypeParam;
  const Shape out = {37, 530}, row = {530}, column = {37, 1};
  const auto a = RandomVector<T>(NumElements(out), 3);
  for (const Shape& dims : {out, row, column, Shape{}}) {
    const auto b = RandomVector<T>(NumElements(dims), 4);
    std::vector<T> y(a.size()), in_place = a;
    Apply<T>(Binary::kSub, out, a.data(), out, b.data(), dims, y.data());
    Apply<T>(Binary::kSub, out, in_place.data(), out, b.data(), dims,
             in_place.data());
    ExpectSameBits(in_place, y);
    in_place = a;
    Apply<T>(Binary::kSub, out, b.data(), dims, a.data(), out, y.data());
    Apply<T>(Binary::kSub, out, b.data(), dims, in_place.data(), out,
             in_place.data());
    ExpectSameBits(in_place, y);
  }
}

TYPED_TEST(BroadcastTest, BitsDoNotDependOnThreads) {
  using T = TypeParam;
  const Shape out = {61, 7, 301}, a_dims = {61, 1, 301}, b_dims = {7, 1};
  const auto a = RandomVector<T>(NumElements(a_dims), 5);
  const auto b = RandomVector<T>(NumElements(b_dims), 6);
  const auto check = [&](auto apply) {
    ExpectSameBitsForAnyThreads([&] {
      std::vector<T> y(NumElements(out));
      apply(y.data());
      return y;
    });
  };
  for (Binary op :
       {Binary::kDiv, Binary::kPow, Binary::kAtan2, Binary::kReciprocalReal}) {
    check([&](T* y) {
      Apply<T>(op, out, a.data(), a_dims, b.data(), b_dims, y);
    });
  }
  check([&](T* y) {
    Lerp<T>(out, a.data(), a_dims, b.data(), b_dims, a.data(), a_dims, y);
  });
}

// What a row holds at a place has the bits that it has alone.
TYPED_TEST(BroadcastTest, BitsDoNotDependOnPlace) {
  using T = TypeParam;
  const Shape all = {1001}, one = {1};
  const auto a = RandomVector<T>(1001, 7), b = RandomVector<T>(1001, 8);
  for (Binary op : {Binary::kPow, Binary::kAtan2, Binary::kReciprocalReal}) {
    std::vector<T> y(1001), alone(1001);
    Apply<T>(op, all, a.data(), all, b.data(), all, y.data());
    for (int i = 0; i < 1001; ++i) {
      Apply<T>(op, one, &a[i], one, &b[i], one, &alone[i]);
    }
    ExpectSameBits(alone, y);
  }
}

TYPED_TEST(BroadcastTest, ReciprocalRealIsExactFarOutToo) {
  using T = TypeParam;
  const auto at = [](double a, double b) {
    const T u = static_cast<T>(a), v = static_cast<T>(b);
    T y;
    Apply<T>(Binary::kReciprocalReal, Shape{}, &u, Shape{}, &v, Shape{}, &y);
    return double{y};
  };
  EXPECT_EQ(at(3, 4), static_cast<T>(0.12));
  EXPECT_EQ(at(-4, 3), static_cast<T>(-0.16));
  EXPECT_NEAR(at(2e20, 1e20) * 1e20, 0.4, 1e-7);
  EXPECT_NEAR(at(1e-20, -2e-20) * 1e-20, 0.2, 1e-7);
  EXPECT_EQ(at(0, 0), 0);
  EXPECT_EQ(at(0, 5), 0);
  for (double inf : {INFINITY, -INFINITY}) {
    EXPECT_EQ(at(inf, 1), 0);
    EXPECT_EQ(at(1, inf), 0);
    EXPECT_EQ(at(inf, inf), 0);
  }
  for (double other : {0.0, 1.0, double{INFINITY}, double{NAN}}) {
    EXPECT_TRUE(std::isnan(at(NAN, other)));
    EXPECT_TRUE(std::isnan(at(other, NAN)));
  }
}

TYPED_TEST(BroadcastTest, LerpMeetsBothEnds) {
  using T = TypeParam;
  const Shape out = {3, 4}, column = {3, 1}, row = {4}, scalar = {};
  const auto a = RandomVector<T>(3, 9), b = RandomVector<T>(4, 10);
  for (T w : {T{0}, T{1}, T{0.25}, T{0.75}, T{2}, T{-1}}) {
    std::vector<T> y(12);
    Lerp<T>(out, a.data(), column, b.data(), row, &w, scalar, y.data());
    for (int i = 0; i < 12; ++i) {
      const T u = a[i / 4], v = b[i % 4];
      if (w == 0) {
        EXPECT_EQ(y[i], u);
      } else if (w == 1) {
        EXPECT_EQ(y[i], v);
      } else {
        EXPECT_NEAR(y[i], u + double{w} * (double{v} - double{u}), 1e-6);
      }
    }
  }
}

template <class T>
void CheckCompare(const std::vector<T>& values) {
  // Every value against every value.
  const int64_t n = static_cast<int64_t>(values.size());
  const Shape out = {n, n}, column = {n, 1}, row = {n};
  bool y[100];
  const auto check = [&](Compare op, bool (*reference)(T, T)) {
    Apply<T>(op, out, values.data(), column, values.data(), row, y);
    for (int64_t i = 0; i < n * n; ++i) {
      EXPECT_EQ(y[i], reference(values[i / n], values[i % n]))
          << static_cast<int>(op) << ": " << values[i / n] << ", "
          << values[i % n];
    }
  };
  check(Compare::kEq, [](T a, T b) { return a == b; });
  check(Compare::kNe, [](T a, T b) { return a != b; });
  check(Compare::kLt, [](T a, T b) { return a < b; });
  check(Compare::kLe, [](T a, T b) { return a <= b; });
  check(Compare::kGe, [](T a, T b) { return a >= b; });
  check(Compare::kGt, [](T a, T b) { return a > b; });
}

TEST(CompareTest, AgreesWithTheLanguage) {
  CheckCompare<float>({0, -0.f, 1, -1, NAN, INFINITY, -INFINITY, 0x1p-149f});
  CheckCompare<double>({0, -0., 1, -1, NAN, INFINITY, -INFINITY, 0x1p-1074});
  CheckCompare<int32_t>({0, 1, -1, INT32_MAX, INT32_MIN});
  CheckCompare<int64_t>({0, 1, -1, INT64_MAX, INT64_MIN, int64_t{1} << 32});
}

TEST(CompareTest, BoolsAndTheirLogic) {
  const bool a[] = {false, false, true, true}, b[] = {false, true};
  const Shape out = {2, 2}, row = {2};
  bool y[4];
  const auto check = [&](auto op, std::vector<int> want) {
    Apply(op, out, a, out, b, row, y);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(y[i], want[i] != 0) << i;
  };
  check(Compare::kEq, {1, 0, 0, 1});
  check(Compare::kNe, {0, 1, 1, 0});
  check(Compare::kLt, {0, 1, 0, 0});
  check(Compare::kLe, {1, 1, 0, 1});
  check(Compare::kGt, {0, 0, 1, 0});
  check(Compare::kGe, {1, 0, 1, 1});
  check(Logic::kAnd, {0, 0, 0, 1});
  check(Logic::kOr, {0, 1, 1, 1});
  check(Logic::kXor, {0, 1, 1, 0});
}

template <class T>
std::vector<T> Numbers(int64_t n, int64_t step) {
  std::vector<T> x(n);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<T>(i * step % 101 - 50);
  return x;
}

// n conditions; std::vector<bool> is no array.
std::unique_ptr<bool[]> Conditions(int64_t n) {
  auto c = std::make_unique<bool[]>(n);
  for (int64_t i = 0; i < n; ++i) c[i] = i * 7 % 3 == 0;
  return c;
}

template <class T>
void CheckWhere(Dims out, Dims c_dims, Dims a_dims, Dims b_dims) {
  const auto c = Conditions(NumElements(c_dims));
  const auto a = Numbers<T>(NumElements(a_dims), 3);
  const auto b = Numbers<T>(NumElements(b_dims), 5);
  std::vector<T> y(NumElements(out));
  Where<T>(out, c.get(), c_dims, a.data(), a_dims, b.data(), b_dims, y.data());
  for (size_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(y[i], c[OperandIndex(out, c_dims, i)]
                        ? a[OperandIndex(out, a_dims, i)]
                        : b[OperandIndex(out, b_dims, i)])
        << i;
  }
}

template <class T>
void CheckWhereAndBroadcastTo() {
  for (const ShapeCase& s : kShapes) {
    CheckWhere<T>(s.out, s.a, s.b, s.out);
    CheckWhere<T>(s.out, s.b, s.out, s.a);
    CheckWhere<T>(s.out, s.out, s.a, s.b);
    const auto x = Numbers<T>(NumElements(s.a), 3);
    std::vector<T> y(NumElements(s.out));
    BroadcastTo<T>(s.out, x.data(), s.a, y.data());
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], x[OperandIndex(s.out, s.a, i)]);
    }
  }
}

TEST(WhereTest, WhereAndBroadcastToAgreeWithIndexing) {
  CheckWhereAndBroadcastTo<float>();
  CheckWhereAndBroadcastTo<double>();
  CheckWhereAndBroadcastTo<int32_t>();
  CheckWhereAndBroadcastTo<int64_t>();
}

TEST(WhereTest, Bools) {
  const bool c[] = {true, false, true}, a[] = {true, true, false}, b = false;
  bool y[6];
  const Shape row = {3}, scalar = {}, out = {2, 3};
  Where<bool>(out, c, row, a, row, &b, scalar, y);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(y[i], i % 3 == 0) << i;
  BroadcastTo<bool>(out, c, row, y);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(y[i], c[i % 3]) << i;
}

TEST(WhereTest, WhatIsNotChosenDoesNotMatter) {
  const bool c[] = {true, false};
  const float a[] = {1, NAN}, b[] = {INFINITY, 2};
  const Shape dims = {2};
  float y[2];
  Where<float>(dims, c, dims, a, dims, b, dims, y);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 2);
}

TEST(WhereGradTest, SharesDyOut) {
  for (int64_t n : {0, 1, 7, 1025, 40000, 9000001}) {  // the last is streamed
    const auto dy = RandomVector<float>(n, 1);
    const std::unique_ptr<bool[]> c(new bool[n]);
    for (int64_t i = 0; i < n; ++i) c[i] = i % 3 == 0 || i % 7 == 1;
    for (bool add : {false, true}) {
      std::vector<float> da(n, 5), db(n, 5), only_a(n, 5), only_b(n, 5);
      WhereGrad(n, c.get(), dy.data(), da.data(), add, db.data(), !add);
      WhereGrad<float>(n, c.get(), dy.data(), only_a.data(), add, nullptr, add);
      WhereGrad<float>(n, c.get(), dy.data(), nullptr, add, only_b.data(),
                       !add);
      int64_t wrong = 0;
      for (int64_t i = 0; i < n; ++i) {
        wrong += da[i] != (add ? 5 : 0) + (c[i] ? dy[i] : 0);
        wrong += db[i] != (add ? 0 : 5) + (c[i] ? 0 : dy[i]);
      }
      EXPECT_EQ(wrong, 0) << n << add;
      EXPECT_TRUE(only_a == da && only_b == db);
    }
  }
}

// A result that is larger than caches is written past them.
TEST(BroadcastTest, LargeResults) {
  const int64_t rows = 3001, n = 3003;
  const auto a = RandomVector<float>(rows * n, 1),
             b = RandomVector<float>(n, 2);
  ExpectSameBitsForAnyThreads([&] {
    std::vector<float> y(1 + rows * n);
    Apply(Binary::kSub, {rows, n}, a.data(), {rows, n}, b.data(), {n},
          y.data() + 1);
    int64_t wrong = 0;
    for (int64_t i = 0; i < rows * n; ++i) wrong += y[i + 1] != a[i] - b[i % n];
    EXPECT_EQ(wrong, 0);
    return std::vector<float>(y.end() - 100, y.end());
  });
  // In place.
  std::vector<float> y = a;
  Apply(Binary::kSub, {rows, n}, y.data(), {rows, n}, b.data(), {n}, y.data());
  EXPECT_EQ(y[n + 5], a[n + 5] - b[5]);
  EXPECT_EQ(y.back(), a.back() - b.back());
}

}  // namespace
}  // namespace wengert::kernels
