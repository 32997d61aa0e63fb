#include "nn/group_norm.h"

#include "gtest/gtest.h"
#include "nn/layer_testlib.h"

namespace wengert::nn {
namespace {

TEST(GroupNormTest, IsPyTorchs) {
  const auto all = ReadReference("norms.txt");
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    ParameterStore store(dtype);
    const GroupNorm layer(store.root(), 2, 6);
    SetParameters(store, Under(all, "group.parameter."));
    ExpectMatchesReference(store, Under(all, "group."), {"x"},
                           [&](auto x) { return layer(x[0]); });
  }
}

TEST(GroupNormTest, Gradients) {
  for (const auto& options :
       {GroupNormOptions{}, GroupNormOptions{.bias = false},
        GroupNormOptions{.weight = false},
        GroupNormOptions{.weight = false, .bias = false}}) {
    ParameterStore store(DType::kFloat64, 1);
    const GroupNorm layer(store.root(), 2, 4, 1e-3, options);
    EXPECT_EQ(store.size(), options.weight + options.bias);
    Randomise(store);
    EXPECT_TRUE(CheckLayer(store, {RandomTensor({2, 4, 3}, 2)},
                           [&](auto x) { return layer(x[0]); }));
  }
}

}  // namespace
}  // namespace wengert::nn
