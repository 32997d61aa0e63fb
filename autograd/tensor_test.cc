#include "autograd/tensor.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Tensor, MakesAndReads) {
  const Tensor x = Tensor::Of({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(x.dtype(), DType::kFloat32);
  EXPECT_EQ(x.shape(), (Shape{2, 2}));
  EXPECT_THAT(x.span<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Tensor::Zeros({3}).ToVector(), ElementsAre(0, 0, 0));
  EXPECT_THAT(Tensor::Full({2}, 2.5, DType::kFloat64).ToVector(),
              ElementsAre(2.5, 2.5));
  EXPECT_THAT(Tensor::Ones({2}, DType::kInt64).span<int64_t>(),
              ElementsAre(1, 1));
  const Tensor some = Tensor::From<bool>({3}, {false, true, false});
  EXPECT_EQ(some.span<bool>().data(), some.data<bool>());
  EXPECT_THAT(some.span<bool>(), ElementsAre(false, true, false));
  EXPECT_EQ(Tensor::Scalar(7).item(), 7);
  EXPECT_EQ(Tensor::Zeros({2, 0}).size(), 0);
  EXPECT_TRUE(Tensor::Zeros({2, 0}).ToVector().empty());
}

TEST(Tensor, IntegersTakeWholeValuesOfTheirRange) {
  constexpr double kInf = HUGE_VAL;
  for (double value : {1.5, -0.5, double{NAN}, kInf, -kInf, 0x1p31}) {
    try {
      Tensor::Full({2}, value, DType::kInt32);
      ADD_FAILURE() << value;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), AllOf(StartsWith("Full: "),
                                  HasSubstr(" for int32; wanted a value")));
    }
  }
  EXPECT_THROW(Tensor::Scalar(0x1p63, DType::kInt64), Error);
  EXPECT_THROW(Tensor::Full({0}, 1.5, DType::kInt64), Error);
  EXPECT_EQ(Tensor::Scalar(-0x1p31, DType::kInt32).span<int32_t>()[0],
            std::numeric_limits<int32_t>::min());
  EXPECT_EQ(Tensor::Scalar(-0x1p63, DType::kInt64).span<int64_t>()[0],
            std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(*Tensor::Scalar(0.5, DType::kBool).data<bool>());
}

TEST(Tensor, ElementsAre64ByteAligned) {
  for (int64_t n : {0, 1, 17, 1000, 100000}) {
    const Tensor x = Tensor::Empty({n});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(x.data<float>()) % 64, 0u) << n;
  }
}

TEST(Tensor, CopiesAreHandles) {
  Tensor x = Tensor::Of({2}, {1, 2});
  const Tensor y = x;
  x.mutable_data<float>()[0] = 5;
  EXPECT_EQ(y.ToVector()[0], 5);
  const Tensor z = x.Clone();
  x.mutable_data<float>()[0] = 6;
  EXPECT_EQ(z.ToVector()[0], 5);
}

TEST(Tensor, Errors) {
  const Tensor x = Tensor::Of({2}, {1, 2});
  EXPECT_THAT(ErrorOf([&] { x.data<double>(); }),
              AllOf(StartsWith("data: "), HasSubstr("float32 [2]"),
                    HasSubstr("float64")));
  EXPECT_THAT(ErrorOf([&] { x.item(); }),
              AllOf(StartsWith("item: "), HasSubstr("float32 [2]")));
  EXPECT_THAT(ErrorOf([&] {
                Tensor::Of({3}, {1, 2});
              }),
              AllOf(HasSubstr("2 values"), HasSubstr("[3]")));
  EXPECT_THAT(ErrorOf([&] { Tensor().shape(); }), HasSubstr("not defined"));
  EXPECT_THAT(ErrorOf([&] { Tensor::Alias(x, 1, {2}); }),
              HasSubstr("float32 [2]"));
  EXPECT_THAT(ErrorOf([&] { Tensor::Empty({int64_t{1} << 62}); }),
              HasSubstr("too large"));
}

TEST(Tensor, AnIntegerTakesAWholeValueThatItHolds) {
  for (const double bad : {0.5, std::nan(""), 2147483648.0, -2147483649.0}) {
    EXPECT_THAT(ErrorOf([&] { Tensor::Full({2}, bad, DType::kInt32); }),
                AllOf(StartsWith("Full: "), HasSubstr("for int32")));
  }
  EXPECT_THAT(
      ErrorOf([] { Tensor::Scalar(9223372036854775808.0, DType::kInt64); }),
      HasSubstr("for int64"));
  EXPECT_EQ(Tensor::Scalar(-2147483648.0, DType::kInt32).item(), -2147483648.0);
  EXPECT_EQ(Tensor::Scalar(0.5, DType::kBool).item(), 1);
}

