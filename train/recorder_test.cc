#include "train/recorder.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autograd/parallel.h"
#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/files_testlib.h"
#include "train/loop_testlib.h"
#include "train/sgd.h"

namespace wengert::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// What a run leaves: its parameters and its rows, but for the times.
struct Outcome {
  std::vector<Tensor> values;
  std::string rows;
  absl::Status status;
  LoopEnd end;
  int64_t step;
  std::string told;  // on standard error
};

class RecorderTest : public FilesTest {
 protected:
  // The metrics without the columns of times, which stand last.
  std::string Rows(const std::string& folder) const {
    const std::vector<std::string> lines =
        absl::StrSplit(Contents(Path(folder) + "/metrics.csv"), '\n');
    const size_t times = lines[0].find(",time/");
    if (times == std::string::npos) return "";  // no row yet
    const int64_t n =
        std::count(lines[0].begin(), lines[0].begin() + times, ',') + 1;
    std::vector<std::string> rows;
    for (const std::string& line : lines) {
      std::vector<std::string> fields = absl::StrSplit(line, ',');
      fields.resize(n);
      rows.push_back(absl::StrJoin(fields, ","));
    }
    rows.pop_back();  // behind the last line's end
    return absl::StrJoin(rows, "\n");
  }

  // A run of 40 steps, or less with a budget, in which some are not finite.
  Outcome Train(const std::string& folder, bool resume, int64_t budget = 0,
                RecorderOptions options = {}) {
    SmallRun run;
    options.run_dir = Path(folder);
    options.resume = resume;
    options.log_every = 4;
    options.progress = ProgressOptions::kQuiet;
    Loop loop(run.parts(), {.steps = 40,
                            .step_budget = budget,
                            .accumulate = 2,
                            .clip_norm = 0.5,
                            .schedule_name = "constant",
                            .evaluate_every = 6});
    Outcome outcome;
    ::testing::internal::CaptureStderr();
    {
      const auto recorder = Recorder::Open(loop, options);
      outcome.status = recorder.status();
      if (recorder.ok()) {
        const auto end = loop.Run(
            [&](auto rows) {
              const int64_t step = loop.state().step;
              run.bias = step == 10 || step == 11 || step == 25
                             ? std::numeric_limits<double>::infinity()
                             : 0;
              return run.Loss(rows);
            },
            [&] {
              run.bias = 0;
              return std::vector<Metric>{
                  {"eval/loss", run.Loss({0, 5, 9}).loss.item()}};
            });
        outcome.status = (*recorder)->Finish(end);
        if (end.ok()) outcome.end = *end;
      }
    }
    outcome.told = ::testing::internal::GetCapturedStderr();
    outcome.step = loop.state().step;
    for (const Parameter* p : run.store.parameters()) {
      outcome.values.push_back(p->value.Clone());
    }
    if (outcome.status.ok()) outcome.rows = Rows(folder);
    return outcome;
  }

  static void ExpectSame(const Outcome& a, const Outcome& b) {
    EXPECT_EQ(a.rows, b.rows);
    ASSERT_EQ(a.values.size(), b.values.size());
    for (size_t i = 0; i < a.values.size(); ++i) {
      EXPECT_TRUE(SameBits(a.values[i], b.values[i])) << i;
    }
  }
};

TEST_F(RecorderTest, LeavesEverythingOfARun) {
  const Outcome run = Train("a", false);
  ASSERT_TRUE(run.status.ok()) << run.status;
  const std::vector<std::string> rows = absl::StrSplit(run.rows, '\n');
  EXPECT_EQ(rows[0], "step,epoch,loss,lr,grad_norm,skipped,tokens,eval/loss");
  std::vector<std::string> steps;
  for (const std::string& row : rows) {
    steps.push_back(row.substr(0, row.find(',')));
  }
  EXPECT_THAT(steps, ElementsAre("step", "4", "6", "8", "12", "16", "18", "20",
                                 "24", "28", "30", "32", "36", "40"));
  EXPECT_THAT(rows[4], HasSubstr(",inf,2,"));  // of step 12, which was skipped
  EXPECT_TRUE(std::filesystem::exists(Path("a/config.json")));
  EXPECT_TRUE(std::filesystem::exists(
      Path("a/checkpoints/step-000000040.safetensors")));
  EXPECT_THAT(run.told,
              AllOf(HasSubstr("step 11: loss inf, gradient norm inf: skipped "
                              "(1 so far)"),
                    HasSubstr("step 26: "), Not(HasSubstr("step 12: "))));
}

