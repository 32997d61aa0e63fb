// Learns that "one is one" reads "1 = 1", and says how well.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "autograd/parallel.h"
#include "examples/word_to_symbol/attention_picture.h"
#include "examples/word_to_symbol/translator.h"
#include "train/command_line.h"
#include "train/report.h"
#include "train/run_flags.h"
#include "train/text_file.h"

ABSL_FLAG(std::string, corpus, "",
          "Training pairs, a file of source<TAB>target lines. Without it: the "
          "nine sentences from \"one is one\" to \"nine is nine\".");
ABSL_FLAG(std::string, words, "",
          "Source vocabulary, a file of one word a line.");
ABSL_FLAG(std::string, symbols, "", "Target vocabulary, likewise.");
ABSL_FLAG(std::string, translate, "",
          "After training, print the translation of this sentence and nothing "
          "else.");
ABSL_FLAG(
    bool, attention, false,
    "Print each head's attention weights (of the --translate sentence, or "
    "of all) and write them to --attention_svg.");
ABSL_FLAG(std::string, attention_svg, "attention.svg",
          "Where --attention writes its picture.");
ABSL_FLAG(uint64_t, seed, 1, "Of the start, the order and the dropout.");
ABSL_FLAG(int64_t, steps, 300, "Training steps.");
ABSL_FLAG(int64_t, batch_size, 9, "Sentences in a step.");
ABSL_FLAG(double, lr, 0.01, "Highest learning rate.");
ABSL_FLAG(int64_t, d_model, 12, "Width of the model.");
ABSL_FLAG(int64_t, n_heads, 3, "Attention heads; they divide d_model.");
ABSL_FLAG(int64_t, n_layers, 1, "Encoder layers.");
ABSL_FLAG(int64_t, hidden, 48, "Width inside the MLP.");
ABSL_FLAG(double, dropout, 0, "Dropout probability while training.");
ABSL_FLAG(int64_t, threads, 1,
          "Threads; the result is the same for any number.");

namespace wengert {
namespace {

constexpr char kAbout[] =
    "Trains a small post-norm transformer to read sentences of words as "
    "symbols:\n\"one is one\" -> \"1 = 1\".\n\n"
    "Exit status: 0 when every symbol is right, 1 when not, 2 for a wrong "
    "flag, word or file, 130 when Ctrl-C stopped it.";

// What the flags ask for, checked.
absl::Status CheckFlags(const std::vector<std::string>& words) {
  if (!words.empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("unexpected word %s; sentences go into --translate",
                        train::Quoted(words[0])));
  }
  for (const absl::Status& status :
       {train::CheckFlag<int64_t>(FLAGS_steps, 1),
        train::CheckFlag<int64_t>(FLAGS_batch_size, 1),
        train::CheckFlag<int64_t>(FLAGS_d_model, 1, 4096),
        train::CheckFlag<int64_t>(FLAGS_n_heads, 1, 4096),
        train::CheckFlag<int64_t>(FLAGS_n_layers, 1, 1000),
        train::CheckFlag<int64_t>(FLAGS_hidden, 1, 65536),
        train::CheckFlag<int64_t>(FLAGS_threads, 1, 1024)}) {
    if (!status.ok()) return status;
  }
  if (absl::GetFlag(FLAGS_d_model) % absl::GetFlag(FLAGS_n_heads) != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--n_heads=%d does not divide --d_model=%d",
        absl::GetFlag(FLAGS_n_heads), absl::GetFlag(FLAGS_d_model)));
  }
  const double p = absl::GetFlag(FLAGS_dropout), lr = absl::GetFlag(FLAGS_lr);
  if (!(p >= 0 && p < 1)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--dropout=%g: wanted 0 or more and less than 1", p));
  }
  if (!(lr > 0 && lr < 1e3)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--lr=%g: wanted more than 0 and less than 1000", lr));
  }
  return absl::OkStatus();
}

// A file that the user named, or the project's own.
std::string FileOf(const absl::Flag<std::string>& flag, const char* program,
                   const char* own) {
  const std::string path = absl::GetFlag(flag);
  return path.empty()
             ? train::DataPath(program,
                               std::string("examples/word_to_symbol/") + own)
             : train::UserPath(path);
}

// What the model makes of each sentence of the corpus.
std::vector<train::ReportSample> Samples(const Corpus& corpus,
                                         const Translator& translator) {
  std::vector<std::vector<int64_t>> sources;
  for (const auto& pair : corpus.pairs) sources.push_back(pair.source);
  const auto predictions = translator.Translate(sources);
  std::vector<train::ReportSample> samples;
  for (size_t i = 0; i < sources.size(); ++i) {
    samples.push_back({corpus.words.Decode(sources[i]),
                       corpus.symbols.Decode(predictions[i]),
                       corpus.symbols.Decode(corpus.pairs[i].target)});
  }
  return samples;
}

