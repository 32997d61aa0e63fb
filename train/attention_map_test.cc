#include "train/attention_map.h"

#include "autograd/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert::train {
namespace {

using ::testing::ElementsAre;

TEST(SelfAttentionMaps, TakesTheHeadsOfEachLayerApart) {
  const Tensor first = Tensor::Of({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor second = Tensor::Of({1, 1, 2, 2}, {9, 10, 11, 12});
  const auto maps = SelfAttentionMaps("one is", {"one", "is"}, {first, second});
  ASSERT_EQ(maps.size(), 2u);
  for (const AttentionMap& map : maps) {
    EXPECT_EQ(map.sentence, "one is");
    EXPECT_THAT(map.queries, ElementsAre("one", "is"));
    EXPECT_THAT(map.keys, ElementsAre("one", "is"));
  }
  EXPECT_EQ(maps[0].layer, "layer 0");
  EXPECT_EQ(maps[1].layer, "layer 1");
  EXPECT_THAT(maps[0].heads,
              ElementsAre(ElementsAre(1, 2, 3, 4), ElementsAre(5, 6, 7, 8)));
  EXPECT_THAT(maps[1].heads, ElementsAre(ElementsAre(9, 10, 11, 12)));
}

TEST(SelfAttentionMaps, RefusesOtherShapes) {
  for (const Shape& shape : {Shape{1, 2, 2}, Shape{2, 1, 2, 2},
                             Shape{1, 1, 3, 2}, Shape{1, 1, 2, 3}}) {
    try {
      SelfAttentionMaps("one is", {"one", "is"}, {Tensor::Zeros(shape)});
      FAIL() << shape.ToString();
    } catch (const Error& e) {
      EXPECT_EQ(std::string(e.what()), "SelfAttentionMaps: weights " +
                                           shape.ToString() +
                                           ", wanted [1, H, 2, 2]");
    }
  }
  EXPECT_THROW(
      SelfAttentionMaps("one", {"one"},
                        {Tensor::Zeros({1, 1, 1, 1}, DType::kFloat64)}),
      Error);
}

}  // namespace
}  // namespace wengert::train
