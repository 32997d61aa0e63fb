// A process that is killed while it saves leaves a whole checkpoint: the last
// that it said was safe, or a newer one.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "train/adam.h"
#include "train/checkpoint_keeper.h"
#include "train/files_testlib.h"

namespace wengert::train {
namespace {

class CheckpointKillTest : public FilesTest {};

struct Model {
  Model() : w(store.root().Zeros("w", {1 << 14})), optimizer(store) {}

  nn::ParameterStore store;
  Tensor w;
  AdamW optimizer;
  CheckpointInfo info;
};

// Goes on from the newest checkpoint for ever. All values are the step.
// Writes the number of each step that is safe to `report`.
[[noreturn]] void Train(const std::string& folder, int report) {
  Model run;
  const auto newest = NewestCheckpoint(folder);
  if (newest.ok()) {
    run.info = *LoadCheckpoint(*newest, {&run.store, &run.optimizer});
  }
  CheckpointKeeper keeper(folder, {.keep_last = 2});
  while (true) {
    const int64_t step = ++run.info.step;
    std::fill_n(run.w.mutable_data<float>(), run.w.size(),
                static_cast<float>(step));
    if (!keeper.Save({&run.store, &run.optimizer}, run.info).ok()) _exit(1);
    if (step % 3 == 0) {
      if (!keeper.Finish().ok()) _exit(1);
      if (write(report, &step, sizeof(step)) != sizeof(step)) _exit(1);
    }
  }
}

TEST_F(CheckpointKillTest, LeavesTheNewestWhole) {
  int64_t before = 0;
  for (int round = 0; round < 10; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(ends[0]);
      Train(folder_, ends[1]);
    }
    close(ends[1]);
    int64_t safe = 0, step;
    ASSERT_EQ(read(ends[0], &safe, sizeof(safe)), ssize_t{sizeof(safe)});
    usleep(1700 * round);  // at some moment of another save
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    while (read(ends[0], &step, sizeof(step)) == sizeof(step)) safe = step;
    close(ends[0]);

    EXPECT_GT(safe, before);
    const auto newest = NewestCheckpoint(folder_);
    ASSERT_TRUE(newest.ok()) << newest.status();
    Model run;
    const auto info = LoadCheckpoint(*newest, {&run.store, &run.optimizer});
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_GE(info->step, safe);
    const auto [low, high] = std::minmax_element(
        run.w.data<float>(), run.w.data<float>() + run.w.size());
    EXPECT_EQ(*low, static_cast<float>(info->step));
    EXPECT_EQ(*high, static_cast<float>(info->step));
    before = info->step;
  }
}

}  // namespace
}  // namespace wengert::train
