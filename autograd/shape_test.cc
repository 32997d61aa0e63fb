#include "autograd/shape.h"

#include <cstdint>
#include <limits>

#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape().size(), 1);
  EXPECT_EQ(Shape().rank(), 0);
  EXPECT_EQ((Shape{2, 3}.size()), 6);
  EXPECT_EQ((Shape{2, 0, 3}.size()), 0);
  EXPECT_EQ((Shape{1, 1, 1, 1, 1, 1, 1, 2, 1, 3}.size()), 6) << "any rank";
}

TEST(Shape, RefusesNegativeAndUncountable) {
  EXPECT_THAT(ErrorOf([] { Shape{2, -1}; }), HasSubstr("[2, -1]"));
  const int64_t big = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(ErrorOf([&] { Shape{big, 2}; }), HasSubstr("64 bits"));
  EXPECT_THAT(ErrorOf([&] { Shape{big, 0, 2}; }), HasSubstr("64 bits"));
}

TEST(Shape, AxesCountFromTheEndToo) {
  const Shape s{2, 3, 4};
  EXPECT_EQ(s.dim(-1), 4);
  EXPECT_EQ(s.dim(0), 2);
  EXPECT_EQ(s.CheckAxis("Op", -3), 0);
  EXPECT_THAT(ErrorOf([&] { s.CheckAxis("Op", 3); }),
              AllOf(StartsWith("Op: axis 3"), HasSubstr("[2, 3, 4]"),
                    HasSubstr("[-3, 3)")));
  EXPECT_THAT(ErrorOf([&] { s.CheckAxis("Op", -4); }), HasSubstr("axis -4"));
}

TEST(Shape, Prints) {
  EXPECT_EQ((Shape{2, 3}.ToString()), "[2, 3]");
  EXPECT_EQ(Shape().ToString(), "[]");
}

TEST(Shape, BroadcastsAsNumPyDoes) {
  EXPECT_EQ(Broadcast("Op", {2, 1}, {1, 3}), (Shape{2, 3}));
  EXPECT_EQ(Broadcast("Op", {}, {4}), (Shape{4}));
  EXPECT_EQ(Broadcast("Op", {5, 1, 3}, {2, 1}), (Shape{5, 2, 3}));
  EXPECT_EQ(Broadcast("Op", {0}, {1}), (Shape{0}));
  EXPECT_EQ(Broadcast("Op", {1}, {2, 0}), (Shape{2, 0}));
  EXPECT_THAT(ErrorOf([] {
                Broadcast("Op", {2, 3}, {2, 4});
              }),
              AllOf(StartsWith("Op: "), HasSubstr("[2, 3]"),
                    HasSubstr("[2, 4]"), HasSubstr("dimension 1")));
  EXPECT_THAT(ErrorOf([] { Broadcast("Op", {0}, {2}); }), HasSubstr("[0]"));
}

TEST(Shape, BroadcastsTo) {
  EXPECT_TRUE(BroadcastsTo({1, 3}, {2, 3}));
  EXPECT_TRUE(BroadcastsTo({}, {2, 3}));
  EXPECT_FALSE(BroadcastsTo({2, 3}, {1, 3}));
  EXPECT_FALSE(BroadcastsTo({1, 1, 3}, {2, 3}));
}

}  // namespace
}  // namespace wengert
