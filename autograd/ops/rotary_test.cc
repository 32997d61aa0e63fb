// Rotary embedding, fused and composed.
#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::HasSubstr;

// The angle of pair i at position t, from the definition.
double Angle(double t, int64_t i, int64_t dims, double base = 10000) {
  return t * std::pow(base, -2.0 * i / dims);
}

TEST(RotaryTest, TurnsPairsByTheirPosition) {
  for (DType dtype : kFloats) {
    for (bool interleaved : {false, true}) {
      for (int64_t offset : {0, 7, 100003}) {
        const Tensor x = Spread({1, 2, 1, 6}, -1, 1).To(dtype);
        const auto in = x.ToVector();
        const auto y =
            Rotary(x, {.offset = offset, .dims = 4, .interleaved = interleaved})
                .ToVector();
        for (int64_t t = 0; t < 2; ++t) {
          for (int64_t i = 0; i < 2; ++i) {
            const int64_t a = t * 6 + (interleaved ? 2 * i : i);
            const int64_t b = a + (interleaved ? 1 : 2);
            const double angle = Angle(static_cast<double>(offset + t), i, 4);
            const double c = std::cos(angle), s = std::sin(angle);
            const double error = dtype == DType::kFloat64 ? 1e-15 : 2e-7;
            EXPECT_NEAR(y[a], in[a] * c - in[b] * s, error);
            EXPECT_NEAR(y[b], in[b] * c + in[a] * s, error);
          }
          EXPECT_EQ(y[t * 6 + 4], in[t * 6 + 4]);
          EXPECT_EQ(y[t * 6 + 5], in[t * 6 + 5]);
        }
      }
    }
  }
}

// Every quadrant and many magnitudes: a row of ones gives cos - sin and
// cos + sin.
TEST(RotaryTest, AnglesAreExact) {
  const int64_t n = 20000;
  const Tensor x = Values({1, n, 1, 2}, std::vector<double>(2 * n, 1));
  const auto y = Rotary(x, {.offset = 0}).ToVector();
  for (int64_t t = 0; t < n; ++t) {
    const double c = std::cos(t), s = std::sin(t);
    ASSERT_NEAR(y[2 * t], c - s, 5e-16) << t;
    ASSERT_NEAR(y[2 * t + 1], c + s, 5e-16) << t;
  }
}

// What a decoder gets that turns one row at a time.
TEST(RotaryTest, ARowHasTheSameBitsByItself) {
  for (DType dtype : kFloats) {
    const Tensor x = Spread({2, 37, 3, 10}, -1, 1).To(dtype);
    const Tensor y = Rotary(x, {.offset = 2});
    for (int64_t t : {0, 1, 17, 36}) {
      const Tensor row = Rotary(Slice(x, 1, t, 1), {.offset = 2 + t});
      EXPECT_TRUE(SameBits(row, Slice(y, 1, t, 1)));
    }
  }
}

TEST(RotaryTest, Errors) {
  const Tensor x = Tensor::Zeros({1, 2, 3, 5});
  for (auto op : {Rotary, RotaryComposed}) {
    EXPECT_EQ(ErrorOf([&] { op(x, {}); }),
              "Rotary: x float32 [1, 2, 3, 5], dims 0; wanted x [B, T, H, D] "
              "and an even number of dims up to D");
    for (int64_t dims : {3, 6, -2}) {
      EXPECT_THAT(ErrorOf([&] { op(x, {.dims = dims}); }),
                  HasSubstr("dims " + std::to_string(dims)));
    }
    EXPECT_THAT(ErrorOf([&] {
                  op(Tensor::Zeros({2, 4}), {});
                }),
                HasSubstr("x float32 [2, 4]"));
    EXPECT_THAT(ErrorOf([&] { op(x, {.base = 0, .dims = 4}); }),
                HasSubstr("base 0"));
    EXPECT_THAT(ErrorOf([&] { op(x, {.offset = -1, .dims = 4}); }),
                HasSubstr("offset -1"));
    EXPECT_THAT(ErrorOf([&] { op(x, {.offset = INT64_MAX, .dims = 4}); }),
                HasSubstr("positions from 0 to 2^53"));
  }
}

TEST(RotaryTest, SameBitsForAnyNumberOfThreads) {
  for (DType dtype : kFloats) {
    ExpectSameBitsForThreads([](Inputs x) { return Rotary(x[0]); },
                             {Spread({3, 301, 4, 32}, -1, 1).To(dtype)});
  }
}

}  // namespace
}  // namespace wengert
