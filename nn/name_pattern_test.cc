#include "nn/name_pattern.h"

#include "gtest/gtest.h"

namespace wengert::nn {
namespace {

TEST(NamePatternTest, AStarIsAnyText) {
  EXPECT_TRUE(MatchesPattern("encoder.*", "encoder.layers.0.norm1.weight"));
  EXPECT_TRUE(MatchesPattern("*.bias", "encoder.layers.0.norm1.bias"));
  EXPECT_TRUE(MatchesPattern("layers.*.mlp*", "layers.12.mlp"));
  EXPECT_TRUE(MatchesPattern("*a*ab", "aaab"));
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_TRUE(MatchesPattern("a**", "a"));
  EXPECT_TRUE(MatchesPattern("", ""));
  EXPECT_TRUE(MatchesPattern("a.b", "a.b"));
}

TEST(NamePatternTest, ThePatternIsTheWholeName) {
  EXPECT_FALSE(MatchesPattern("encoder", "encoder.norm"));
  EXPECT_FALSE(MatchesPattern("norm", "encoder.norm"));
  EXPECT_FALSE(MatchesPattern("encoder.*", "encoder"));
  EXPECT_FALSE(MatchesPattern("*.bias", "bias.weight"));
  EXPECT_FALSE(MatchesPattern("*ab*ab", "ab"));
  EXPECT_FALSE(MatchesPattern("", "a"));
  EXPECT_FALSE(MatchesPattern("a?b", "a.b"));
}

TEST(NamePatternTest, TheFirstOfTheNearest) {
  EXPECT_EQ(NearestName("wieght", {"bias", "weight", "height"}),
            "the nearest is 'weight'");
  EXPECT_EQ(NearestName("b", {"a", "c"}), "the nearest is 'a'");
  EXPECT_EQ(NearestName("a", {}), "there are none");
}

TEST(NamePatternTest, SwappedNeighboursAreOneEdit) {
  EXPECT_EQ(EditDistance("wieght", "weight"), 1u);
  EXPECT_EQ(EditDistance("", "gain"), 4u);
  EXPECT_EQ(EditDistance("bias", "gains"), 3u);
}

}  // namespace
}  // namespace wengert::nn
