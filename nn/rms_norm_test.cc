#include "nn/rms_norm.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"

namespace wengert::nn {
namespace {

using ::testing::Each;

TEST(RMSNormTest, IsPyTorchs) {
  const auto all = ReadReference("norms.txt");
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    {
      // PyTorch ran in float64; its eps is that type's.
      ParameterStore store(dtype);
      const RMSNorm layer(store.root(), 7);
      SetParameters(store, Under(all, "rms.parameter."));
      ExpectMatchesReference(store, Under(all, "rms."), {"x"},
                             [&](auto x) { return layer(x[0]); });
    }
    ParameterStore store(dtype);
    const RMSNorm layer(store.root(), {3, 4}, {.eps = 0.01});
    SetParameters(store, Under(all, "rms_axes.parameter."));
    ExpectMatchesReference(store, Under(all, "rms_axes."), {"x"},
                           [&](auto x) { return layer(x[0]); });
  }
}

TEST(RMSNormTest, Gradients) {
  for (bool weight : {true, false}) {
    ParameterStore store(DType::kFloat64, 1);
    const RMSNorm layer(store.root(), {2, 3}, {.eps = 1e-3, .weight = weight});
    EXPECT_EQ(store.size(), weight);
    Randomise(store);
    EXPECT_TRUE(CheckLayer(store, {RandomTensor({2, 2, 3}, 2)},
                           [&](auto x) { return layer(x[0]); }));
  }
}

TEST(RMSNormTest, StartsAtLengthOne) {
  ParameterStore store(DType::kFloat64);
  const RMSNorm layer(store.root().Sub("norm"), 4, {.eps = 0});
  EXPECT_THAT(store.Find("norm.weight").ToVector(), Each(1));
  EXPECT_EQ(layer(Tensor::Of<double>({4}, {2, 2, -2, 2})).ToVector(),
            (std::vector<double>{1, 1, -1, 1}));
}

}  // namespace
}  // namespace wengert::nn
