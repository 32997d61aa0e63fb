// What every model of the benchmarks keeps to: no memory from the system after
// the second step, and enough chunks for many cores.
#include "benchmarks/models.h"

#include <cstdint>
#include <string>

#include "autograd/parallel.h"
#include "benchmarks/loops.h"
#include "gtest/gtest.h"
#include "train/allocations_testlib.h"

namespace wengert::benchmarks {
namespace {

TEST(ModelsTest, TakeNothingFromTheSystemAfterTwoSteps) {
  if (!train::CountsAllocations()) GTEST_SKIP() << "a sanitizer allocates";
  for (const std::string name : {"toy", "small", "medium"}) {
    for (const bool checkpointing : {false, true}) {
      if (checkpointing && name == "toy") continue;
      SetNumThreads(2);
      const auto work = MakeWorkload(name, {.checkpointing = checkpointing});
      work->Step();
      work->Step();
      const int64_t before = train::SystemAllocations();
      work->Step();
      EXPECT_EQ(train::SystemAllocations() - before, 0)
          << name << (checkpointing ? " with checkpointing" : "");
    }
  }
}

// Sixteen cores find work in every parallel loop of the medium model.
TEST(ModelsTest, MediumHasSixteenChunksInEveryLoop) {
  SetNumThreads(1);
  const auto work = MakeWorkload("medium");
  const LoopTimes loops;
  work->Step();
  EXPECT_GT(loops.seconds().size(), 2u);
  for (const auto& [chunks, seconds] : loops.seconds()) {
    EXPECT_TRUE(chunks == 1 || chunks >= 16)
        << chunks << ", " << seconds << " s";
  }
}

}  // namespace
}  // namespace wengert::benchmarks
