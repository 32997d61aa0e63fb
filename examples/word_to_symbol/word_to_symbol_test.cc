// Runs the program as a person does: what it prints, writes and returns.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/program_testlib.h"

namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kProgram[] = "examples/word_to_symbol/word_to_symbol";
using Result = wengert::train::ProgramResult;

Result RunProgram(const std::string& flags,
                  const std::string& redirect = "2>&1",
                  const std::string& before = "") {
  return wengert::train::RunProgram(before + kProgram, flags, redirect);
}

std::string Temp(const std::string& name) {
  return ::testing::TempDir() + "/" + name;
}

std::string Write(const std::string& name, const std::string& text) {
  std::ofstream(Temp(name)) << text;
  return Temp(name);
}

void ExpectRefused(const std::string& flags, const std::string& named) {
  wengert::train::ExpectRefused(kProgram, flags, named);
}

TEST(WordToSymbol, LearnsTheNinePairs) {
  const Result r = RunProgram("");
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.out, StartsWith("parameter "));
  EXPECT_THAT(r.out, HasSubstr("embedding.weight "));
  EXPECT_THAT(r.out, HasSubstr("\nstep     1  loss 2."));
  EXPECT_THAT(r.out, HasSubstr("\none is one -> 1 = 1\n"));
  EXPECT_THAT(r.out, HasSubstr("\nnine is nine -> 9 = 9\n"));
  EXPECT_THAT(r.out, EndsWith("\naccuracy 9/9 sentences, 27/27 symbols\n"));
}

TEST(WordToSymbol, LearnsFromManySeedsAndSizes) {
  for (int seed = 2; seed <= 9; ++seed) {
    EXPECT_EQ(RunProgram("--seed=" + std::to_string(seed)).status, 0) << seed;
  }
  EXPECT_EQ(
      RunProgram("--d_model=16 --n_heads=4 --n_layers=2 --hidden=20").status,
      0);
  EXPECT_EQ(RunProgram("--batch_size=4 --dropout=0.1 --steps=600").status, 0);
}

TEST(WordToSymbol, Seq2SeqWritesTheSymbolsOneByOne) {
  for (int seed = 1; seed <= 3; ++seed) {
    const Result r =
        RunProgram("--arch=seq2seq --seed=" + std::to_string(seed));
    EXPECT_EQ(r.status, 0) << seed;
    EXPECT_THAT(r.out, EndsWith("\naccuracy 9/9 sentences, 27/27 symbols\n"));
    EXPECT_THAT(r.out, HasSubstr("\ntransformer.decoder.layers.0."
                                 "multihead_attn.in_proj_weight "));
  }
  EXPECT_EQ(RunProgram("--arch=seq2seq --beam=3 --translate='two is two'").out,
            "2 = 2\n");
}

// A fifth of the 81 statements is drawn by the seed and never learned from.
TEST(WordToSymbol, ReadsComparisonsThatItHasNotSeen) {
  for (int seed = 1; seed <= 20; ++seed) {
    // The slower of the two for a few.
    for (const std::string arch : {"encoder", "seq2seq"}) {
      if (arch == "seq2seq" && seed > 4) continue;
      const Result r = RunProgram("--corpus=comparisons --arch=" + arch +
                                  " --seed=" + std::to_string(seed));
      EXPECT_EQ(r.status, 0) << arch << " " << seed;
      EXPECT_THAT(r.out,
                  HasSubstr("\ntraining: accuracy 65/65 sentences, 195/195 "
                            "symbols\n"));
      EXPECT_THAT(r.out, EndsWith("\nheld back: accuracy 16/16 sentences, "
                                  "48/48 symbols\n"));
    }
  }
}

TEST(WordToSymbol, SaysWhatOfTheHeldBackIsWrong) {
  const Result r = RunProgram("--corpus=comparisons --steps=1");
  EXPECT_EQ(r.status, 1);
  const size_t parts = r.out.find("training: accuracy ");
  ASSERT_NE(parts, std::string::npos);
  EXPECT_THAT(r.out.substr(parts), HasSubstr("   (wanted "));
}

TEST(WordToSymbol, Seq2SeqTakesTargetsOfAnyLength) {
  const std::string path =
      Write("free.tsv",
            "one\t1\ntwo is two\t= =\nthree is\t3 3 3 3\nnine less\t9 <\n");
  const Result r = RunProgram("--arch=seq2seq --corpus=" + path);
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_THAT(r.out, EndsWith("accuracy 4/4 sentences, 9/9 symbols\n"));
}