TEST_F(RecorderTest, AResumedRunIsTheRunThatWasNeverStopped) {
  const Outcome whole = Train("whole", false);
  ASSERT_EQ(whole.step, 40);
  for (const int64_t stop : {1, 5, 6, 11, 12, 17, 39}) {
    const std::string folder = absl::StrCat("stopped", stop);
    SetNumThreads(2);
    const Outcome first = Train(folder, false, stop);
    EXPECT_EQ(first.step, stop);
    EXPECT_THAT(first.told,
                HasSubstr(absl::StrCat(
                    "stopped after step ", stop,
                    " by its budget; to go on: --resume=", Path(folder))));
    SetNumThreads(1);
    const Outcome second = Train(folder, true, 8);
    const Outcome third = Train(folder, true);
    EXPECT_EQ(third.step, 40);
    ExpectSame(third, whole);
  }
}

// A run that was killed has rows after its last checkpoint.
TEST_F(RecorderTest, RowsAfterTheCheckpointAreCut) {
  const Outcome whole = Train("whole", false);
  Train("cut", false, 22, {.checkpoint_every = 7});
  // Each best of the evaluations is saved too; leave one of step 21 at most.
  std::filesystem::remove(Path("cut/checkpoints/step-000000022.safetensors"));
  ASSERT_THAT(Rows("cut"), HasSubstr("\n20,"));
  const auto newest = NewestCheckpoint(Path("cut/checkpoints"));
  ASSERT_TRUE(newest.ok());
  EXPECT_THAT(*newest, HasSubstr("step-000000021"));
  std::filesystem::remove(*newest);  // and go back behind the row of step 20
  const Outcome resumed = Train("cut", true);
  EXPECT_EQ(resumed.step, 40);
  ExpectSame(resumed, whole);
}

TEST_F(RecorderTest, KeepsTheBestAndTheLast) {
  Train("a", false, 0, {.checkpoint_every = 5, .keep_checkpoints = 2});
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(Path("a/checkpoints"))) {
    names.push_back(entry.path().filename());
  }
  EXPECT_LE(names.size(), 3u);
  EXPECT_THAT(names, ::testing::Contains("step-000000040.safetensors"));
  EXPECT_TRUE(
      BestCheckpoint(Path("a/checkpoints"), {.best_metric = "eval/loss"}).ok());
}

TEST_F(RecorderTest, ARunWithoutACheckpointBeginsAnew) {
  const Outcome whole = Train("whole", false);
  Train("b", false, 5);
  std::filesystem::remove_all(Path("b/checkpoints"));
  const Outcome resumed = Train("b", true);
  ExpectSame(resumed, whole);
}

TEST_F(RecorderTest, TellsWhichCheckpointItPassesOver) {
  const Outcome whole = Train("whole", false);
  Train("a", false, 14, {.checkpoint_every = 7});
  File("a/checkpoints/step-000000014.safetensors", "not one");
  const Outcome resumed = Train("a", true);
  EXPECT_THAT(resumed.told,
              AllOf(HasSubstr("step-000000014.safetensors: is no"),
                    HasSubstr("; passed over\n")));
  ExpectSame(resumed, whole);
}

TEST_F(RecorderTest, RefusesWhatItCannotResume) {
  EXPECT_THAT(std::string(Train("none", true).status.message()),
              HasSubstr("holds no run to resume"));
  Train("a", false, 5);
  const std::string rows = Rows("a");
  const std::string config = Contents(Path("a/config.json"));
  EXPECT_THAT(std::string(Train("a", false).status.message()),
              HasSubstr("holds a run already"));
  EXPECT_THAT(std::string(Train("a", true, 0, {.seed = 3}).status.message()),
              HasSubstr("has seed 0, not 3"));
  File("a/checkpoints/step-000000005.safetensors", "not one");
  const Outcome broken = Train("a", true);
  EXPECT_FALSE(broken.status.ok());
  EXPECT_EQ(broken.step, 0);
  EXPECT_EQ(Rows("a"), rows);
  // Nor do the flags of a try that failed count from then on.
  EXPECT_EQ(Contents(Path("a/config.json")), config);
  File("under", "a file");
  EXPECT_FALSE(Train("under/a", false).status.ok());
}

// The disk is full from the start of the run: one line each for the rows, the
// events and the checkpoint, and the training goes on as if nothing had been.
TEST_F(RecorderTest, AFullDiskHarmsTheFilesAlone) {
  const Outcome whole = Train("whole", false);
  Outcome run;
  {
    const FullDisk full(  // the configuration fits
        std::filesystem::file_size(Path("whole/config.json")) + 100);
    run = Train("full", false);
  }
  EXPECT_FALSE(run.status.ok());
  EXPECT_THAT(std::string(run.status.message()),
              HasSubstr("step-000000040.safetensors"));
  EXPECT_EQ(run.step, 40);
  for (size_t i = 0; i < run.values.size(); ++i) {
    EXPECT_TRUE(SameBits(run.values[i], whole.values[i])) << i;
  }
}

