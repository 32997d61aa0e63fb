// Shuffling by (seed, epoch), and the place in the stream.
#include "train/batch_stream.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/random.h"

namespace wengert::train {
namespace {

// Where `place` goes in a permutation of 0 .. n - 1 that (key, epoch) chooses:
// a Feistel network on the fewest bits that hold n - 1, applied until the
// result is below n (J. Black, P. Rogaway, "Ciphers with arbitrary finite
// domains", 2002).
int64_t Permuted(uint64_t key, int64_t epoch, int64_t place, int64_t n) {
  constexpr int kRounds = 8;
  const int bits = std::max<int>(2, std::bit_width(uint64_t(n - 1)));
  const int low_bits = bits / 2;
  const uint64_t low_mask = (uint64_t{1} << low_bits) - 1;
  const uint64_t high_mask = (uint64_t{1} << (bits - low_bits)) - 1;
  uint64_t x = place;
  do {
    for (int round = 0; round < kRounds; ++round) {
      uint64_t low = x & low_mask, high = x >> low_bits;
      const bool to_low = round % 2 == 0;
      const auto block =
          Philox::Block(key, to_low ? high : low, epoch * kRounds + round);
      const uint64_t random = uint64_t{block[1]} << 32 | block[0];
      (to_low ? low : high) ^= random & (to_low ? low_mask : high_mask);
      x = high << low_bits | low;
    }
  } while (x >= static_cast<uint64_t>(n));
  return static_cast<int64_t>(x);
}

uint64_t OrderHash(const BatchStreamOptions& options, int64_t batch_size) {
  const std::vector<int32_t>& lengths = options.lengths;
  if (!options.low_memory && lengths.empty()) return 0;
  const std::string bytes(reinterpret_cast<const char*>(lengths.data()),
                          lengths.size() * sizeof(lengths[0]));
  const uint64_t hash = StreamKey(options.low_memory, bytes);
  if (lengths.empty()) return hash;
  return StreamKey(hash, absl::StrCat(batch_size, " ", options.window));
}

}  // namespace

BatchStream::BatchStream(int64_t n, int64_t batch_size, uint64_t seed,
                         BatchStreamOptions options)
    : n_(n),
      batch_size_(batch_size),
      seed_(seed),
      options_(std::move(options)) {
  if (n < 1 || batch_size < 1) {
    throw Error(absl::StrCat("BatchStream: n ", n, ", batch_size ", batch_size,
                             ", wanted both >= 1"));
  }
  if (options_.drop_last && batch_size > n) {
    throw Error(absl::StrCat("BatchStream: n ", n, ", batch_size ", batch_size,
                             ", drop_last: no batch would be left"));
  }
  const int64_t n_lengths = static_cast<int64_t>(options_.lengths.size());
  if (n_lengths != 0 && (n_lengths != n || options_.window < 1)) {
    throw Error(absl::StrCat("BatchStream: n ", n, ", ", n_lengths,
                             " lengths, window ", options_.window,
                             ", wanted n lengths and window >= 1"));
  }
  order_hash_ = OrderHash(options_, batch_size);
  keys_.resize(n_lengths == 0 ? 0 : WindowSize());
  chunk_ = !options_.low_memory ? n
           : n_lengths == 0     ? std::min(batch_size, n)
                                : WindowSize();
  order_.reserve(chunk_);
}

int64_t BatchStream::WindowSize() const {
  const bool all = options_.window >= n_ / batch_size_ + 1;
  return all ? n_ : options_.window * batch_size_;
}

void BatchStream::Order() {
  const bool by_length = !options_.lengths.empty();
  ordered_epoch_ = epoch_;
  ordered_from_ = !options_.low_memory ? 0
                  : by_length          ? position_ - position_ % WindowSize()
                                       : position_;
  order_.resize(std::min(chunk_, n_ - ordered_from_));  // as reserved
  std::iota(order_.begin(), order_.end(), ordered_from_);
  if (options_.shuffle) Shuffle();
  if (!by_length) return;
  const int64_t size = static_cast<int64_t>(order_.size());
  for (int64_t first = 0; first < size; first += WindowSize()) {
    SortWindow(first, std::min(WindowSize(), size - first));
  }
}

void BatchStream::Shuffle() {
  // The stream has a key of its own because dropout draws from (seed, offset)
  // too.
  const uint64_t key = StreamKey(seed_, "batches");
  if (options_.low_memory) {
    for (int64_t& i : order_) i = Permuted(key, epoch_, i, n_);
    return;
  }
  // Fisher and Yates's, in place, for an epoch may be a single batch.
  for (int64_t i = n_ - 1; i > 0; --i) {
    std::swap(order_[i], order_[UniformInt(key, epoch_, i, i + 1)]);
  }
}

void BatchStream::SortWindow(int64_t first, int64_t size) {
  const int64_t batches = size / batch_size_;
  const auto keys_end = keys_.begin() + batches * batch_size_;
  const auto begin = order_.begin() + first;
  for (int64_t i = 0; i < batches * batch_size_; ++i) {
    keys_[i] = {options_.lengths[begin[i]], i, begin[i]};
  }
  // Among equal lengths the order decides, or the same examples would meet in
  // every epoch.
  std::sort(keys_.begin(), keys_end, [](const Key& a, const Key& b) {
    return std::pair(a.length, a.place) < std::pair(b.length, b.place);
  });
  std::transform(keys_.begin(), keys_end, begin,
                 [](const Key& key) { return key.index; });
  if (!options_.shuffle) return;
  const uint64_t key = StreamKey(seed_, "batches of like length");
  const int64_t before = (ordered_from_ + first) / batch_size_;
  for (int64_t i = batches - 1; i > 0; --i) {
    const int64_t j = UniformInt(key, epoch_, before + i, i + 1);
    if (i == j) continue;
    std::swap_ranges(begin + i * batch_size_, begin + (i + 1) * batch_size_,
                     begin + j * batch_size_);
  }
}

absl::Span<const int64_t> BatchStream::Next() {
  const int64_t ordered = static_cast<int64_t>(order_.size());
  if (ordered_epoch_ != epoch_ || position_ < ordered_from_ ||
      position_ >= ordered_from_ + ordered) {
    Order();
  }
  const int64_t size = std::min(batch_size_, n_ - position_);
  const absl::Span<const int64_t> batch(
      order_.data() + (position_ - ordered_from_), static_cast<size_t>(size));
  position_ += size;
  EndEpochIfOver();
  return batch;
}

int64_t BatchStream::batches_per_epoch() const {
  const bool short_batch = n_ % batch_size_ != 0 && !options_.drop_last;
  return n_ / batch_size_ + (short_batch ? 1 : 0);
}

BatchStream::State BatchStream::state() const {
  return {n_, seed_, options_.shuffle, epoch_, position_, order_hash_};
}

absl::Status BatchStream::Restore(const State& state) {
  if (state.n != n_ || state.seed != seed_ ||
      state.shuffle != options_.shuffle) {
    return absl::InvalidArgumentError(absl::StrCat(
        "BatchStream: saved with n ", state.n, ", seed ", state.seed,
        ", shuffle ", state.shuffle, "; this stream has n ", n_, ", seed ",
        seed_, ", shuffle ", options_.shuffle));
  }
  if (state.order != order_hash_) {
    return absl::InvalidArgumentError(
        "BatchStream: saved of an order that other lengths, another batch "
        "size, window or low_memory made");
  }
  if (state.epoch < 0 || state.position < 0 || state.position >= n_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "BatchStream: saved epoch ", state.epoch, ", position ", state.position,
        ", wanted epoch >= 0 and 0 <= position < ", n_));
  }
  if (!options_.lengths.empty() && state.position % batch_size_ != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("BatchStream: saved position ", state.position,
                     ", wanted the beginning of a batch of ", batch_size_));
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

int64_t NumBlocks(int64_t n_tokens, int64_t block) {
  if (block < 1 || n_tokens <= block) {
    throw Error(absl::StrCat("NumBlocks: n_tokens ", n_tokens, ", block ",
                             block,
                             ", wanted block >= 1 and n_tokens > block"));
  }
  return (n_tokens - 1) / block;
}

std::vector<int64_t> BlockStarts(int64_t n_tokens, int64_t block) {
  std::vector<int64_t> starts(NumBlocks(n_tokens, block));
  for (size_t i = 0; i < starts.size(); ++i) starts[i] = i * block;
  return starts;
}

}  // namespace wengert::train
