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

  // An order that is computed batch by batch instead of kept, for billions of
  // examples: it takes no memory, where the usual order takes 8 bytes for each
  // example. It is another order than the usual one.
  bool low_memory = false;

  // The length of each example, or none. With lengths, a batch has examples of
  // like length, so that little of it is padding: `window` batches' worth of
  // the order are sorted by length, cut into batches, and these shuffled.
  // The short last batch of an epoch is left as the order gave it.
  std::vector<int32_t> lengths = {};
  int64_t window = 64;
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
    // A hash of what else the order depends on: low_memory, and the lengths
    // with window and batch size. 0 in the usual order.
    uint64_t order = 0;
  };

  // Batches of the indices 0 .. n - 1. The order of an epoch depends on seed,
  // epoch and n alone, if there are no lengths. Throws Error unless n >= 1,
  // batch_size >= 1, an epoch has a batch, and there are no lengths or n of
  // them with window >= 1.
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
  // size may differ if there are no lengths. An error, which changes nothing,
  // for a state that was taken of other data, another seed or another order.
  absl::Status Restore(const State& state);

 private:
  // Puts a part of the epoch's order that has the next batch into order_.
  void Order();
  void Shuffle();
  // Makes batches of like length of the places from `first` on in order_.
  void SortWindow(int64_t first, int64_t size);
  int64_t WindowSize() const;
  void EndEpochIfOver();

  int64_t n_;
  int64_t batch_size_;
  uint64_t seed_;
  BatchStreamOptions options_;
  int64_t epoch_ = 0;
  int64_t position_ = 0;
  uint64_t order_hash_ = 0;
  int64_t chunk_;  // places of the order that are kept at once
  // The places from ordered_from_ on of the order of epoch ordered_epoch_: the
  // whole epoch, or, with low_memory, a batch or a window.
  std::vector<int64_t> order_;
  int64_t ordered_from_ = 0;
  int64_t ordered_epoch_ = -1;
  struct Key {
    int32_t length;
    int64_t place;
    int64_t index;
  };
  std::vector<Key> keys_;  // of a window, while it is sorted
};

// Where the blocks of a text of n_tokens begin: 0, block, 2 block, ... as long
// as `block` tokens and the one after them, the last target, are there. Ten
// tokens in blocks of 3: 0, 3, 6. Throws Error unless block >= 1 and there is a
// block.
std::vector<int64_t> BlockStarts(int64_t n_tokens, int64_t block);

// How many those are; the i-th begins at i * block. Throws as BlockStarts does.
int64_t NumBlocks(int64_t n_tokens, int64_t block);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_BATCH_STREAM_H_
