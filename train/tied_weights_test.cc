// A language model whose output layer is its table of words, as in GPT-2: one
// parameter with two names, which is trained once and saved once.
#include <string>

#include "autograd/ops.h"
#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/nn.h"
#include "train/adam.h"
#include "train/checkpoint.h"
#include "train/files_testlib.h"
#include "train/safetensors.h"

namespace wengert::train {
namespace {

using nn::ParameterStore;
using nn::Params;

// Guesses the next of the words 0, 1, 2, ... from one.
struct Model {
  explicit Model(Params p, bool tied = true)
      : words(p.Sub("words"), 5, 8),
        hidden(p.Sub("hidden"), 8, 8),
        head(tied ? p.Sub("head").Tied("weight", words.weight())
                  : p.Sub("head").Normal("weight", {5, 8}, 1)) {}

  Tensor operator()(const Tensor& ids) const {
    return Linear(Tanh(hidden(words(ids))), head);
  }
  Tensor Loss() const {
    return CrossEntropy((*this)(Tensor::Of<int64_t>({4}, {0, 1, 2, 3})),
                        Tensor::Of<int64_t>({4}, {1, 2, 3, 4}));
  }

  nn::Embedding words;
  nn::Linear hidden;
  Tensor head;
};

class TiedWeightsTest : public FilesTest {};

TEST_F(TiedWeightsTest, GradientIsTheSumOfBothUses) {
  ParameterStore store(DType::kFloat64, 1);
  const Model model(store.root());
  Tape tape;
  tape.Backward(model.Loss());
  // The same weights without the tie.
  ParameterStore apart(DType::kFloat64, 1);
  Model untied(apart.root(), false);
  untied.head.mutable_data<double>();
  std::copy_n(model.head.data<double>(), 40,
              untied.head.mutable_data<double>());
  Tape other;
  other.Backward(untied.Loss());
  const auto sum = (untied.head.grad() + untied.words.weight().grad());
  const auto got = model.head.grad().ToVector(), wanted = sum.ToVector();
  for (int i = 0; i < 40; ++i) EXPECT_NEAR(got[i], wanted[i], 1e-14);
}

TEST_F(TiedWeightsTest, TrainsAndIsSavedOnce) {
  ParameterStore store(DType::kFloat32, 1);
  const Model model(store.root());
  EXPECT_EQ(store.size(), 3);  // the table, and a weight and bias
  AdamW optimizer(store, {.lr = 0.05});
  const double before = model.Loss().item();
  for (int i = 0; i < 100; ++i) {
    Tape tape;
    tape.Backward(model.Loss());
    optimizer.Step();
  }
  EXPECT_LT(model.Loss().item(), before / 20);
  EXPECT_TRUE(SameBits(model.words.weight(), model.head));

  const std::string path = Path("tied.safetensors");
  ASSERT_TRUE(SaveCheckpoint(path, {&store, &optimizer}, {}).ok());
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_NE(file->Find("words.weight"), nullptr);
  EXPECT_EQ(file->Find("head.weight"), nullptr);

  ParameterStore loaded(DType::kFloat32, 2);
  const Model again(loaded.root());
  AdamW its_optimizer(loaded, {.lr = 0.05});
  ASSERT_TRUE(LoadCheckpoint(path, {&loaded, &its_optimizer}).ok());
  EXPECT_TRUE(SameBits(again.head, model.head));
  EXPECT_EQ(again.head.impl()->parameter,
            again.words.weight().impl()->parameter);
  EXPECT_EQ(again.Loss().item(), model.Loss().item());
}

}  // namespace
}  // namespace wengert::train