TEST(WordToSymbol, SameSeedSameOutputForAnyThreads) {
  // Without the speed.
  const auto run = [](const std::string& flags) {
    return RunProgram(flags, "2>&1 | grep -v ' symbols/s '").out;
  };
  const std::string one = run("--seed=5");
  EXPECT_THAT(one, HasSubstr("loss"));
  EXPECT_EQ(one, run("--seed=5 --threads=3"));
  EXPECT_NE(one, run("--seed=6"));
  const std::string seq2seq = "--arch=seq2seq --corpus=comparisons --steps=50 ";
  EXPECT_EQ(run(seq2seq), run(seq2seq + "--threads=2"));
}

TEST(WordToSymbol, ExitsWithOneWhenItHasNotLearned) {
  const Result r = RunProgram("--steps=1");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.out, AllOf(HasSubstr("(wanted 1 = 1)"),
                           Not(HasSubstr("accuracy 9/9"))));
}

TEST(WordToSymbol, TranslatesASentence) {
  EXPECT_EQ(RunProgram("--translate='three is three'").out, "3 = 3\n");
  EXPECT_EQ(RunProgram("--translate='Seven is seven.'").out, "7 = 7\n");
  ExpectRefused("--translate='three is tree'", "\"tree\"");
  ExpectRefused("--translate='one is one is one'", "5 words");
  ExpectRefused("--translate='...'", "0 words");
}

TEST(WordToSymbol, ShowsAttention) {
  const std::string svg = Temp("attention.svg");
  const Result r = RunProgram("--attention --attention_svg=" + svg);
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.out, AllOf(HasSubstr("head 1"), HasSubstr("head 3"),
                           HasSubstr("wrote " + svg)));
  EXPECT_THAT(r.out, EndsWith("accuracy 9/9 sentences, 27/27 symbols\n"));
  std::stringstream text;
  text << std::ifstream(svg).rdbuf();
  EXPECT_THAT(text.str(), AllOf(HasSubstr("<svg"), HasSubstr("one is one"),
                                HasSubstr("nine is nine"), HasSubstr("head 3"),
                                HasSubstr("</svg>")));
  // Rows are what is written, columns what is read.
  EXPECT_THAT(
      RunProgram("--attention --arch=seq2seq --translate='two is two' "
                 "--attention_svg=" +
                 svg)
          .out,
      AllOf(HasSubstr("(end)"), HasSubstr("head 3"), EndsWith("2 = 2\n")));
  const Result unwritable =
      RunProgram("--attention --translate=one --attention_svg=/nowhere/a.svg",
                 "2>&1 >/dev/null");
  EXPECT_EQ(unwritable.status, 2);
  EXPECT_THAT(unwritable.out, HasSubstr("/nowhere/a.svg"));
}

TEST(WordToSymbol, HelpExplainsEveryFlag) {
  const Result r = RunProgram("--help");
  EXPECT_EQ(r.status, 0);
  for (const char* flag :
       {"seed",    "steps",     "batch_size", "lr",
        "d_model", "n_heads",   "n_layers",   "hidden",
        "dropout", "corpus",    "words",      "symbols",
        "threads", "translate", "attention",  "attention_svg",
        "run_dir", "resume",    "log_every",  "checkpoint_every",
        "seconds", "quiet",     "arch",       "beam"}) {
    EXPECT_THAT(r.out, HasSubstr(std::string("  --") + flag + "  "));
  }
}

TEST(WordToSymbol, RefusesWrongFlags) {
  ExpectRefused("--step=3", "--steps");
  ExpectRefused("--steps=many", "--steps=many");
  ExpectRefused("--steps=0", "--steps=0");
  ExpectRefused("--steps=-5", "--steps=-5");
  ExpectRefused("--n_heads=5", "--n_heads=5");
  ExpectRefused("--dropout=1.5", "--dropout=1.5");
  ExpectRefused("--lr=nan", "--lr=nan");
  ExpectRefused("--threads=0", "--threads=0");
  ExpectRefused("--threads=4294967297", "--threads=4294967297");
  ExpectRefused("--d_model=1000000 --n_heads=1", "--d_model=1000000");
  ExpectRefused("--hidden=9223372036854775807", "--hidden=9223372036854775807");
  ExpectRefused("--n_layers=1000000000000", "--n_layers=1000000000000");
  ExpectRefused("--arch=decoder", "--arch=decoder: wanted encoder or seq2seq");
  ExpectRefused("--arch=seq2seq --beam=0", "--beam=0");
  ExpectRefused("--beam=2", "--beam=2 goes with --arch=seq2seq");
  ExpectRefused("--corpus=comparison", "comparison");
  ExpectRefused("one is one", "\"one\"");
  ExpectRefused("--log_every=0", "--log_every=0");
  ExpectRefused("--checkpoint_seconds=nan", "--checkpoint_seconds=nan");
  ExpectRefused("--keep_checkpoints=0", "--keep_checkpoints=0");
}

