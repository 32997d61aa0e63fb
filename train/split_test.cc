// Splits: complete, repeatable, and stable where they promise it.
#include "train/split.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert::train {
namespace {

using ::testing::ElementsAre;

// All of 0 .. n - 1, on one side each, in ascending order.
void ExpectWhole(const Split& split, int64_t n) {
  std::vector<int64_t> all;
  std::merge(split.train.begin(), split.train.end(), split.held_out.begin(),
             split.held_out.end(), std::back_inserter(all));
  ASSERT_EQ(all.size(), n);
  for (int64_t i = 0; i < n; ++i) EXPECT_EQ(all[i], i);
}

TEST(SplitBySeed, HoldsOutTheRoundedCount) {
  const auto count = [](int64_t n, double fraction) {
    const Split split = SplitBySeed(n, fraction, 1);
    ExpectWhole(split, n);
    return split.held_out.size();
  };
  EXPECT_EQ(count(100, 0.1), 10);
  EXPECT_EQ(count(10, 0.25), 3);  // 2.5
  EXPECT_EQ(count(9, 0.25), 2);   // 2.25
  EXPECT_EQ(count(4, 0.1), 0);
  EXPECT_EQ(count(7, 0), 0);
  EXPECT_EQ(count(7, 1), 7);
  EXPECT_EQ(count(0, 0.5), 0);
}

TEST(SplitBySeed, IsAFunctionOfTheSeed) {
  EXPECT_EQ(SplitBySeed(100, 0.2, 3).held_out,
            SplitBySeed(100, 0.2, 3).held_out);
  EXPECT_NE(SplitBySeed(100, 0.2, 3).held_out,
            SplitBySeed(100, 0.2, 4).held_out);
  // As a program in another language computed it: it must never change.
  EXPECT_THAT(SplitBySeed(10, 0.3, 1).held_out, ElementsAre(4, 6, 7));
  std::vector<int> count(5);
  for (int seed = 0; seed < 5000; ++seed) {
    for (const int64_t i : SplitBySeed(5, 0.4, seed).held_out) ++count[i];
  }
  for (const int c : count) EXPECT_NEAR(c, 2000, 175);  // 5 deviations
}

TEST(SplitByHash, AnExampleStaysOnItsSide) {
  const auto split = [](int64_t n, int64_t first, double fraction) {
    std::set<std::string> held_out;
    std::string text;
    const auto key = [&](int64_t i) -> absl::string_view {
      return text = absl::StrCat("line ", first + i);
    };
    const Split split = SplitByHash(n, key, fraction);
    ExpectWhole(split, n);
    for (const int64_t i : split.held_out) held_out.emplace(key(i));
    return held_out;
  };
  const auto some = split(1000, 0, 0.1), more = split(3000, 0, 0.1),
             later = split(2000, 1000, 0.1), larger = split(3000, 0, 0.3);
  EXPECT_NEAR(more.size(), 300, 82);  // 5 deviations
  EXPECT_NEAR(larger.size(), 900, 126);
  EXPECT_TRUE(
      std::includes(more.begin(), more.end(), some.begin(), some.end()));
  EXPECT_TRUE(
      std::includes(larger.begin(), larger.end(), more.begin(), more.end()));
  EXPECT_EQ(some.size() + later.size(), more.size());
}

TEST(SplitByHash, IsTheSameEverywhere) {
  std::vector<int> held_out;
  for (int i = 0; i < 20; ++i) {
    if (HeldOutByHash(absl::StrCat("line ", i), 0.25)) held_out.push_back(i);
  }
  EXPECT_THAT(held_out, ElementsAre(15, 19));
  EXPECT_FALSE(HeldOutByHash("", 0));
  EXPECT_TRUE(HeldOutByHash("", 1));
  int differ = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string key = absl::StrCat(i);
    differ += HeldOutByHash(key, 0.5, 1) != HeldOutByHash(key, 0.5, 2);
  }
  EXPECT_NEAR(differ, 500, 80);
}

TEST(Split, RefusesWhatIsNoFraction) {
  for (const double fraction : {-0.1, 1.1, std::nan("")}) {
    EXPECT_THROW(SplitBySeed(3, fraction, 1), Error);
    EXPECT_THROW(HeldOutByHash("", fraction), Error);
    EXPECT_THROW(SplitByHash(
                     0, [](int64_t) { return ""; }, fraction),
                 Error);
  }
  EXPECT_THROW(SplitBySeed(-1, 0.5, 1), Error);
}

}  // namespace
}  // namespace wengert::train
