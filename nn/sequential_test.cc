#include "nn/sequential.h"

#include "gtest/gtest.h"
#include "nn/layer_norm.h"
#include "nn/layer_testlib.h"
#include "nn/linear.h"

namespace wengert::nn {
namespace {

TEST(SequentialTest, AppliesInOrder) {
  ParameterStore store(DType::kFloat64, 1);
  const Params p = store.root().Sub("net");
  const Sequential net(Linear(p.Sub(0), 2, 4), Relu, Linear(p.Sub(2), 4, 3),
                       [](const Tensor& x) { return 2 * x; });
  const Tensor x = RandomTensor({5, 2}, 1);
  const Tensor hidden = Relu(
      wengert::Linear(x, store.Find("net.0.weight"), store.Find("net.0.bias")));
  const Tensor y = wengert::Linear(hidden, store.Find("net.2.weight"),
                                   store.Find("net.2.bias"));
  EXPECT_TRUE(SameBits(net(x), 2 * y));
  EXPECT_TRUE(SameBits(net.get<2>()(hidden), y));
}

TEST(SequentialTest, OfNothingIsTheIdentity) {
  const Tensor x = RandomTensor({2}, 1);
  EXPECT_TRUE(SameBits(Sequential<>()(x), x));
}

TEST(SequentialTest, NestsAndHasGradients) {
  ParameterStore store(DType::kFloat64, 1);
  const Params p = store.root();
  const Sequential net(Sequential(Linear(p.Sub(0).Sub(0), 2, 3), Tanh),
                       LayerNorm(p.Sub(1), 3));
  EXPECT_TRUE(CheckLayer(store, {RandomTensor({4, 2}, 2)},
                         [&](auto x) { return net(x[0]); }));
}

}  // namespace
}  // namespace wengert::nn