// What differs between two runs, of the metrics but for the times. The two
// columns of times stand last.
std::string Difference(const std::string& a, const std::string& b) {
  const auto rows = [](const std::string& folder) {
    return "<(rev " + folder + "/metrics.csv | cut -d, -f3- | rev)";
  };
  return wengert::train::RunProgram("bash",
                                    "-c 'diff " + rows(a) + " " + rows(b) + "'")
      .out;
}

// Nothing of what it prints may end in the run's files.
TEST(WordToSymbol, RunsWhereStandardFilesAreClosed) {
  const std::string run = Temp("closed");
  RunProgram("--steps=30 --run_dir=" + run, "<&- >&- 2>&-");
  const Result again = RunProgram("--resume=" + run);
  EXPECT_THAT(again.out, HasSubstr("resumed at step 30"));
}

TEST(WordToSymbol, RecordsARunAndGoesOnWithIt) {
  const std::string whole = Temp("whole"), parts = Temp("parts");
  const std::string flags = "--dropout=0.1 --batch_size=4 --steps=600 ";
  EXPECT_EQ(RunProgram(flags + "--run_dir=" + whole).status, 0);
  for (const char* file : {"config.json", "metrics.csv", "metrics.jsonl",
                           "checkpoints/step-000000600.safetensors"}) {
    EXPECT_TRUE(std::filesystem::exists(whole + "/" + file)) << file;
  }
  // Stopped by a budget of time; --resume alone knows the flags.
  Result r = RunProgram(flags + "--seconds=1e-4 --run_dir=" + parts);
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(
      r.out,
      AllOf(HasSubstr("by its budget; to go on: --resume=" + parts + "\n"),
            Not(HasSubstr("accuracy"))));
  r = RunProgram("--seconds=0 --resume=" + parts);
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.out, AllOf(HasSubstr("resumed at step "),
                           HasSubstr("changed: --seconds is 0"),
                           EndsWith("27/27 symbols\n")));
  EXPECT_EQ(Difference(whole, parts), "");
  // It is over; asked again it says the same.
  EXPECT_THAT(RunProgram("--resume=" + parts).out,
              AllOf(HasSubstr("resumed at step 600, where the run ends"),
                    EndsWith("27/27 symbols\n")));
  // Flags that were changed hold from then on.
  r = RunProgram("--steps=700 --seconds=1e-4 --resume=" + parts);
  EXPECT_THAT(r.out, HasSubstr("changed: --steps is 700, was 600"));
  r = RunProgram("--seconds=0 --resume=" + parts);
  EXPECT_THAT(r.out, HasSubstr("step   700  loss"));
  ExpectRefused("--translate=one --run_dir=" + parts, "holds a run already");
  ExpectRefused("--resume=/nowhere", "/nowhere: holds no run to resume");
  ExpectRefused("--resume=" + parts + " --run_dir=" + whole, "one of them");
  ExpectRefused("--translate=one --seed=2 --resume=" + parts,
                "has seed 1, not 2");
  Write("parts/config.json", R"({"seed": 1, "flags": {"steps": "many"}})");
  ExpectRefused("--resume=" + parts, "many is not a value for --steps");
}

