// Learns that "one is one" reads "1 = 1", and says how well.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
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
          "Training pairs, a file of source<TAB>target lines; or "
          "\"comparisons\": all 81 of \"one is one\", \"one less two\" and "
          "\"two more one\", of which a fifth is held back, drawn by --seed. "
          "Without it: the nine sentences from \"one is one\" to \"nine is "
          "nine\".");
ABSL_FLAG(std::string, arch, "encoder",
          "encoder: names a symbol for each word. seq2seq: an encoder and a "
          "decoder that writes the symbols one by one.");
ABSL_FLAG(int64_t, beam, 1,
          "Translations that --arch=seq2seq goes on with at a time; 1 is "
          "greedy.");
ABSL_FLAG(std::string, words, "",
          "Source vocabulary, a file of one word a line.");
ABSL_FLAG(std::string, symbols, "", "Target vocabulary, likewise.");
ABSL_FLAG(std::string, translate, "",
          "After training, print the translation of this sentence and nothing "
          "else.");
ABSL_FLAG(
    bool, attention, false,
    "Print each head's attention weights (of the --translate sentence, of "
    "those held back, or of all) and write them to --attention_svg.");
ABSL_FLAG(std::string, attention_svg, "attention.svg",
          "Where --attention writes its picture.");
ABSL_FLAG(uint64_t, seed, 1, "Of the start, the order and the dropout.");
ABSL_FLAG(std::optional<int64_t>, steps, std::nullopt,
          "Training steps. Without it: 300, or 2000 with --arch=seq2seq.");
ABSL_FLAG(int64_t, batch_size, 9, "Sentences in a step.");
ABSL_FLAG(double, lr, 0.01, "Highest learning rate.");
ABSL_FLAG(int64_t, d_model, 12, "Width of the model.");
ABSL_FLAG(int64_t, n_heads, 3, "Attention heads; they divide d_model.");
ABSL_FLAG(int64_t, n_layers, 1,
          "Layers, of the encoder and of the decoder each.");
ABSL_FLAG(int64_t, hidden, 48, "Width inside the MLP.");
ABSL_FLAG(std::optional<double>, dropout, std::nullopt,
          "Dropout probability while training. Without it: 0, or 0.15 with "
          "--arch=seq2seq, which else learns sentences by heart.");
ABSL_FLAG(int64_t, threads, 1,
          "Threads; the result is the same for any number.");

