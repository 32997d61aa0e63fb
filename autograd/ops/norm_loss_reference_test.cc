// Norms, rotary embedding and losses against the values and gradients that
// PyTorch gives in double.
#include <string>

#include "absl/strings/str_cat.h"
#include "autograd/ops/ops_testlib.h"
#include "autograd/ops/reference_testlib.h"

namespace wengert {
namespace {

struct ReferenceCase {
  std::string name;
  Function f;
};

Tensor Like(const Tensor& x, std::vector<double> values) {
  return Values(std::move(values), x.dtype());
}
Tensor ClassWeights(const Tensor& x) { return Like(x, {0.5, 2, 1.25}); }

std::vector<ReferenceCase> Norms() {
  return {
      {"layer_norm_axes", [](Inputs x) { return LayerNorm(x[0], x[1], x[2]); }},
      {"rms_norm", [](Inputs x) { return RmsNorm(x[0], x[1]); }},
      {"rms_norm_plain", [](Inputs x) { return RmsNorm(x[0], {}, 0.1); }},
      {"rms_norm_axes", [](Inputs x) { return RmsNorm(x[0], x[1], 1e-3); }},
      {"group_norm", [](Inputs x) { return GroupNorm(x[0], 3, x[1], x[2]); }},
      {"group_norm_image",
       [](Inputs x) { return GroupNorm(x[0], 2, {}, {}, 0.1); }},
      {"rotary", [](Inputs x) { return Rotary(x[0]); }},
      {"rotary_some",
       [](Inputs x) {
         return Rotary(x[0], {.base = 100, .offset = 5, .dims = 4});
       }},
      {"rotary_interleaved",
       [](Inputs x) {
         return Rotary(x[0], {.offset = 1000, .interleaved = true});
       }},
  };
}

std::vector<ReferenceCase> Losses(const std::string& suffix, Reduction r) {
  return {
      {"cross_entropy_weighted_" + suffix,
       [=](Inputs x) {
         return CrossEntropy(x[0], x[1],
                             {.reduction = r,
                              .label_smoothing = 0.1,
                              .weight = ClassWeights(x[0])});
       }},
      {"cross_entropy_probabilities_" + suffix,
       [=](Inputs x) {
         return CrossEntropy(x[0], x[1],
                             {.reduction = r,
                              .label_smoothing = 0.1,
                              .weight = ClassWeights(x[0])});
       }},
      {"nll_" + suffix,
       [=](Inputs x) {
         return NllLoss(x[0], x[1],
                        {.reduction = r, .weight = ClassWeights(x[0])});
       }},
      {"mse_" + suffix, [=](Inputs x) { return MseLoss(x[0], x[1], r); }},
      {"l1_" + suffix, [=](Inputs x) { return L1Loss(x[0], x[1], r); }},
      {"huber_" + suffix,
       [=](Inputs x) { return HuberLoss(x[0], x[1], 0.7, r); }},
      {"bce_" + suffix,
       [=](Inputs x) {
         return BinaryCrossEntropyWithLogits(x[0], x[1], {.reduction = r});
       }},
      {"bce_weighted_" + suffix,
       [=](Inputs x) {
         return BinaryCrossEntropyWithLogits(
             x[0], x[1],
             {.reduction = r,
              .weight = ClassWeights(x[0]),
              .pos_weight = Like(x[0], {3, 1, 0.25})});
       }},
      {"kl_" + suffix,
       [=](Inputs x) { return KlDivLoss(x[0], x[1], {.reduction = r}); }},
      {"kl_log_" + suffix,
       [=](Inputs x) {
         return KlDivLoss(x[0], x[1], {.reduction = r, .log_target = true});
       }},
  };
}

std::vector<ReferenceCase> OtherLosses() {
  return {
      {"cross_entropy_image",
       [](Inputs x) {
         return CrossEntropy(x[0], x[1],
                             {.weight = ClassWeights(x[0]), .class_axis = 1});
       }},
      {"cross_entropy_image_probabilities",
       [](Inputs x) {
         return CrossEntropy(x[0], x[1],
                             {.label_smoothing = 0.2, .class_axis = 1});
       }},
      {"nll_image",
       [](Inputs x) { return NllLoss(x[0], x[1], {.class_axis = 1}); }},
      {"kl_batchmean",
       [](Inputs x) { return KlDivLoss(x[0], x[1], {.batch_mean = true}); }},
      {"cosine", [](Inputs x) { return CosineSimilarity(x[0], x[1]); }},
      {"cosine_first",
       [](Inputs x) { return CosineSimilarity(x[0], x[1], 0); }},
  };
}

std::vector<ReferenceCase> AllCases() {
  std::vector<ReferenceCase> all = Norms();
  for (const auto& more :
       {Losses("mean", Reduction::kMean), Losses("sum", Reduction::kSum),
        Losses("none", Reduction::kNone), OtherLosses()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

TEST(NormLossReferenceTest, ValuesAndGradientsArePyTorchs) {
  const TensorMap all = ReadReference("norm_loss_reference.txt");
  size_t used = 0;
  for (const ReferenceCase& c : AllCases()) {
    SCOPED_TRACE(c.name);
    for (DType dtype : kFloats) {
      const double tolerance = dtype == DType::kFloat64 ? 1e-13 : 2e-6;
      std::vector<Tensor> inputs, wanted;
      used = dtype == DType::kFloat64 ? used + 2 : used;
      for (int i = 0; all.count(absl::StrCat(c.name, ".", i)); ++i) {
        const Tensor& x = all.at(absl::StrCat(c.name, ".", i));
        const auto gradient = all.find(absl::StrCat(c.name, ".grad.", i));
        const bool tracked = gradient != all.end();
        inputs.push_back(x.To(tracked ? dtype : DType::kInt64));
        if (tracked) wanted.push_back(gradient->second);
        if (dtype == DType::kFloat64) used += 1 + tracked;
      }
      const Tensor dy = all.at(c.name + ".dy").To(dtype);
      for (bool recorded : {false, true}) {
        const auto got = Differentiate(c.f, inputs, dy, recorded);
        ExpectClose(got.value, all.at(c.name + ".out"), tolerance, "value");
        ASSERT_EQ(got.gradients.size(), wanted.size());
        for (size_t i = 0; i < wanted.size(); ++i) {
          ExpectClose(got.gradients[i], wanted[i], tolerance, "gradient");
        }
      }
    }
  }
  EXPECT_EQ(used, all.size()) << "some values are compared with nothing";
}

}  // namespace
}  // namespace wengert