// With another model and a corpus of which a part is held back.
TEST(WordToSymbol, GoesOnWithASeq2SeqRun) {
  const std::string whole = Temp("whole2"), parts = Temp("parts2");
  const std::string flags =
      "--arch=seq2seq --corpus=comparisons --beam=2 --steps=400 --run_dir=";
  const Result r = RunProgram(flags + whole);
  EXPECT_TRUE(std::filesystem::exists(
      whole + "/checkpoints/step-000000400.safetensors"));
  EXPECT_THAT(RunProgram(flags + parts + " --seconds=1e-4").out,
              HasSubstr("to go on: --resume=" + parts));
  const Result resumed = RunProgram("--seconds=0 --resume=" + parts);
  EXPECT_THAT(resumed.out, HasSubstr("resumed at step "));
  EXPECT_EQ(resumed.status, r.status);
  EXPECT_EQ(Difference(whole, parts), "");
  const auto last_line = [](const std::string& out) {
    return out.substr(out.rfind("held back: "));
  };
  EXPECT_EQ(last_line(resumed.out), last_line(r.out));
  ExpectRefused("--translate=one --arch=encoder --beam=1 --resume=" + parts,
                "the store has no 'words.weight'");
}

TEST(WordToSymbol, CtrlCSavesAndSaysHowToGoOn) {
  for (const std::string signal : {"INT", "TERM"}) {
    const std::string folder = Temp("signal" + signal);
    const Result r =
        RunProgram("--steps=100000000 --run_dir=" + folder, "2>&1",
                   "timeout --preserve-status -s " + signal + " 2 ");
    EXPECT_EQ(r.status, signal == "INT" ? 130 : 143) << r.out;
    EXPECT_THAT(r.out, AllOf(HasSubstr("by SIG" + signal +
                                       "; to go on: --resume=" + folder),
                             Not(HasSubstr("accuracy"))));
  }
}

TEST(WordToSymbol, RefusesWrongFilesWithLineAndColumn) {
  ExpectRefused("--corpus=/nowhere.tsv", "/nowhere.tsv");
  ExpectRefused("--corpus=" + ::testing::TempDir(), ::testing::TempDir());
  std::string path =
      Write("word.tsv", "one is one\t1 = 1\none is zero\t1 = 1\n");
  ExpectRefused("--corpus=" + path, path + ":2:8: ");
  path = Write("columns.tsv", "one is one\t1 = 1\t1\n");
  ExpectRefused("--corpus=" + path, path + ":1:");
  path = Write("length.tsv", "one is one\t1 =\n");
  ExpectRefused("--corpus=" + path, "3 words against 2 symbols");
  path = Write("bytes.tsv", "one is one\t1 = \xff\n");
  ExpectRefused("--corpus=" + path, path + ":1:16: ");
  path = Write("symbol.tsv", "# one\n\none is one\t1 = one\n");
  ExpectRefused("--corpus=" + path, path + ":3:16: ");
  path = Write("tab.tsv", "one is one\n");
  ExpectRefused("--corpus=" + path, path + ":1:11: 1 column, no tab");
  path = Write("source.tsv", "one\t1\n\t1\n");
  ExpectRefused("--corpus=" + path, path + ":2:1: no source");
  path = Write("target.tsv", "one\t1\none \t \n");
  ExpectRefused("--corpus=" + path, path + ":2:6: no target");
  path = Write("nothing.tsv", "# no pairs\n\n");
  ExpectRefused("--corpus=" + path, path + ":2:1: the file has no sentence");
  path = Write("words.txt", "one\none\n");
  ExpectRefused("--words=" + path, path + ":2:");
}

// As an editor on Windows leaves it: a byte-order mark, CRLF, and no end of the
// last line.
TEST(WordToSymbol, TakesFilesAsEditorsWriteThem) {
  const std::string words = Write("words.txt", "\xEF\xBB\xBFone\r\ntwo\r\n");
  const std::string symbols = Write("symbols.txt", "1\r\n2");
  const std::string pairs =
      Write("pairs.tsv",
            "\xEF\xBB\xBF# a comment\r\n\r\none two\t1 2\r\n# another\r\n"
            "two\t2");
  const Result r = RunProgram("--corpus=" + pairs + " --words=" + words +
                              " --symbols=" + symbols);
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_THAT(r.out, EndsWith("one two -> 1 2\ntwo -> 2\n"
                              "accuracy 2/2 sentences, 3/3 symbols\n"));
}

TEST(WordToSymbol, LearnsACorpusOfSeveralLengths) {
  const std::string path = Write(
      "mixed.tsv",
      "# statements\none less two\t1 < 2\nthree\t3\n\nnine more one\t9 > 1\n"
      "two is\t2 =\n");
  const Result r = RunProgram("--corpus=" + path);
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_THAT(r.out, EndsWith("accuracy 4/4 sentences, 9/9 symbols\n"));
}

}  // namespace
