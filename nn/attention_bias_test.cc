#include "nn/attention_bias.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"

namespace wengert::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AlibiTest, SlopesOfThreeHeads) {
  EXPECT_THAT(AlibiSlopes(3).ToVector(),
              ElementsAre(1.0 / 16, 1.0 / 256, 1.0 / 4));
}

TEST(AlibiTest, SlopesAreThePapers) {
  const auto all = ReadReference("attention_biases.txt");
  for (int64_t n : {1, 2, 3, 4, 6, 8, 12, 16, 20}) {
    ExpectNear(AlibiSlopes(n, DType::kFloat64),
               all.at("slopes." + std::to_string(n)), 1e-15, "slopes");
  }
  EXPECT_THAT(ErrorOf([] { AlibiSlopes(0); }), HasSubstr("n_heads 0"));
}

TEST(AlibiTest, FallsWithTheDistance) {
  const Tensor bias = AlibiBias(2, 2, 3);  // queries at 1 and 2
  EXPECT_EQ(bias.shape(), (Shape{1, 2, 2, 3}));
  const double a = 1.0 / 16, b = 1.0 / 256;
  EXPECT_THAT(bias.ToVector(), ElementsAre(-a, 0, -a, -2 * a, -a, 0,  //
                                           -b, 0, -b, -2 * b, -b, 0));
  EXPECT_THAT(ErrorOf([] { AlibiBias(2, -1, 3); }), HasSubstr("-1 queries"));
}

struct Setting {
  const char* name;
  RelativeBiasOptions options;
};

TEST(RelativeBiasTest, BucketsAreT5s) {
  const auto all = ReadReference("attention_biases.txt");
  for (const Setting& s :
       {Setting{"encoder", {}}, Setting{"decoder", {.bidirectional = false}},
        Setting{"encoder_odd", {.num_buckets = 14, .max_distance = 50}},
        Setting{
            "decoder_odd",
            {.num_buckets = 9, .max_distance = 20, .bidirectional = false}}}) {
    ParameterStore store;
    const RelativeBias layer(store.root(), 1, s.options);
    const auto buckets = all.at(std::string("buckets.") + s.name).ToVector();
    ASSERT_EQ(buckets.size(), 601);
    for (int64_t i = 0; i < 601; ++i) {
      EXPECT_EQ(layer.Bucket(i - 300), buckets[i]) << s.name << " " << i - 300;
    }
  }
}

TEST(RelativeBiasTest, TakesTheBucketsRowForEachHead) {
  ParameterStore store(DType::kFloat64, 1);
  const RelativeBias layer(store.root().Sub("relative_attention_bias"), 2);
  const Tensor table = store.Find("relative_attention_bias.weight");
  EXPECT_EQ(table.shape(), (Shape{32, 2}));
  const Tensor bias = layer(2, 4);  // queries at 2 and 3
  ASSERT_EQ(bias.shape(), (Shape{1, 2, 2, 4}));
  const auto w = table.ToVector(), b = bias.ToVector();
  for (int64_t h = 0; h < 2; ++h) {
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < 4; ++j) {
        EXPECT_EQ(b[(h * 2 + i) * 4 + j], w[layer.Bucket(j - i - 2) * 2 + h]);
      }
    }
  }
}

TEST(RelativeBiasTest, Gradients) {
  ParameterStore store(DType::kFloat64, 1);
  const RelativeBias layer(store.root(), 2,
                           {.num_buckets = 6, .max_distance = 5});
  Randomise(store);
  const Tensor qkv = RandomTensor({1, 4, 3, 2, 3}, 2);
  EXPECT_TRUE(CheckLayer(store, {qkv}, [&](auto x) {
    return PackedAttention(x[0], {.bias = layer(4, 4)});
  }));
}

TEST(RelativeBiasTest, Errors) {
  ParameterStore store;
  EXPECT_THAT(
      ErrorOf([&] { RelativeBias(store.root(), 2, {.num_buckets = 3}); }),
      HasSubstr("n_heads 2, num_buckets 3, max_distance 128"));
  EXPECT_THAT(
      ErrorOf([&] { RelativeBias(store.root(), 2, {.max_distance = 8}); }),
      HasSubstr("max_distance 8"));
}

}  // namespace
}  // namespace wengert::nn
