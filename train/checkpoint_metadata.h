// What a checkpoint holds beside its tensors, as the text that stands in the
// file's metadata.
#ifndef WENGERT_TRAIN_CHECKPOINT_METADATA_H_
#define WENGERT_TRAIN_CHECKPOINT_METADATA_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "autograd/random.h"
#include "train/checkpoint.h"
#include "train/optimizer.h"
#include "train/safetensors.h"

namespace wengert::train::internal {

struct CheckpointMetadata {
  CheckpointInfo info;
  std::optional<Generator> generator;
  // Without tensors; parameters by the names that the file gives them.
  std::optional<OptimizerState> optimizer;
};

// Whether this is the metadata of a checkpoint, of whatever version.
bool IsCheckpoint(const SafetensorsFile::Metadata& metadata);

SafetensorsFile::Metadata PrintMetadata(const CheckpointMetadata& checkpoint);

// Adds a line to `faults` for everything that is missing or malformed. Of a
// version that cannot be read it says only that.
CheckpointMetadata ParseMetadata(const SafetensorsFile::Metadata& metadata,
                                 std::vector<std::string>& faults);

}  // namespace wengert::train::internal

#endif  // WENGERT_TRAIN_CHECKPOINT_METADATA_H_
