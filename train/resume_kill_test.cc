// A run that is killed again and again, at any moment, also while it saves,
// and resumed each time, ends with the bits of the run that was never stopped:
// parameters, losses and rows of metrics.
//
// 10 kills, or as many as WENGERT_KILLS says: `bazel test
// //train:resume_200_kills` takes its time.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "train/files_testlib.h"
#include "train/loop_testlib.h"
#include "train/recorder.h"

namespace wengert::train {
namespace {

constexpr int64_t kSteps = 600;

// Trains to the end in the folder, and ends the process.
[[noreturn]] void Train(const std::string& folder, bool resume) {
  SmallRun run;
  Loop loop(run.parts(), {.steps = kSteps, .evaluate_every = 50});
  const auto recorder =
      Recorder::Open(loop, {.run_dir = folder,
                            .resume = resume,
                            .log_every = 3,
                            .checkpoint_every = 7,
                            .progress = ProgressOptions::kQuiet});
  if (!recorder.ok()) {
    fprintf(stderr, "%s\n", recorder.status().ToString().c_str());
    _exit(1);
  }
  const auto end = loop.Run(
      [&](auto rows) {
        usleep(100);
        run.bias = loop.state().step % 90 == 89 ? std::nan("") : 0;
        return run.Loss(rows);
      },
      [&] {
        run.bias = 0;
        return std::vector<Metric>{
            {"eval/loss", run.Loss({1, 4, 7}).loss.item()}};
      });
  _exit((*recorder)->Finish(end).ok() && end.ok() && end->complete() ? 0 : 1);
}

class ResumeKillTest : public FilesTest {
 protected:
  // Whether it came to its end before it was killed.
  bool TrainFor(const std::string& folder, bool resume, int64_t microseconds) {
    const pid_t child = fork();
    if (child == 0) Train(folder, resume);
    int status = 0;
    if (microseconds < 0) {
      waitpid(child, &status, 0);
    } else {
      usleep(microseconds);
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
    }
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFEXITED(status);
  }

  // The rows, less the times, which stand last.
  std::string Rows(const std::string& folder) {
    std::string rows;
    for (const auto line : absl::StrSplit(Contents(folder + "/metrics.jsonl"),
                                          '\n', absl::SkipEmpty())) {
      absl::StrAppend(&rows, line.substr(0, line.find(",\"time/")), "\n");
    }
    return rows;
  }

  // The tensors of the last checkpoint: parameters and optimizer's state.
  std::string LastState(const std::string& folder) {
    SmallRun run;
    const auto info =
        LoadCheckpoint(*NewestCheckpoint(folder + "/checkpoints"), run.parts());
    EXPECT_TRUE(info.ok()) << info.status();
    std::string bytes;
    EXPECT_EQ(run.generator.offset(), static_cast<uint64_t>(kSteps));
    for (const auto& [name, entry] : run.optimizer.State().parameters) {
      absl::StrAppend(&bytes, name, entry.step);
      for (const auto& [kind, tensor] : entry.tensors) Append(tensor, bytes);
    }
    for (const Parameter* p : run.store.parameters()) Append(p->value, bytes);
    return bytes;
  }

  static void Append(const Tensor& x, std::string& bytes) {
    bytes.append(static_cast<const char*>(x.impl()->data),
                 x.size() * ByteSize(x.dtype()));
  }
};

TEST_F(ResumeKillTest, EndsWithTheBitsOfTheRunThatWasNeverStopped) {
  const char* const wanted = std::getenv("WENGERT_KILLS");
  const int64_t n_kills = wanted ? std::atoi(wanted) : 10;
  ASSERT_TRUE(TrainFor(Path("whole"), false, -1));
  const std::string rows = Rows(Path("whole")),
                    state = LastState(Path("whole"));
  ASSERT_EQ(std::count(rows.begin(), rows.end(), '\n'), kSteps / 3 + 8);

  std::mt19937 random(1);
  int64_t kills = 0, runs = 0;
  while (kills < n_kills) {
    const std::string folder = Path(absl::StrCat("run", ++runs));
    // Until the folder is that of a run, there is nothing to resume.
    const auto begun = [&] {
      return std::filesystem::exists(folder + "/config.json");
    };
    int64_t longest = 30000;
    while (!TrainFor(folder, begun(), random() % longest)) {
      ++kills;
      longest += 2000;  // an end comes, however slow the machine is
    }
    ASSERT_FALSE(HasFailure()) << "after " << kills << " kills";
    EXPECT_EQ(Rows(folder), rows);
    EXPECT_TRUE(LastState(folder) == state);
    std::filesystem::remove_all(folder);
  }
  RecordProperty("kills", static_cast<int>(kills));
  RecordProperty("runs", static_cast<int>(runs));
}

}  // namespace
}  // namespace wengert::train
