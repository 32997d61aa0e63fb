// The samples of docs/extending.md at work.
#include "autograd/gradcheck.h"
#include "docs/extending_layer.h"
#include "docs/extending_operations.h"
#include "gtest/gtest.h"

namespace wengert {
namespace {

TEST(Extending, Operations) {
  const Tensor x = Tensor::Of<double>({4}, {-2, -0.3, 0.4, 3});
  EXPECT_TRUE(GradCheck([](auto in) { return Atan(in[0]); }, {x}, {.order = 2}));
  EXPECT_TRUE(
      GradCheck([](auto in) { return Softsign(in[0]); }, {x}, {.order = 2}));
}

TEST(Extending, Layer) {
  nn::ParameterStore store(DType::kFloat64, /*seed=*/1);
  const nn::Scale scale(store.root().Sub("scale"), 3);
  const Tensor x = Tensor::Of<double>({2, 3}, {1, -2, 3, 0.5, 4, -1});
  EXPECT_TRUE(GradCheck([&](auto in) { return scale(in[0]); },
                        {x, store.Find("scale.gain")}, {.order = 2}));
}

}  // namespace
}  // namespace wengert
