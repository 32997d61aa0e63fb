// Which examples a training step sees: an endless stream of batches of indices,
// in a new order every epoch, that resumes exactly where it was saved.
#ifndef WENGERT_TRAIN_BATCH_STREAM_H_
#define WENGERT_TRAIN_BATCH_STREAM_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace wengert::train {

struct BatchStreamOptions {
  bool shuffle = true;
  bool drop_last = false;  // leave out an epoch's last batch if it is short
};

class BatchStream {
 public:
  // All that a checkpoint needs to go on with the same stream.
  struct State {
    int64_t n = 0;
    uint64_t seed = 0;
    bool shuffle = true;
    int64_t epoch = 0;
    int64_t position = 0;
  };

  // Batches of the indices 0 .. n - 1. The order of an epoch depends on seed,
  // epoch and n alone. Throws Error unless n >= 1, batch_size >= 1 and an epoch
  // has a batch.
  BatchStream(int64_t n, int64_t batch_size, uint64_t seed,
              BatchStreamOptions options = {});

  // The indices of the next batch, never empty; they stay valid until the next
  // call of Next or Restore. Allocates nothing.
  absl::Span<const int64_t> Next();

  // The epoch, from 0, that the next batch belongs to, and how many indices of
  // that epoch have been handed out.
  int64_t epoch() const { return epoch_; }
  int64_t position() const { return position_; }
  int64_t batches_per_epoch() const;

  State state() const;

  // Goes on where `state` was taken, repeating and skipping nothing; the batch
  // size may differ. An error, which changes nothing, for a state that was
  // taken of other data, another seed or another order.
  absl::Status Restore(const State& state);

 private:
  void EndEpochIfOver();

  int64_t n_;
  int64_t batch_size_;
  uint64_t seed_;
  BatchStreamOptions options_;
  int64_t epoch_ = 0;
  int64_t position_ = 0;
  std::vector<int64_t> order_;  // of epoch ordered_epoch_
  int64_t ordered_epoch_ = -1;
};

// Where the blocks of a text of n_tokens begin: 0, block, 2 block, ... as long
// as `block` tokens and the one after them, the last target, are there. Ten
// tokens in blocks of 3: 0, 3, 6. Throws Error unless block >= 1 and there is a
// block.
std::vector<int64_t> BlockStarts(int64_t n_tokens, int64_t block);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_BATCH_STREAM_H_
