// Shuffling by (seed, epoch), and the place in the stream.
#include "train/batch_stream.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/random.h"

namespace wengert::train {

BatchStream::BatchStream(int64_t n, int64_t batch_size, uint64_t seed,
                         BatchStreamOptions options)
    : n_(n), batch_size_(batch_size), seed_(seed), options_(options) {
  if (n < 1 || batch_size < 1) {
    throw Error(absl::StrCat("BatchStream: n ", n, ", batch_size ", batch_size,
                             ", wanted both >= 1"));
  }
  if (options.drop_last && batch_size > n) {
    throw Error(absl::StrCat("BatchStream: n ", n, ", batch_size ", batch_size,
                             ", drop_last: no batch would be left"));
  }
  order_.resize(static_cast<size_t>(n));
}

absl::Span<const int64_t> BatchStream::Next() {
  if (ordered_epoch_ != epoch_) {
    std::iota(order_.begin(), order_.end(), int64_t{0});
    if (options_.shuffle) {
      // Fisher and Yates's shuffle, in place: an epoch may be a single batch,
      // and a training step allocates nothing. The stream has a key of its own
      // because dropout draws from (seed, offset) too.
      const uint64_t key = StreamKey(seed_, "batches");
      for (int64_t i = n_ - 1; i > 0; --i) {
        std::swap(order_[i], order_[UniformInt(key, epoch_, i, i + 1)]);
      }
    }
    ordered_epoch_ = epoch_;
  }
  const int64_t size = std::min(batch_size_, n_ - position_);
  const absl::Span<const int64_t> batch(order_.data() + position_,
                                        static_cast<size_t>(size));
  position_ += size;
  EndEpochIfOver();
  return batch;
}

int64_t BatchStream::batches_per_epoch() const {
  const bool short_batch = n_ % batch_size_ != 0 && !options_.drop_last;
  return n_ / batch_size_ + (short_batch ? 1 : 0);
}

BatchStream::State BatchStream::state() const {
  return {n_, seed_, options_.shuffle, epoch_, position_};
}

absl::Status BatchStream::Restore(const State& state) {
  if (state.n != n_ || state.seed != seed_ ||
      state.shuffle != options_.shuffle) {
    return absl::InvalidArgumentError(absl::StrCat(
        "BatchStream: saved with n ", state.n, ", seed ", state.seed,
        ", shuffle ", state.shuffle, "; this stream has n ", n_, ", seed ",
        seed_, ", shuffle ", options_.shuffle));
  }
  if (state.epoch < 0 || state.position < 0 || state.position >= n_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "BatchStream: saved epoch ", state.epoch, ", position ", state.position,
        ", wanted epoch >= 0 and 0 <= position < ", n_));
  }
  epoch_ = state.epoch;
  position_ = state.position;
  EndEpochIfOver();  // with drop_last and a larger batch it may be
  return absl::OkStatus();
}

void BatchStream::EndEpochIfOver() {
  const int64_t left = n_ - position_;
  if (left >= (options_.drop_last ? batch_size_ : 1)) return;
  ++epoch_;
  position_ = 0;
}

std::vector<int64_t> BlockStarts(int64_t n_tokens, int64_t block) {
  if (block < 1 || n_tokens <= block) {
    throw Error(absl::StrCat("BlockStarts: n_tokens ", n_tokens, ", block ",
                             block,
                             ", wanted block >= 1 and n_tokens > block"));
  }
  std::vector<int64_t> starts;
  for (int64_t start = 0; start < n_tokens - block; start += block) {
    starts.push_back(start);
  }
  return starts;
}

}  // namespace wengert::train
