// NumPy's .npz: named arrays in one zip archive, as np.savez and
// np.savez_compressed write it. The array NAME is the entry NAME.npy.
#ifndef WENGERT_TRAIN_NPZ_H_
#define WENGERT_TRAIN_NPZ_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "train/safetensors.h"

namespace wengert::train {

// The arrays in the order of the file. Errors, of one line: what is no zip
// archive, an entry that is damaged, encrypted or no .npy, those of ParseNpy as
// "path: NAME.npy: what is wrong", the same name twice. Memory grows with the
// bytes that an entry really has, not with those it claims.
absl::StatusOr<std::vector<NamedTensor>> LoadNpz(const std::string& path);
// Those of a file with these bytes; `path` is for messages.
absl::StatusOr<std::vector<NamedTensor>> ParseNpz(
    absl::Span<const uint8_t> bytes, const std::string& path);

struct NpzOptions {
  bool compress = false;  // as np.savez_compressed
};
// Writes the file whole or leaves what was there; the same tensors give the
// same bytes. The archive is made in memory. Errors: a name that is empty or
// there twice, and what FileWriter reports.
absl::Status SaveNpz(const std::string& path,
                     absl::Span<const NamedTensor> tensors,
                     NpzOptions options = {});

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_NPZ_H_
