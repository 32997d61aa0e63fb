#include "examples/word_to_symbol/translator.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/ops.h"
#include "autograd/random.h"
#include "train/adam.h"
#include "train/batch_stream.h"
#include "train/metrics.h"
#include "train/padding.h"
#include "train/schedule.h"
#include "train/text_file.h"

namespace wengert {
namespace {

ModelOptions Complete(ModelOptions options, const Corpus& corpus) {
  options.n_words = corpus.words.size();
  options.n_symbols = corpus.symbols.size();
  options.max_length = corpus.max_length;
  options.max_symbols = corpus.max_symbols;
  return options;
}

std::variant<Model, Seq2Seq> MakeModel(Arch arch, nn::Params p,
                                       const ModelOptions& options) {
  if (arch == Arch::kEncoder) return Model(p, options);
  return Seq2Seq(p, options);
}

// The words of some sentences with padding behind the shorter ones.
train::PaddedRows Padded(absl::Span<const std::vector<int64_t>> sentences) {
  return train::PadRows(
      static_cast<int64_t>(sentences.size()),
      [&](int64_t i) { return absl::MakeConstSpan(sentences[i]); }, 0);
}

}  // namespace

absl::StatusOr<Corpus> Corpus::Read(const CorpusFiles& files, Arch arch) {
  auto words = train::Vocabulary::Load(files.words);
  if (!words.ok()) return words.status();
  auto symbols = train::Vocabulary::Load(files.symbols);
  if (!symbols.ok()) return symbols.status();
  auto text = train::ReadPairs(files.pairs);
  if (!text.ok()) return text.status();
  auto pairs = train::EncodePairs(files.pairs, *text, *words, *symbols);
  if (!pairs.ok()) return pairs.status();
  Corpus corpus{*std::move(words),
                *std::move(symbols),
                *std::move(text),
                *std::move(pairs),
                {},
                0,
                0};
  for (size_t i = 0; i < corpus.pairs.size(); ++i) {
    const auto& [source, target] = corpus.pairs[i];
    if (arch == Arch::kEncoder && source.size() != target.size()) {
      return train::ErrorAt(
          files.pairs, corpus.text[i].line, 1,
          absl::StrCat(source.size(), " words against ", target.size(),
                       " symbols; wanted one symbol for each word"));
    }
    corpus.max_length =
        std::max(corpus.max_length, static_cast<int64_t>(source.size()));
    corpus.max_symbols =
        std::max(corpus.max_symbols, static_cast<int64_t>(target.size()));
    corpus.split.train.push_back(static_cast<int64_t>(i));
  }
  return corpus;
}

Translator::Translator(const Corpus& corpus, ModelOptions options,
                       uint64_t seed, Arch arch, int64_t beam)
    : corpus_(corpus),
      options_(Complete(options, corpus)),
      store_(DType::kFloat32, seed),
      model_(MakeModel(arch, store_.root(), options_)),
      beam_(beam) {
  if (arch == Arch::kEncoder) return;
  const auto& model = std::get<Seq2Seq>(model_);
  for (const train::EncodedPair& pair : corpus.pairs) {
    std::vector<int64_t>& framed = framed_.emplace_back();
    framed.push_back(model.start());
    framed.insert(framed.end(), pair.target.begin(), pair.target.end());
    framed.push_back(model.end());
  }
}

// Of the pairs part[i] for the i in `rows`, the mean over their symbols.
train::BatchLoss Translator::Loss(absl::Span<const int64_t> rows,
                                  const std::vector<int64_t>& part) const {
  const auto* seq2seq = std::get_if<Seq2Seq>(&model_);
  const auto n = static_cast<int64_t>(rows.size());
  const auto pad = [&](auto row, int64_t pad_id) {
    return train::PadRows(
        n, [&](int64_t i) { return absl::MakeConstSpan(row(part[rows[i]])); },
        pad_id);
  };
  const auto source = [&](int64_t i) -> const auto& {
    return corpus_.pairs[i].source;
  };
  const auto target = [&](int64_t i) -> const auto& {
    return corpus_.pairs[i].target;
  };
  // Each symbol, and the end, is to follow those before it.
  const auto so_far = [&](int64_t i) {
    return absl::MakeConstSpan(framed_[i].data(), framed_[i].size() - 1);
  };
  const auto to_come = [&](int64_t i) {
    return absl::MakeConstSpan(framed_[i]).subspan(1);
  };
  int64_t n_labels = 0;
  for (const int64_t i : rows) {
    n_labels +=
        static_cast<int64_t>(target(part[i]).size()) + (seq2seq != nullptr);
  }
  const train::PaddedRows words = pad(source, 0);
  const Tensor labels = seq2seq ? pad(to_come, train::kIgnoreIndex).ids
                                : pad(target, train::kIgnoreIndex).ids;
  const Tensor logits =
      seq2seq ? (*seq2seq)(words.ids, words.key_mask, pad(so_far, 0).ids)
              : std::get<Model>(model_)(words.ids, words.key_mask);
  return {CrossEntropy(logits, labels, {.ignore_index = train::kIgnoreIndex}),
          n_labels};
}

double Translator::LossOf(const std::vector<int64_t>& part) const {
  std::vector<int64_t> all(part.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  return Loss(all, part).loss.item();
}

std::vector<train::Metric> Translator::Measure() const {
  const auto& [train, held_out] = corpus_.split;
  if (held_out.empty()) return {{"eval/loss", LossOf(train)}};
  return {{"eval/loss", LossOf(held_out)}, {"eval/train_loss", LossOf(train)}};
}

absl::StatusOr<train::LoopEnd> Translator::Train(
    const TrainOptions& options,
    const std::function<void(const train::StepInfo&, train::Recorder&)>&
        on_step) {
  const std::vector<int64_t>& part = corpus_.split.train;
  const int64_t n = static_cast<int64_t>(part.size());
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
      loop.Run([&](absl::Span<const int64_t> rows) { return Loss(rows, part); },
               [&] { return Measure(); });
  const absl::Status status = (*recorder)->Finish(end);
  if (!status.ok()) return status;
  return end;
}

std::vector<std::vector<int64_t>> Translator::Translate(
    const std::vector<std::vector<int64_t>>& sentences) const {
  std::vector<std::vector<int64_t>> result;
  if (const auto* seq2seq = std::get_if<Seq2Seq>(&model_)) {
    for (const auto& words : sentences) {
      result.push_back(seq2seq->Translate(words, beam_));
    }
    return result;
  }
  const train::PaddedRows words = Padded(sentences);
  const Tensor best =
      ArgMax(std::get<Model>(model_)(words.ids, words.key_mask), -1);
  for (size_t i = 0; i < sentences.size(); ++i) {
    const auto row = best.span<int64_t>().subspan(i * best.dim(1));
    result.emplace_back(row.begin(), row.begin() + sentences[i].size());
  }
  return result;
}

std::vector<train::AttentionMap> Translator::Attention(
    const std::vector<int64_t>& sentence) const {
  const train::PaddedRows words = Padded({sentence});
  const std::string text = corpus_.words.Decode(sentence);
  std::vector<std::string> keys;
  for (const int64_t id : sentence) keys.push_back(corpus_.words.Word(id));
  const auto* seq2seq = std::get_if<Seq2Seq>(&model_);
  if (!seq2seq) {
    return train::AttentionMaps(
        text, keys, keys,
        std::get<Model>(model_).Attention(words.ids, words.key_mask));
  }
  // A row is named after what it writes.
  std::vector<int64_t> symbols = seq2seq->Translate(sentence, beam_);
  std::vector<std::string> queries;
  for (const int64_t id : symbols) queries.push_back(corpus_.symbols.Word(id));
  queries.push_back("(end)");
  symbols.insert(symbols.begin(), seq2seq->start());
  return train::AttentionMaps(
      text, queries, keys,
      seq2seq->Attention(words.ids, words.key_mask, Padded({symbols}).ids));
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
