#include "examples/word_to_symbol/translator.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "train/allocations_testlib.h"

namespace wengert {
namespace {

TEST(Translator, TheSecondStepAllocatesNothingFromTheSystem) {
  if (!train::CountsAllocations()) GTEST_SKIP() << "a sanitizer allocates";
  const auto corpus = Corpus::Read({"examples/word_to_symbol/corpus.tsv",
                                    "examples/word_to_symbol/words.txt",
                                    "examples/word_to_symbol/symbols.txt"});
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  for (const Arch arch : {Arch::kEncoder, Arch::kSeq2Seq}) {
    Translator translator(*corpus, {.dropout = 0.1}, 1, arch);
    std::vector<int64_t> counts;
    counts.reserve(100);
    const auto end = translator.Train(
        {.loop = {.steps = 20},
         .recorder = {.progress = train::ProgressOptions::kQuiet}},
        [&](const train::StepInfo&, train::Recorder&) {
          counts.push_back(train::SystemAllocations());
        });
    ASSERT_TRUE(end.ok()) << end.status();
    ASSERT_EQ(counts.size(), 20u);
    for (size_t step = 1; step < 19; ++step) {  // the last one is evaluated
      EXPECT_EQ(counts[step] - counts[step - 1], 0) << "step " << step + 1;
    }
  }
}

}  // namespace
}  // namespace wengert
