#include "examples/word_to_symbol/translator.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/ops.h"
#include "autograd/random.h"
#include "train/adam.h"
#include "train/batch_stream.h"
#include "train/padding.h"
#include "train/schedule.h"
#include "train/text_file.h"

namespace wengert {
namespace {

constexpr int64_t kIgnored = -100;  // a padded position has no target

ModelOptions Complete(ModelOptions options, const Corpus& corpus) {
  options.n_words = corpus.words.size();
  options.n_symbols = corpus.symbols.size();
  options.max_length = corpus.max_length;
  return options;
}

}  // namespace

absl::StatusOr<Corpus> Corpus::Read(const CorpusFiles& files) {
  auto words = train::Vocabulary::Load(files.words);
  if (!words.ok()) return words.status();
  auto symbols = train::Vocabulary::Load(files.symbols);
  if (!symbols.ok()) return symbols.status();
  auto text = train::ReadPairs(files.pairs);
  if (!text.ok()) return text.status();
  auto pairs = train::EncodePairs(files.pairs, *text, *words, *symbols);
  if (!pairs.ok()) return pairs.status();
  Corpus corpus{*std::move(words), *std::move(symbols), *std::move(text),
                *std::move(pairs), 0};
  for (size_t i = 0; i < corpus.pairs.size(); ++i) {
    const auto& [source, target] = corpus.pairs[i];
    if (source.size() != target.size()) {
      return train::ErrorAt(
          files.pairs, corpus.text[i].line, 1,
          absl::StrCat(source.size(), " words against ", target.size(),
                       " symbols; wanted one symbol for each word"));
    }
    corpus.max_length =
        std::max(corpus.max_length, static_cast<int64_t>(source.size()));
  }
  return corpus;
}

Translator::Translator(const Corpus& corpus, ModelOptions options,
                       uint64_t seed)
    : corpus_(corpus),
      options_(Complete(options, corpus)),
      store_(DType::kFloat32, seed),
      model_(store_.root(), options_) {}

// Of the pairs with these indices, the mean over their symbols.
train::BatchLoss Translator::Loss(absl::Span<const int64_t> rows) const {
  const auto& pairs = corpus_.pairs;
  int64_t n_symbols = 0;
  for (const int64_t i : rows) {
    n_symbols += static_cast<int64_t>(pairs[i].target.size());
  }
  const int64_t n = static_cast<int64_t>(rows.size());
  const train::PaddedRows words = train::PadRows(
      n, [&](int64_t i) { return absl::MakeConstSpan(pairs[rows[i]].source); },
      0);
  const train::PaddedRows labels = train::PadRows(
      n, [&](int64_t i) { return absl::MakeConstSpan(pairs[rows[i]].target); },
      kIgnored);
  return {CrossEntropy(model_(words.ids, words.key_mask), labels.ids,
                       {.ignore_index = kIgnored}),
          n_symbols};
}

std::vector<train::Metric> Translator::Measure() const {
  std::vector<int64_t> all(corpus_.pairs.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  return {{"eval/loss", Loss(all).loss.item()}};
}

absl::StatusOr<train::LoopEnd> Translator::Train(
    const TrainOptions& options,
    const std::function<void(const train::StepInfo&, train::Recorder&)>&
        on_step) {
  const int64_t n = static_cast<int64_t>(corpus_.pairs.size());
  train::BatchStream batches(n, std::min(options.batch_size, n), options.seed);
  train::AdamW optimizer(store_, {.decay_filter = train::IsMatrix});
  Generator generator(options.seed);
  train::LoopOptions loop_options = options.loop;
  const int64_t steps = loop_options.steps;
  loop_options.clip_norm = 1;
  loop_options.schedule =
      train::WarmupCosine(options.lr, std::min<int64_t>(20, steps), steps);
  loop_options.schedule_name =
      absl::StrCat("cosine to 0 at step ", steps, " from ", options.lr);
  train::Loop loop({&store_, &optimizer, &generator, &batches}, loop_options);
  const auto recorder = train::Recorder::Open(loop, options.recorder);
  if (!recorder.ok()) return recorder.status();
  loop.OnStep([&](const train::StepInfo& info) { on_step(info, **recorder); });
  const auto end =
      loop.Run([&](absl::Span<const int64_t> rows) { return Loss(rows); },
               [&] { return Measure(); });
  const absl::Status status = (*recorder)->Finish(end);
  if (!status.ok()) return status;
  return end;
}

std::vector<std::vector<int64_t>> Translator::Translate(
    const std::vector<std::vector<int64_t>>& sentences) const {
  const train::PaddedRows words = train::PadRows(
      sentences.size(),
      [&](int64_t i) { return absl::MakeConstSpan(sentences[i]); }, 0);
  const Tensor best = ArgMax(model_(words.ids, words.key_mask), -1);
  std::vector<std::vector<int64_t>> result;
  for (size_t i = 0; i < sentences.size(); ++i) {
    const auto row = best.span<int64_t>().subspan(i * best.dim(1));
    result.emplace_back(row.begin(), row.begin() + sentences[i].size());
  }
  return result;
}

std::vector<train::AttentionMap> Translator::Attention(
    const std::vector<int64_t>& sentence) const {
  const train::PaddedRows words = train::PadRows(
      1, [&](int64_t) { return absl::MakeConstSpan(sentence); }, 0);
  std::vector<std::string> labels;
  for (int64_t id : sentence) labels.push_back(corpus_.words.Word(id));
  return train::SelfAttentionMaps(corpus_.words.Decode(sentence), labels,
                                  model_.Attention(words.ids, words.key_mask));
}

absl::StatusOr<std::vector<int64_t>> Translator::Encode(
    const std::string& text) const {
  auto ids = corpus_.words.Encode(train::Tokenize(text));
  if (!ids.ok()) return ids;
  const int64_t length = static_cast<int64_t>(ids->size());
  if (length == 0 || length > corpus_.max_length) {
    return absl::InvalidArgumentError(
        absl::StrCat(train::Quoted(text), " has ", length,
                     " words; wanted 1 to ", corpus_.max_length));
  }
  return ids;
}

}  // namespace wengert
