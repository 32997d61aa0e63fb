// Parts that a run may have: text as tokens, frozen weights, a look inside, a
// rate that follows a measure, averaged weights. See docs/training.md.
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "nn/nn.h"
#include "train/adam.h"
#include "train/byte_pair.h"
#include "train/loop.h"
#include "train/metrics.h"

using namespace wengert;

// Which token follows which.
class Model {
 public:
  Model(nn::Params p, int64_t n_tokens)
      : embed_(p.Sub("embed"), n_tokens, 16),
        mlp_(p.Sub("mlp"), 16, 32),
        out_(p.Sub("out"), 16, n_tokens) {}

  Tensor operator()(const Tensor& ids) const { return out_(mlp_(embed_(ids))); }

 private:
  nn::Embedding embed_;
  nn::MLP mlp_;
  nn::Linear out_;
};

int main() {
  std::string text;
  for (int i = 0; i < 20; ++i)
    text += "one and one is two, two less one is one\n";
  const auto tokenizer =
      train::BytePairTokenizer::Train({text}, {.vocabulary_size = 264});
  const std::vector<int64_t> ids = tokenizer->Encode(text).value();
  const int64_t n = static_cast<int64_t>(ids.size()) - 1;

  nn::ParameterStore store(DType::kFloat32, /*seed=*/1);
  const Model model(store.root(), tokenizer->size());
  const auto pick = [&](absl::Span<const int64_t> rows, int64_t ahead) {
    std::vector<int64_t> picked;
    for (const int64_t row : rows) picked.push_back(ids[row + ahead]);
    return Tensor::From({static_cast<int64_t>(rows.size())}, picked);
  };
  // From here on the text shows it.
  store.Freeze("embed.*");
  std::map<std::string, double> norms;
  const nn::ForwardHook hook(store, "mlp*", [&](const auto& layer, auto& y) {
    norms[layer] = Norm(y.Detach()).item();
    return Tensor();  // the layer's result stays
  });
  train::AdamW optimizer(store);
  train::BatchStream batches(n, /*batch_size=*/32, /*seed=*/1);
  train::WeightAverage average(store, {.decay = 0.99, .warm_up = true});
  train::PlateauSchedule plateau(/*lr=*/0.02, {.factor = 0.5, .patience = 1});
  train::Loop loop(
      {&store, &optimizer, /*generator=*/nullptr, &batches, &average},
      {.steps = 400, .plateau = &plateau, .evaluate_every = 20});
  const auto end = loop.Run(
      [&](auto rows) {
        return CrossEntropy(model(pick(rows, 0)), pick(rows, 1));
      },
      [&] {
        const train::WeightAverage::Swap swap(average);
        train::ConfusionMatrix confusion(tokenizer->size());
        auto metrics = train::Evaluate(n, 64, [&](auto rows) {
          const Tensor logits = model(pick(rows, 0)), next = pick(rows, 1);
          confusion.Add(logits, next);
          return train::BatchMeans{
              {{"eval/loss", CrossEntropy(logits, next).item()}}, next.size()};
        });
        metrics.push_back({"eval/accuracy", confusion.Accuracy()});
        return metrics;
      });
  return end.ok() && loop.state().best < 1 && plateau.lr() < 0.02 &&
                 norms.count("mlp.up") == 1
             ? 0
             : 1;
}