// Prints sentence, prediction and, where it differs, what was wanted.
bool Evaluate(const Corpus& corpus, const Translator& translator) {
  std::vector<std::vector<int64_t>> sources;
  for (const auto& pair : corpus.pairs) sources.push_back(pair.source);
  const auto predictions = translator.Translate(sources);
  int64_t right = 0, symbols_right = 0, symbols = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto& want = corpus.pairs[i].target;
    for (size_t t = 0; t < want.size(); ++t) {
      symbols_right += predictions[i][t] == want[t];
    }
    symbols += static_cast<int64_t>(want.size());
    right += predictions[i] == want;
    std::cout << corpus.words.Decode(sources[i]) << " -> "
              << corpus.symbols.Decode(predictions[i]);
    if (predictions[i] != want) {
      std::cout << "   (wanted " << corpus.symbols.Decode(want) << ")";
    }
    std::cout << "\n";
  }
  const int64_t n = static_cast<int64_t>(sources.size());
  std::cout << absl::StrFormat("accuracy %d/%d sentences, %d/%d symbols\n",
                               right, n, symbols_right, symbols);
  return right == n;
}

absl::Status ShowAttention(const Translator& translator,
                           const std::vector<std::vector<int64_t>>& sentences) {
  const bool color = isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR");
  std::vector<train::AttentionMap> maps;
  for (const auto& sentence : sentences) {
    for (train::AttentionMap& map : translator.Attention(sentence)) {
      std::cout << AttentionText(map, color) << "\n";
      maps.push_back(std::move(map));
    }
  }
  const std::string path = train::UserPath(absl::GetFlag(FLAGS_attention_svg));
  const absl::Status status =
      train::WriteFile(path, AttentionSvg("Attention weights", maps));
  if (status.ok()) std::cout << "wrote " << path << "\n\n";
  return status;
}

absl::StatusOr<int> Run(int argc, char** argv) {
  const auto words = train::ParseRunCommandLine(argc, argv, kAbout, __FILE__);
  if (!words.ok()) return words.status();
  if (absl::Status s = CheckFlags(*words); !s.ok()) return s;
  SetNumThreads(static_cast<int>(absl::GetFlag(FLAGS_threads)));

  const auto corpus =
      Corpus::Read({.pairs = FileOf(FLAGS_corpus, argv[0], "corpus.tsv"),
                    .words = FileOf(FLAGS_words, argv[0], "words.txt"),
                    .symbols = FileOf(FLAGS_symbols, argv[0], "symbols.txt")});
  if (!corpus.ok()) return corpus.status();
  Translator translator(*corpus,
                        {.d_model = absl::GetFlag(FLAGS_d_model),
                         .n_heads = absl::GetFlag(FLAGS_n_heads),
                         .n_layers = absl::GetFlag(FLAGS_n_layers),
                         .hidden = absl::GetFlag(FLAGS_hidden),
                         .dropout = absl::GetFlag(FLAGS_dropout)},
                        absl::GetFlag(FLAGS_seed));

  const std::string sentence = absl::GetFlag(FLAGS_translate);
  std::vector<std::vector<int64_t>> shown;
  if (!sentence.empty()) {
    const auto ids = translator.Encode(sentence);
    if (!ids.ok()) return ids.status();
    shown = {*ids};
  } else {
    for (const auto& pair : corpus->pairs) shown.push_back(pair.source);
    std::cout << translator.store().Table() << "\n";
  }

  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  TrainOptions options = {.batch_size = absl::GetFlag(FLAGS_batch_size),
                          .lr = absl::GetFlag(FLAGS_lr),
                          .seed = seed,
                          .loop = train::LoopFlags(),
                          .recorder = train::RecorderFlags(seed)};
  options.loop.steps = absl::GetFlag(FLAGS_steps);
  options.recorder.unit = "symbols";
  if (!sentence.empty()) {
    options.recorder.progress = train::ProgressOptions::kQuiet;
  }
  options.recorder.attention = [&] {
    std::vector<train::AttentionMap> maps;
    for (const auto& words : shown) {
      for (train::AttentionMap& map : translator.Attention(words)) {
        maps.push_back(std::move(map));
      }
    }
    return maps;
  };
  options.recorder.samples = [&] { return Samples(*corpus, translator); };
  std::cout << std::flush;  // progress goes to standard error
  const int64_t every = std::max<int64_t>(1, options.loop.steps / 10);
  const auto end = translator.Train(
      options, [&](const train::StepInfo& info, train::Recorder& recorder) {
        if (info.step == 1 || info.last || info.step % every == 0) {
          recorder.Message(
              absl::StrFormat("step %5d  loss %.6f", info.step, info.loss));
        }
      });
  if (!end.ok()) return end.status();
  if (!end->complete()) return end->signal > 0 ? 128 + end->signal : 0;
  if (sentence.empty()) std::cout << "\n";
  if (absl::GetFlag(FLAGS_attention)) {
    if (absl::Status s = ShowAttention(translator, shown); !s.ok()) return s;
  }
  if (sentence.empty()) return Evaluate(*corpus, translator) ? 0 : 1;
  std::cout << corpus->symbols.Decode(translator.Translate(shown)[0]) << "\n";
  return 0;
}

}  // namespace
}  // namespace wengert

int main(int argc, char** argv) {
  return wengert::train::ExitStatus(
      "word_to_symbol", [&] { return wengert::Run(argc, argv); },
      "a smaller --d_model, --hidden, --n_layers or "
      "--batch_size takes less");
}
