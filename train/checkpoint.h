// Checkpoints: all that a training run needs to go on as if it had not stopped,
// in one safetensors file that other programs read too.
//
// Parameters stand under their own names, a tied one once, under its first
// name. The optimizer's state of a parameter stands beside it, as
// "optimizer.m.NAME", and its moving average as "average.weights.NAME"; all
// that is no tensor in the file's metadata: "step", "generator.seed",
// "optimizer.options.lr", "metrics.loss" and the like.
#ifndef WENGERT_TRAIN_CHECKPOINT_H_
#define WENGERT_TRAIN_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/random.h"
#include "nn/parameter_store.h"
#include "train/batch_stream.h"
#include "train/optimizer.h"
#include "train/safetensors.h"
#include "train/weight_average.h"

namespace wengert::train {

// The parts of a run that a checkpoint restores. Only the parameters must be
// there.
struct TrainingRun {
  nn::ParameterStore* parameters = nullptr;
  Optimizer* optimizer = nullptr;
  Generator* generator = nullptr;
  BatchStream* batches = nullptr;
  WeightAverage* average = nullptr;
};

// What else it keeps.
struct CheckpointInfo {
  int64_t step = 0;  // updates so far
  // Of the batches that steps have consumed; a stream that is read ahead of
  // them is further on.
  std::optional<BatchStream::State> cursor = {};
  std::string schedule =
      {};                   // in words, to compare with what a resumed run has
  std::string config = {};  // all flags, say
  std::map<std::string, double> metrics =
      {};  // and counters; any number comes back
};

struct LoadOptions {
  // All parameters must be in the file, and the file must have no others. If
  // not, those that are missing keep their values and others are passed over;
  // shapes and dtypes must fit all the same.
  bool strict = true;
  // Round float64 to float32. What float32 holds exactly is always taken.
  bool round = false;
  // Names in the file that begin with the first go by that of the second; the
  // first rule that fits holds.
  std::vector<std::pair<std::string, std::string>> rename = {};
  // Gets a line for each that is missing or passed over, if not strict.
  std::vector<std::string>* passed_over = nullptr;
};

// Writes the file whole or leaves what was there; see FileWriter. To be called
// between steps: gathered gradients are not saved. Throws Error when the run
// has batches and info no cursor, and while the model has its average.
// Errors: those of WriteSafetensors, and a parameter whose name begins with
// "optimizer." or "average.".
absl::Status SaveCheckpoint(const std::string& path, const TrainingRun& run,
                            const CheckpointInfo& info);

// Restores each part that the run has, drops gathered gradients, and returns
// the rest. The file and the run may differ in their number of threads and in
// the order of their parameters. Errors, which change nothing: what
// SafetensorsFile::Open reports; a file that is no checkpoint or one of a newer
// version; and one line that lists the first ten differences.
absl::StatusOr<CheckpointInfo> LoadCheckpoint(const std::string& path,
                                              const TrainingRun& run,
                                              const LoadOptions& options = {});

// Of a file that LoadCheckpoint reads.
absl::StatusOr<CheckpointInfo> ReadCheckpointInfo(const std::string& path);

// Parameters alone, for other programs and for inference.
absl::Status SaveParameters(const std::string& path,
                            const nn::ParameterStore& store,
                            std::optional<ElementType> float_type = {});

// From any safetensors file, a checkpoint or somebody else's. Of two names of a
// tied parameter either will do; the file may have both if their values agree.
// Drops gathered gradients. Errors, which change nothing, as above.
absl::Status LoadParameters(const std::string& path, nn::ParameterStore& store,
                            const LoadOptions& options = {});

// What SaveCheckpoint writes; the tensors are the run's own memory.
struct CheckpointContents {
  std::vector<NamedTensor> tensors;
  SafetensorsFile::Metadata metadata;
};
absl::StatusOr<CheckpointContents> CollectCheckpoint(
    const TrainingRun& run, const CheckpointInfo& info);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_CHECKPOINT_H_
