// Checkpoints that are written while training goes on, and which of them stay.
//
//   CheckpointKeeper keeper("run/checkpoints", {.best_metric = "loss"});
//   keeper.Save(run, info);                   // every so many steps
//   keeper.Finish();                          // at the end
//   NewestCheckpoint("run/checkpoints");      // to resume from
#ifndef WENGERT_TRAIN_CHECKPOINT_KEEPER_H_
#define WENGERT_TRAIN_CHECKPOINT_KEEPER_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/tensor.h"
#include "train/checkpoint.h"

namespace wengert::train {

struct CheckpointKeeperOptions {
  int keep_last = 3;  // those of the highest steps
  // The checkpoint with the best of this metric stays too; of equal ones the
  // first. Empty: none does.
  std::string best_metric = {};
  bool lower_is_better = true;
};

class CheckpointKeeper {
 public:
  // Makes the folder if there is none, and counts what is in it as kept. Throws
  // Error unless keep_last >= 1.
  explicit CheckpointKeeper(std::string folder,
                            CheckpointKeeperOptions options = {});
  // Waits until the last checkpoint is written.
  ~CheckpointKeeper();
  CheckpointKeeper(const CheckpointKeeper&) = delete;
  CheckpointKeeper& operator=(const CheckpointKeeper&) = delete;

  // Copies the run and returns; a thread writes the copy to
  // folder/step-STEP.safetensors and then removes what is not kept any more.
  // There is one copy: while the one before is being written this waits, so
  // that a slow disk slows the run down and costs it neither memory nor a
  // checkpoint. Returns the first error since the last call, which is one of
  // the checkpoints before; this one's is the next call's. Nothing was removed
  // then, and the run may go on.
  // To be called between steps, on one thread.
  absl::Status Save(const TrainingRun& run, const CheckpointInfo& info);

  // Waits until all is written; returns the first error since the last call.
  absl::Status Finish();

 private:
  void Work();
  void Write();
  void Prune();
  void Copy(CheckpointContents contents);
  void Report(const absl::Status& status);
  absl::Status TakeStatus();

  const std::string folder_;
  const CheckpointKeeperOptions options_;

  // The copy. Whoever waited until `busy_` was false may write it, and the
  // thread reads it while it is true.
  std::vector<Tensor> buffers_;  // used again and again
  CheckpointContents pending_;
  CheckpointInfo pending_info_;
  std::map<int64_t, CheckpointInfo> kept_;  // by step; for Write alone

  std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;      // there is a copy to write
  bool stopping_ = false;  // no more will come
  absl::Status status_;    // the first error that nobody has seen
  std::thread thread_;     // where none could be started, Save writes
};

// The path of the checkpoint in the folder that has the highest step and is
// whole. NotFound where there is none at all; else the last error. What is
// wrong with others goes into `passed_over`.
absl::StatusOr<std::string> NewestCheckpoint(
    const std::string& folder,
    std::vector<absl::Status>* passed_over = nullptr);

// Likewise of the one with the best metric, as a keeper keeps it.
absl::StatusOr<std::string> BestCheckpoint(
    const std::string& folder, const CheckpointKeeperOptions& options);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_CHECKPOINT_KEEPER_H_