TEST_F(RecorderTest, CheckpointsThatFailInARowAreToldOnce) {
  const FullDisk full(2000);  // the configuration fits
  const Outcome run = Train("full", false, 0, {.checkpoint_every = 1});
  EXPECT_THAT(std::string(run.status.message()),
              HasSubstr("step-000000040.safetensors"));
  const std::string fault = ".safetensors: cannot be written";
  const size_t first = run.told.find(fault);
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(run.told.find(fault, first + 1), std::string::npos) << run.told;
}

// Also where it fails before anything is written.
TEST_F(RecorderTest, ReturnsThatTheLastCheckpointFailed) {
  SmallRun run;
  run.store.root().Ones("optimizer.w", {1});
  Sgd sgd(run.store, {.lr = 0.1});
  Loop loop({&run.store, &sgd, &run.generator, &run.batches}, {.steps = 4});
  const auto recorder =
      Recorder::Open(loop, {.run_dir = Path("a"),
                            .checkpoint_every = 2,
                            .progress = ProgressOptions::kQuiet});
  ASSERT_TRUE(recorder.ok());
  ::testing::internal::CaptureStderr();
  const auto end = loop.Run([&](auto rows) { return run.Loss(rows); });
  EXPECT_THAT(std::string((*recorder)->Finish(end).message()),
              HasSubstr("step-000000004.safetensors: cannot be written: the"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("step-000000002.safetensors: cannot be written: the"));
}

TEST_F(RecorderTest, AVanishedFolderHarmsTheFilesAlone) {
  SmallRun run;
  Loop loop(run.parts(), {.steps = 20});
  const auto recorder =
      Recorder::Open(loop, {.run_dir = Path("gone"),
                            .log_every = 1,
                            .progress = ProgressOptions::kQuiet});
  ASSERT_TRUE(recorder.ok());
  loop.OnStep([&](const StepInfo& info) {
    if (info.step == 10) std::filesystem::remove_all(Path("gone"));
  });
  ::testing::internal::CaptureStderr();
  const auto end = loop.Run([&](auto rows) { return run.Loss(rows); });
  const absl::Status status = (*recorder)->Finish(end);
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(loop.state().step, 20);
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("gone")));
  EXPECT_LE(std::count(told.begin(), told.end(), '\n'), 3) << told;
}

TEST_F(RecorderTest, SaysHowToGoOnAfterASignal) {
  const std::pair<int, std::string> signals[] = {
      {SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}};
  for (const auto& [signal, name] : signals) {
    SmallRun run;
    Loop loop(run.parts(), {.steps = 20});
    const auto recorder = Recorder::Open(
        loop, {.run_dir = Path(name), .progress = ProgressOptions::kQuiet});
    loop.OnStep([signal = signal](const StepInfo& info) {
      if (info.step == 7) raise(signal);
    });
    ::testing::internal::CaptureStderr();
    const auto end = loop.Run([&](auto rows) { return run.Loss(rows); });
    EXPECT_TRUE((*recorder)->Finish(end).ok());
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              absl::StrCat("stopped after step 7 by ", name,
                           "; to go on: --resume=", Path(name), "\n"));
    EXPECT_THAT(*NewestCheckpoint(Path(name + "/checkpoints")),
                HasSubstr("step-000000007"));
  }
}

TEST_F(RecorderTest, WithoutAFolderItWritesNothing) {
  SmallRun run;
  Loop loop(run.parts(), {.steps = 3, .step_budget = 2});
  const auto recorder =
      Recorder::Open(loop, {.progress = ProgressOptions::kQuiet});
  ::testing::internal::CaptureStderr();
  const auto end = loop.Run([&](auto rows) { return run.Loss(rows); });
  EXPECT_TRUE((*recorder)->Finish(end).ok());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("without --run_dir nothing was saved"));
}

// A run that went wrong stays as its last checkpoint has it.
TEST_F(RecorderTest, ReturnsTheRunsOwnError) {
  SmallRun run;
  run.bias = std::numeric_limits<double>::infinity();
  Loop loop(run.parts(), {.steps = 20, .max_skipped = 2});
  const auto recorder = Recorder::Open(
      loop, {.run_dir = Path("a"), .progress = ProgressOptions::kQuiet});
  ::testing::internal::CaptureStderr();
  const auto end = loop.Run([&](auto rows) { return run.Loss(rows); });
  EXPECT_EQ((*recorder)->Finish(end), end.status());
  ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(
      absl::IsNotFound(NewestCheckpoint(Path("a/checkpoints")).status()));
}

TEST_F(RecorderTest, RefusesOptionsOutOfRange) {
  SmallRun run;
  Loop loop(run.parts(), {.steps = 3});
  EXPECT_EQ(ErrorOf([&] { (void)Recorder::Open(loop, {.log_every = 0}); }),
            "Recorder: log_every is 0; wanted 1 or more");
  EXPECT_THAT(
      ErrorOf([&] { (void)Recorder::Open(loop, {.keep_checkpoints = 0}); }),
      HasSubstr("keep_checkpoints"));
}

}  // namespace
}  // namespace wengert::train
