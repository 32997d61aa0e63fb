#include "autograd/shape.h"

#include <cstdint>
#include <limits>
#include <utility>

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

// The dimensions of a high rank lie elsewhere than those of a low one.
TEST(Shape, CopiesAndMovesOfAnyRank) {
  const Shape low{2, 3}, six{1, 2, 3, 4, 5, 6}, high{1, 2, 3, 4, 5, 6, 7, 8};
  for (const Shape& from : {Shape(), low, six, high}) {
    for (const Shape& to : {Shape(), low, six, high}) {
      Shape copy = from, assigned = to, moved_into = to;
      EXPECT_EQ(copy.dims(), from.dims());
      EXPECT_EQ(copy.size(), from.size());
      assigned = from;
      EXPECT_EQ(assigned.dims(), from.dims());
      EXPECT_EQ(assigned.size(), from.size());
      moved_into = std::move(copy);
      EXPECT_EQ(moved_into.dims(), from.dims());
      EXPECT_EQ(Shape(std::move(moved_into)).dims(), from.dims());
      assigned = *&assigned;
      EXPECT_EQ(assigned.dims(), from.dims());
      EXPECT_EQ(from == to, from.dims() == to.dims());
    }
  }
  EXPECT_NE((Shape{1, 2, 3, 4, 5, 6, 7, 8}), (Shape{1, 2, 3, 4, 5, 6, 8, 7}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
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
