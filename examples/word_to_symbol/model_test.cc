#include "examples/word_to_symbol/model.h"

#include <cstdint>
#include <vector>

#include "autograd/tensor_testlib.h"
#include "gtest/gtest.h"

namespace wengert {
namespace {

constexpr ModelOptions kOptions = {
    .n_words = 9, .n_symbols = 7, .max_length = 5, .max_symbols = 6};

// What greedy decoding gives without a cache.
std::vector<int64_t> Greedy(const Seq2Seq& model,
                            const std::vector<int64_t>& words) {
  const auto n_words = static_cast<int64_t>(words.size());
  const Tensor source = Tensor::From({1, n_words}, words);
  const Tensor mask = Tensor::Full({1, n_words}, 1, DType::kBool);
  std::vector<int64_t> symbols = {model.start()};
  while (static_cast<int64_t>(symbols.size()) <= kOptions.max_symbols) {
    const auto n = static_cast<int64_t>(symbols.size());
    const Tensor best =
        ArgMax(model(source, mask, Tensor::From({1, n}, symbols)), -1);
    const int64_t next = best.data<int64_t>()[n - 1];
    if (next == model.end()) break;
    symbols.push_back(next);
  }
  return {symbols.begin() + 1, symbols.end()};
}

TEST(Seq2Seq, TranslatesInStepsAsItDoesAtOnce) {
  int64_t symbols = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    nn::ParameterStore store(DType::kFloat32, seed);
    const Seq2Seq model(store.root(), kOptions);
    for (const std::vector<int64_t>& words :
         {std::vector<int64_t>{1}, {8, 0, 3}, {2, 2, 4, 5, 6}}) {
      const std::vector<int64_t> result = model.Translate(words, 1);
      EXPECT_EQ(result, Greedy(model, words)) << seed;
      symbols += static_cast<int64_t>(result.size());
    }
  }
  EXPECT_GT(symbols, 100);  // not all are empty
}

// The padding of a batch changes nothing.
TEST(Seq2Seq, ASentenceStandsForItself) {
  nn::ParameterStore store(DType::kFloat32, 1);
  const Seq2Seq model(store.root(), kOptions);
  const auto mask = Tensor::Of<bool>({1, 3}, {true, true, false});
  const auto symbols = Tensor::Of<int64_t>({1, 2}, {model.start(), 4});
  const Tensor one =
      model(Tensor::Of<int64_t>({1, 3}, {5, 2, 0}), mask, symbols);
  const Tensor other =
      model(Tensor::Of<int64_t>({1, 3}, {5, 2, 8}), mask, symbols);
  EXPECT_EQ(one.shape(), (Shape{1, 2, 8}));
  EXPECT_TRUE(SameBits(one, other));
}

TEST(Seq2Seq, GivesTheAttentionOfEachLayer) {
  nn::ParameterStore store(DType::kFloat32, 1);
  ModelOptions options = kOptions;
  options.n_layers = 2;
  const Seq2Seq model(store.root(), options);
  const auto weights =
      model.Attention(Tensor::Of<int64_t>({1, 3}, {5, 2, 0}),
                      Tensor::Full({1, 3}, 1, DType::kBool),
                      Tensor::Of<int64_t>({1, 2}, {model.start(), 4}));
  ASSERT_EQ(weights.size(), 2u);
  for (const Tensor& w : weights) EXPECT_EQ(w.shape(), (Shape{1, 3, 2, 3}));
}

}  // namespace
}  // namespace wengert
