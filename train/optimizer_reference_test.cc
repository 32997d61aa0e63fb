// Twenty updates of every kind of optimizer against the published formulas;
// testdata/optimizer_reference.py prints these numbers.
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "train/adam.h"
#include "train/optimizer_testlib.h"
#include "train/sgd.h"

namespace wengert::train {
namespace {

// The number of updates so far, and the parameter after them.
using Reference = std::vector<std::pair<int, std::vector<double>>>;

const Reference kAdam = {
    {1, {1.4500000008810592, -2.2000000002804967, 0.7999999998222184}},
    {2, {1.4526046900276681, -2.1500213948614655, 0.8357681032193237}},
    {20, {1.1763389141952638, -1.8476857763412817, 0.7807906645462174}},
};
const Reference kAdamL2 = {
    {1, {1.450000000491401, -2.2000000002034543, 0.7999999998067587}},
    {2, {1.4215604279440863, -2.149953455941203, 0.8325788958410231}},
    {20, {0.839363990617356, -1.6191328809960293, 0.6854932167426456}},
};
const Reference kAdamW = {
    {1, {1.4275000008810592, -2.1662500002804967, 0.7887499998222184}},
    {2, {1.4088898360041195, -2.0837732877741164, 0.8127147728479387}},
    {20, {0.8509682332321707, -1.3448347094921096, 0.5759405922431309}},
};
const Reference kSgd = {
    {1, {1.4716250585687707, -2.1608723978720175, 0.8906219654863298}},
    {2, {1.4997532456515303, -2.0495878322598826, 0.8985386248717248}},
    {20, {1.20611805878154, -1.8207184985474671, 0.7073818162279155}},
};
const Reference kMomentum = {
    {1, {1.4491250585687707, -2.1271223978720175, 0.8793719654863297}},
    {2, {1.4099539224848923, -1.8736786543766182, 0.9906453143271264}},
    {20, {-0.52852665701742, 0.6912615261204816, -0.3349222452959942}},
};
const Reference kNesterov = {
    {1, {1.4033376112806641, -2.0165325559568332, 0.9958067344240265}},
    {2, {1.376874803755587, -1.65083230272173, 1.085260676759303}},
    {20, {-0.45283375005196874, 0.4570432715130471, -0.21897353115415008}},
};

void ExpectFollows(
    const Reference& reference, DType dtype, double tolerance,
    std::function<std::unique_ptr<Optimizer>(nn::ParameterStore&)> make) {
  nn::ParameterStore store(dtype);
  std::vector<Tensor> w;
  for (double start : {1.5, -2.25, 0.75}) {
    w.push_back(store.root().Constant(std::to_string(w.size()), {}, start));
  }
  const auto optimizer = make(store);
  int t = 0;
  for (const auto& [updates, want] : reference) {
    while (t < updates) {
      ++t;
      for (int i = 0; i < 3; ++i) {
        AddGradient(w[i],
                    {(i + 1) * std::cos(1.3 * t + i) + 0.2 * w[i].item()});
      }
      optimizer->Step();
    }
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(w[i].item(), want[i], tolerance) << t << " " << i;
    }
  }
}

template <class O, class Options>
void ExpectFollows(const Reference& reference, const Options& options) {
  const auto make = [&](nn::ParameterStore& store) {
    return std::make_unique<O>(store, options);
  };
  ExpectFollows(reference, DType::kFloat64, 1e-13, make);
  ExpectFollows(reference, DType::kFloat32, 5e-6, make);
}

TEST(OptimizerReference, Adam) {
  ExpectFollows<Adam>(kAdam, AdamOptions{.lr = 0.05});
}
TEST(OptimizerReference, AdamWithL2) {
  ExpectFollows<Adam>(kAdamL2, AdamOptions{.lr = 0.05, .weight_decay = 0.3});
}
TEST(OptimizerReference, AdamW) {
  ExpectFollows<AdamW>(kAdamW, AdamWOptions{.lr = 0.05, .weight_decay = 0.3});
}
TEST(OptimizerReference, Sgd) {
  ExpectFollows<Sgd>(kSgd, SgdOptions{.lr = 0.05});
}
TEST(OptimizerReference, SgdWithMomentum) {
  ExpectFollows<Sgd>(
      kMomentum, SgdOptions{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.3});
}
TEST(OptimizerReference, SgdWithNesterov) {
  ExpectFollows<Sgd>(
      kNesterov,
      SgdOptions{
          .lr = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 0.3});
}

}  // namespace
}  // namespace wengert::train