namespace wengert {
namespace {

constexpr char kAbout[] =
    "Trains a small post-norm transformer to read sentences of words as "
    "symbols:\n\"one is one\" -> \"1 = 1\".\n\n"
    "Exit status: 0 when every symbol is right, 1 when not, 2 for a wrong "
    "flag, word or file, 130 when Ctrl-C stopped it.";

// Sets the flags whose default depends on others.
void CompleteFlags() {
  const bool seq2seq = absl::GetFlag(FLAGS_arch) == "seq2seq";
  if (!absl::GetFlag(FLAGS_steps)) {
    absl::SetFlag(&FLAGS_steps, seq2seq ? 2000 : 300);
  }
  if (!absl::GetFlag(FLAGS_dropout)) {
    absl::SetFlag(&FLAGS_dropout, seq2seq ? 0.15 : 0.0);
  }
}

// What the flags ask for, checked.
absl::Status CheckFlags() {
  for (const absl::Status& status :
       {train::CheckFlag<int64_t>(FLAGS_batch_size, 1),
        train::CheckFlag<int64_t>(FLAGS_d_model, 1, 4096),
        train::CheckFlag<int64_t>(FLAGS_n_heads, 1, 4096),
        train::CheckFlag<int64_t>(FLAGS_n_layers, 1, 1000),
        train::CheckFlag<int64_t>(FLAGS_hidden, 1, 65536),
        train::CheckFlag<int64_t>(FLAGS_beam, 1, 1024),
        train::CheckFlag<int64_t>(FLAGS_threads, 1, 1024)}) {
    if (!status.ok()) return status;
  }
  const std::string arch = absl::GetFlag(FLAGS_arch);
  if (arch != "encoder" && arch != "seq2seq") {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--arch=%s: wanted encoder or seq2seq", train::Printable(arch)));
  }
  if (arch == "encoder" && absl::GetFlag(FLAGS_beam) != 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--beam=%d goes with --arch=seq2seq", absl::GetFlag(FLAGS_beam)));
  }
  if (absl::GetFlag(FLAGS_d_model) % absl::GetFlag(FLAGS_n_heads) != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--n_heads=%d does not divide --d_model=%d",
        absl::GetFlag(FLAGS_n_heads), absl::GetFlag(FLAGS_d_model)));
  }
  if (const int64_t steps = *absl::GetFlag(FLAGS_steps); steps < 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--steps=%d: wanted 1 or more", steps));
  }
  const double p = *absl::GetFlag(FLAGS_dropout), lr = absl::GetFlag(FLAGS_lr);
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

constexpr char kComparisons[] = "comparisons";

absl::StatusOr<Corpus> ReadCorpus(const char* program, Arch arch) {
  const bool comparisons = absl::GetFlag(FLAGS_corpus) == kComparisons;
  auto corpus = Corpus::Read(
      {.pairs = comparisons
                    ? train::DataPath(program,
                                      "examples/word_to_symbol/comparisons.tsv")
                    : FileOf(FLAGS_corpus, program, "corpus.tsv"),
       .words = FileOf(FLAGS_words, program, "words.txt"),
       .symbols = FileOf(FLAGS_symbols, program, "symbols.txt")},
      arch);
  if (corpus.ok() && comparisons) {
    corpus->split =
        train::SplitBySeed(static_cast<int64_t>(corpus->pairs.size()), 0.2,
                           absl::GetFlag(FLAGS_seed));
  }
  return corpus;
}

std::vector<std::vector<int64_t>> Sources(const Corpus& corpus,
                                          const std::vector<int64_t>& part) {
  std::vector<std::vector<int64_t>> sources;
  for (const int64_t i : part) sources.push_back(corpus.pairs[i].source);
  return sources;
}

// What the model makes of each sentence, first those that it has not seen.
std::vector<train::ReportSample> Samples(const Corpus& corpus,
                                         const Translator& translator) {
  std::vector<train::ReportSample> samples;
  for (const auto* part : {&corpus.split.held_out, &corpus.split.train}) {
    const auto sources = Sources(corpus, *part);
    if (sources.empty()) continue;
    const auto predictions = translator.Translate(sources);
    for (size_t i = 0; i < sources.size(); ++i) {
      samples.push_back(
          {corpus.words.Decode(sources[i]),
           corpus.symbols.Decode(predictions[i]),
           corpus.symbols.Decode(corpus.pairs[(*part)[i]].target)});
    }
  }
  return samples;
}

// Prints sentence, prediction and, where it differs, what was wanted, and how
// many are right; `what` names the part of the corpus.
bool Evaluate(const Corpus& corpus, const Translator& translator,
              const std::vector<int64_t>& part, const std::string& what) {
  const auto predictions = translator.Translate(Sources(corpus, part));
  int64_t right = 0, symbols_right = 0, symbols = 0;
  for (size_t i = 0; i < part.size(); ++i) {
    const auto& [source, want] = corpus.pairs[part[i]];
    const auto& got = predictions[i];
    for (size_t t = 0; t < want.size(); ++t) {
      symbols_right += t < got.size() && got[t] == want[t];
    }
    symbols += static_cast<int64_t>(want.size());
    right += got == want;
    std::cout << corpus.words.Decode(source) << " -> "
              << corpus.symbols.Decode(got);
    if (got != want) {
      std::cout << "   (wanted " << corpus.symbols.Decode(want) << ")";
    }
    std::cout << "\n";
  }
  std::cout << absl::StrFormat("%saccuracy %d/%d sentences, %d/%d symbols\n",
                               what, right, part.size(), symbols_right,
                               symbols);
  return right == static_cast<int64_t>(part.size());
}

// The whole corpus, or both of its parts.
bool Evaluate(const Corpus& corpus, const Translator& translator) {
  const auto& [train, held_out] = corpus.split;
  if (held_out.empty()) return Evaluate(corpus, translator, train, "");
  const bool learned = Evaluate(corpus, translator, train, "training: ");
  std::cout << "\n";
  return Evaluate(corpus, translator, held_out, "held back: ") && learned;
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
  const absl::Status parsed =
      train::ParseRunCommandLine(argc, argv, kAbout, __FILE__);
  if (!parsed.ok()) return parsed;
  CompleteFlags();
  if (absl::Status s = CheckFlags(); !s.ok()) return s;
  SetNumThreads(static_cast<int>(absl::GetFlag(FLAGS_threads)));

  const Arch arch =
      absl::GetFlag(FLAGS_arch) == "seq2seq" ? Arch::kSeq2Seq : Arch::kEncoder;
  const auto corpus = ReadCorpus(argv[0], arch);
  if (!corpus.ok()) return corpus.status();
  Translator translator(*corpus,
                        {.d_model = absl::GetFlag(FLAGS_d_model),
                         .n_heads = absl::GetFlag(FLAGS_n_heads),
                         .n_layers = absl::GetFlag(FLAGS_n_layers),
                         .hidden = absl::GetFlag(FLAGS_hidden),
                         .dropout = *absl::GetFlag(FLAGS_dropout)},
                        absl::GetFlag(FLAGS_seed), arch,
                        absl::GetFlag(FLAGS_beam));

  const std::string sentence = absl::GetFlag(FLAGS_translate);
  std::vector<std::vector<int64_t>> shown;
  if (!sentence.empty()) {
    const auto ids = translator.Encode(sentence);
    if (!ids.ok()) return ids.status();
    shown = {*ids};
  } else {
    shown = Sources(*corpus, corpus->split.held_out.empty()
                                 ? corpus->split.train
                                 : corpus->split.held_out);
    std::cout << translator.store().Table() << "\n";
  }

  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  TrainOptions options = {.batch_size = absl::GetFlag(FLAGS_batch_size),
                          .lr = absl::GetFlag(FLAGS_lr),
                          .seed = seed,
                          .loop = train::LoopFlags(),
                          .recorder = train::RecorderFlags(seed)};
  options.loop.steps = *absl::GetFlag(FLAGS_steps);
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
