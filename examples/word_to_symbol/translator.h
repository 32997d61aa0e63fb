// Learns a corpus of sentence pairs word for word and translates by it.
#ifndef WENGERT_EXAMPLES_WORD_TO_SYMBOL_TRANSLATOR_H_
#define WENGERT_EXAMPLES_WORD_TO_SYMBOL_TRANSLATOR_H_

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "examples/word_to_symbol/model.h"
#include "nn/parameter_store.h"
#include "train/attention_map.h"
#include "train/corpus.h"
#include "train/loop.h"
#include "train/recorder.h"
#include "train/split.h"
#include "train/vocabulary.h"

namespace wengert {

struct CorpusFiles {
  std::string pairs;  // source<TAB>target
  std::string words;  // the vocabularies, one word a line
  std::string symbols;
};

enum class Arch {
  kEncoder,  // names a symbol for each word
  kSeq2Seq,  // writes the symbols one by one
};

// The corpus with its vocabularies.
struct Corpus {
  train::Vocabulary words;
  train::Vocabulary symbols;
  std::vector<train::SentencePair> text;
  std::vector<train::EncodedPair> pairs;
  // Which pairs to learn from and which to hold back; at first all and none.
  train::Split split;
  int64_t max_length = 0;  // in words
  int64_t max_symbols = 0;

  // Errors name file, line and column; for kEncoder each word has one symbol.
  static absl::StatusOr<Corpus> Read(const CorpusFiles& files,
                                     Arch arch = Arch::kEncoder);
};

struct TrainOptions {
  int64_t batch_size = 9;
  double lr = 0.01;
  uint64_t seed = 1;
  train::LoopOptions loop = {};  // its schedule and clipping are set here
  train::RecorderOptions recorder = {};
};

class Translator {
 public:
  // The corpus, which must outlive this, says the sizes that `options` leaves
  // out. Throws Error for sizes that do not fit each other.
  Translator(const Corpus& corpus, ModelOptions options, uint64_t seed,
             Arch arch = Arch::kEncoder, int64_t beam = 1);

  // Trains on what is not held back, or goes on with a run, calling `on_step`
  // after each step. Errors: those of the run's files, and a loss that stays
  // infinite.
  absl::StatusOr<train::LoopEnd> Train(
      const TrainOptions& options,
      const std::function<void(const train::StepInfo&, train::Recorder&)>&
          on_step);

  // Predicted symbol ids of each sentence.
  std::vector<std::vector<int64_t>> Translate(
      const std::vector<std::vector<int64_t>>& sentences) const;
  // One map for each layer: of the words on each other, or, of kSeq2Seq, of the
  // symbols on the words.
  std::vector<train::AttentionMap> Attention(
      const std::vector<int64_t>& sentence) const;
  // Word ids of a sentence that a person typed, if it can be translated.
  absl::StatusOr<std::vector<int64_t>> Encode(const std::string& text) const;

  const nn::ParameterStore& store() const { return store_; }

 private:
  train::BatchLoss Loss(absl::Span<const int64_t> rows,
                        const std::vector<int64_t>& part) const;
  double LossOf(const std::vector<int64_t>& part) const;
  std::vector<train::Metric> Measure() const;

  const Corpus& corpus_;
  ModelOptions options_;
  nn::ParameterStore store_;
  std::variant<Model, Seq2Seq> model_;
  int64_t beam_;
  // The symbols of each pair between start and end, for kSeq2Seq.
  std::vector<std::vector<int64_t>> framed_;
};

}  // namespace wengert

#endif  // WENGERT_EXAMPLES_WORD_TO_SYMBOL_TRANSLATOR_H_