TEST(Tensor, VersionsLiveOnTheStorage) {
  Tensor x = Tensor::Of({4}, {1, 2, 3, 4});
  Tensor view = Tensor::Alias(x, 1, {2});
  Tensor view_of_view = Tensor::Alias(view, 1, {1});
  EXPECT_EQ(view_of_view.ToVector()[0], 3);
  view_of_view.mutable_data<float>();
  EXPECT_EQ(x.version(), 1u);
  EXPECT_EQ(view.version(), 1u);
  // Two parameters in one segment are written apart.
  Tensor a = Tensor::Alias(x, 0, {2}, /*own_version=*/true);
  Tensor b = Tensor::Alias(x, 2, {2}, /*own_version=*/true);
  a.mutable_data<float>();
  EXPECT_EQ(a.version(), 1u);
  EXPECT_EQ(b.version(), 0u);
  Tensor part_of_a = Tensor::Alias(a, 0, {1});
  part_of_a.mutable_data<float>();
  EXPECT_EQ(a.version(), 2u);
  EXPECT_EQ(x.version(), 1u);
}

TEST(Tensor, AViewKeepsTheMemory) {
  Tensor view;
  {
    Tensor a = Tensor::Alias(Tensor::Of({2}, {3, 4}), 0, {2}, true);
    view = Tensor::Alias(a, 1, {1});
  }
  EXPECT_EQ(view.item(), 4);
}

TEST(Tensor, UniqueSeesHandlesAndViews) {
  Tensor x = Tensor::Of({2}, {1, 2});
  EXPECT_TRUE(x.unique());
  {
    const Tensor y = x;
    EXPECT_FALSE(x.unique());
  }
  EXPECT_TRUE(x.unique());
  Tensor view = Tensor::Alias(x, 0, {2});
  EXPECT_FALSE(x.unique());
  EXPECT_FALSE(view.unique());
  x = {};
  EXPECT_TRUE(view.unique());
  EXPECT_THAT(ErrorOf([] { Tensor().unique(); }), StartsWith("unique: "));
}

TEST(Tensor, Converts) {
  const Tensor x = Tensor::Of<double>({3}, {1.9, -2.5, 0});
  EXPECT_THAT(x.To(DType::kInt64).span<int64_t>(), ElementsAre(1, -2, 0));
  EXPECT_THAT(x.To(DType::kBool).ToVector(), ElementsAre(1, 1, 0));
  EXPECT_THAT(x.To(DType::kFloat32).To(DType::kFloat64).ToVector()[0],
              static_cast<double>(1.9f));
}

TEST(Tensor, PrintsAsNumPyDoes) {
  EXPECT_EQ(Tensor::Of({2, 2}, {1, -2.5, 3, 4}).ToString(),
            "[[ 1.0000, -2.5000],\n [ 3.0000,  4.0000]] float32 [2, 2]");
  EXPECT_EQ(Tensor::Of<int64_t>({3}, {1, 20, 300}).ToString(),
            "[  1,  20, 300] int64 [3]");
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Tensor::Of<int64_t>({2}, {kLast, -kLast - 1}).ToString(),
            "[ 9223372036854775807, -9223372036854775808] int64 [2]");
  EXPECT_EQ(Tensor::Scalar(0.5).ToString(), "0.5000 float32 []");
  EXPECT_EQ(Tensor::Of<bool>({2}, {true, false}).ToString(),
            "[ true, false] bool [2]");
  EXPECT_EQ(Tensor::Zeros({0, 2}).ToString(), "[] float32 [0, 2]");
  EXPECT_EQ(Tensor().ToString(), "undefined");
  EXPECT_THAT(Tensor::Of({2}, {1e-9f, 1}).ToString(), HasSubstr("1.0000e-09"));
  EXPECT_THAT(
      Tensor::Of({2}, {std::numeric_limits<float>::infinity(), 1}).ToString(),
      HasSubstr("inf"));
  EXPECT_EQ(Tensor::Of({1}, {-std::nanf("")}).ToString(), "[nan] float32 [1]");
  const std::string big = Tensor::Zeros({100, 100}).ToString();
  EXPECT_THAT(big, HasSubstr("..."));
  EXPECT_LT(big.size(), 1000u);
}

}  // namespace
}  // namespace wengert
