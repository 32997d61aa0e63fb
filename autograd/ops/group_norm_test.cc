// Group norm, fused and composed.
#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Op = Tensor (*)(const Tensor&, int64_t, const Tensor&, const Tensor&,
                      double);

constexpr Op kBoth[] = {GroupNorm, GroupNormComposed};

// With one group for each channel a row is a channel's places, with one group
// in all it is a whole example.
TEST(GroupNormTest, IsLayerNormOfTheGroups) {
  const Tensor x = Spread({2, 4, 3}, -1, 1);
  for (Op op : kBoth) {
    ExpectClose(op(x, 4, {}, {}, 1e-5), LayerNorm(x), 1e-14, "channels");
    ExpectClose(op(x, 1, {}, {}, 1e-5),
                LayerNorm(x, Tensor::Ones({4, 3}, DType::kFloat64)), 1e-14,
                "example");
  }
}

TEST(GroupNormTest, ConstantGroupsGiveExactlyTheBias) {
  for (DType dtype : kFloats) {
    for (double value : {777.7, 0.1, -3e7}) {
      const Tensor x = Tensor::Full({2, 6, 37}, value, dtype);
      const Tensor bias = Tensor::Full({6}, 2.5, dtype);
      for (Op op : kBoth) {
        EXPECT_THAT(op(x, 2, {}, {}, 1e-5).ToVector(), Each(0));
        EXPECT_THAT(op(x, 3, {}, bias, 1e-5).ToVector(), Each(2.5));
      }
    }
  }
}

TEST(GroupNormTest, Errors) {
  const Tensor x = Tensor::Zeros({2, 4, 3});
  for (Op op : kBoth) {
    EXPECT_EQ(ErrorOf([&] { op(x, 3, {}, {}, 1e-5); }),
              "GroupNorm: x float32 [2, 4, 3], 3 groups, gain undefined, bias "
              "undefined; wanted x [B, C, ...] with a C that the groups "
              "divide, gain [C], bias [C]");
    EXPECT_THAT(ErrorOf([&] { op(x, 0, {}, {}, 1e-5); }),
                HasSubstr("0 groups"));
    EXPECT_THAT(ErrorOf([&] { op(x, 2, Tensor::Zeros({3}), {}, 1e-5); }),
                HasSubstr("gain float32 [3]"));
    EXPECT_THAT(ErrorOf([&] { op(Tensor::Zeros({4}), 2, {}, {}, 1e-5); }),
                HasSubstr("x float32 [4]"));
    EXPECT_EQ(ErrorOf([&] { op(x, 2, {}, {}, -1e-5); }),
              "GroupNorm: eps -1e-05; wanted at least 0");
    EXPECT_EQ(ErrorOf([&] { op(x, 2, {}, {}, NAN); }),
              "GroupNorm: eps nan; wanted at least 0");
    EXPECT_THAT(ErrorOf([&] { op({}, 2, {}, {}, 1e-5); }),
                StartsWith("GroupNorm: got undefined"));
  }
}

TEST(GroupNormTest, SameBitsForAnyNumberOfThreads) {
  for (DType dtype : kFloats) {
    ExpectSameBitsForThreads(
        [](Inputs x) { return GroupNorm(x[0], 2, x[1], x[2]); },
        {Spread({33, 6, 1023}, -1, 1, 1).To(dtype),
         Spread({6}, -1, 1, 2).To(dtype), Spread({6}, -1, 1, 3).To(dtype)});
  }
}

}  // namespace
}  // namespace wengert
