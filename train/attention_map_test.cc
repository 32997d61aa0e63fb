#include "train/attention_map.h"

#include "autograd/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert::train {
namespace {

using ::testing::ElementsAre;

TEST(AttentionMaps, TakesTheHeadsOfEachLayerApart) {
  const Tensor first = Tensor::Of({1, 2, 1, 2}, {1, 2, 3, 4});
  const Tensor second = Tensor::Of({1, 1, 1, 2}, {5, 6});
  const auto maps =
      AttentionMaps("one is", {"1"}, {"one", "is"}, {first, second});
  ASSERT_EQ(maps.size(), 2u);
  for (const AttentionMap& map : maps) {
    EXPECT_EQ(map.sentence, "one is");
    EXPECT_THAT(map.queries, ElementsAre("1"));
    EXPECT_THAT(map.keys, ElementsAre("one", "is"));
  }
  EXPECT_EQ(maps[0].layer, "layer 0");
  EXPECT_EQ(maps[1].layer, "layer 1");
  EXPECT_THAT(maps[0].heads, ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4)));
  EXPECT_THAT(maps[1].heads, ElementsAre(ElementsAre(5, 6)));
}

TEST(AttentionMaps, RefusesOtherShapes) {
  for (const Shape& shape : {Shape{1, 1, 2}, Shape{2, 1, 1, 2},
                             Shape{1, 1, 2, 2}, Shape{1, 1, 1, 3}}) {
    try {
      AttentionMaps("one is", {"1"}, {"one", "is"}, {Tensor::Zeros(shape)});
      FAIL() << shape.ToString();
    } catch (const Error& e) {
      EXPECT_EQ(std::string(e.what()), "AttentionMaps: weights " +
                                           shape.ToString() +
                                           ", wanted [1, H, 1, 2]");
    }
  }
  EXPECT_THROW(AttentionMaps("one", {"1"}, {"one"},
                             {Tensor::Zeros({1, 1, 1, 1}, DType::kFloat64)}),
               Error);
}

}  // namespace
}  // namespace wengert::train
