// Twenty steps of training with carried-over weights must give the losses that
// PyTorch gives: layers, loss, gradients and optimizer together.
#include "autograd/ops.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"
#include "nn/nn.h"
#include "train/adam.h"

namespace wengert::train {
namespace {

// A class for each word of a sentence.
class Tagger {
 public:
  Tagger(nn::Params p, nn::Norm norm)
      : words_(p.Sub("words"), 7, 8, {.scale_by_sqrt_dim = true}),
        positions_(p.Sub("positions"), 4, 8),
        encoder_(p.Sub("encoder"), 2,
                 {.d_model = 8,
                  .n_heads = 2,
                  .hidden = 12,
                  .activation = Activation::kGelu,
                  .norm = norm}),
        classes_(p.Sub("classes"), 8, 5) {}

  Tensor operator()(const Tensor& ids, const Tensor& key_mask) const {
    return classes_(encoder_(positions_(words_(ids)), {.key_mask = key_mask}));
  }

 private:
  nn::Embedding words_;
  nn::PositionalEncoding positions_;
  nn::Encoder encoder_;
  nn::Linear classes_;
};

// float64 numbers as ids.
Tensor ToIds(const Tensor& x) {
  const std::vector<double> values = x.ToVector();
  return Tensor::From(x.shape(),
                      std::vector<int64_t>(values.begin(), values.end()));
}

void TrainAsPyTorchDoes(DType dtype, nn::Norm norm) {
  const auto all = nn::ReadReference("training_curve.txt");
  const auto reference =
      nn::Under(all, norm == nn::Norm::kPost ? "post." : "pre.");
  const Tensor ids = ToIds(all.at("ids")), targets = ToIds(all.at("targets"));
  const Tensor key_mask = nn::ToBool(all.at("key_mask"));

  nn::ParameterStore store(dtype);
  const Tagger model(store.root(), norm);
  nn::SetParameters(store, nn::Under(reference, "parameter."));
  AdamW optimizer(store, {.lr = 0.01, .weight_decay = 0.1});

  const std::vector<double> losses = reference.at("losses").ToVector();
  ASSERT_EQ(losses.size(), 20u);
  for (size_t step = 0; step < losses.size(); ++step) {
    Tape tape;
    const Tensor loss = CrossEntropy(model(ids, key_mask), targets);
    ASSERT_NEAR(loss.item(), losses[step],
                dtype == DType::kFloat32 ? 1e-5 : 1e-11)
        << "step " << step;
    tape.Backward(loss);
    optimizer.Step();
  }
}

TEST(TrainingCurveTest, PostNorm) {
  TrainAsPyTorchDoes(DType::kFloat32, nn::Norm::kPost);
}
TEST(TrainingCurveTest, PostNormInDouble) {
  TrainAsPyTorchDoes(DType::kFloat64, nn::Norm::kPost);
}
TEST(TrainingCurveTest, PreNorm) {
  TrainAsPyTorchDoes(DType::kFloat32, nn::Norm::kPre);
}
TEST(TrainingCurveTest, PreNormInDouble) {
  TrainAsPyTorchDoes(DType::kFloat64, nn::Norm::kPre);
}

}  // namespace
}  // namespace wengert::train
