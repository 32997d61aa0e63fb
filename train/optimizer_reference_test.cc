// Twenty updates of every kind of optimizer against the published formulas;
// testdata/optimizer_reference.py prints these numbers.
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "train/adagrad.h"
#include "train/adam.h"
#include "train/lion.h"
#include "train/optimizer_testlib.h"
#include "train/rmsprop.h"
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
// testdata/optimizer_reference_torch.py prints these.
const Reference kRmsProp = {
    {1, {1.3418861258021715, -2.0918861197965484, 0.9081138812306029}},
    {2, {1.4585482155176763, -1.9662769530299093, 0.9172740637156653}},
    {20, {1.033500173591985, -1.812328993087366, 0.7685508540618725}},
};
const Reference kRmsPropFull = {
    {1, {1.4333333355173379, -2.1833333342375756, 0.8166666658078167}},
    {2, {1.3827270337938284, -2.0687156826616366, 0.8747320452337839}},
    {20, {-0.3758359445048745, -0.249684402738617, 0.5012601839614795}},
};
const Reference kAdagrad = {
    {1, {1.4000000000176211, -2.15000000000561, 0.8499999999964444}},
    {2, {1.4712884734045335, -2.0719771532271927, 0.8559082801520812}},
    {20, {1.237589125457986, -1.9871212855850358, 0.7674685679989218}},
};
const Reference kAdagradFull = {
    {1, {1.4178823720898903, -2.1538989303780913, 0.846462691161343}},
    {2, {1.4291737528032762, -2.0827876536402115, 0.8433833258803669}},
    {20, {1.1420463529984164, -1.9122237218221785, 0.7276371269783739}},
};
const Reference kLion = {
    {1, {1.471, -2.2165, 0.7655}},
    {2, {1.482174, -2.183201, 0.7809069999999999}},
    {20, {1.1755103284274735, -1.8833755472649567, 0.6252542647617891}},
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

TEST(OptimizerReference, RmsProp) {
  ExpectFollows<RmsProp>(kRmsProp, RmsPropOptions{.lr = 0.05, .alpha = 0.9});
}
TEST(OptimizerReference, RmsPropWithEverything) {
  ExpectFollows<RmsProp>(kRmsPropFull, RmsPropOptions{.lr = 0.02,
                                                      .alpha = 0.9,
                                                      .momentum = 0.9,
                                                      .centered = true,
                                                      .weight_decay = 0.3});
}
TEST(OptimizerReference, Adagrad) {
  ExpectFollows<Adagrad>(kAdagrad, AdagradOptions{.lr = 0.1});
}
TEST(OptimizerReference, AdagradWithEverything) {
  ExpectFollows<Adagrad>(kAdagradFull, AdagradOptions{.lr = 0.1,
                                                      .lr_decay = 0.05,
                                                      .eps = 1e-6,
                                                      .initial_sum = 0.5,
                                                      .weight_decay = 0.3});
}
TEST(OptimizerReference, Lion) {
  ExpectFollows<Lion>(kLion, LionOptions{.lr = 0.02, .weight_decay = 0.3});
}

}  // namespace
}  // namespace wengert::train
