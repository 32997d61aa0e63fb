// The stream of batches: complete, reshuffled, exact when resumed.
#include "train/batch_stream.h"

#include <algorithm>
#include <vector>

#include "autograd/error.h"
#include "autograd/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert::train {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

std::vector<int64_t> Batch(BatchStream& stream) {
  const auto batch = stream.Next();
  return {batch.begin(), batch.end()};
}

// The indices of the epoch that begins here, in the order handed out.
std::vector<int64_t> Epoch(BatchStream& stream) {
  std::vector<int64_t> indices;
  for (const int64_t epoch = stream.epoch(); stream.epoch() == epoch;) {
    const auto batch = stream.Next();
    indices.insert(indices.end(), batch.begin(), batch.end());
  }
  return indices;
}

std::vector<int64_t> Sorted(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

TEST(BlockStarts, LeavesATargetBehindEveryBlock) {
  EXPECT_THAT(BlockStarts(10, 3), ElementsAre(0, 3, 6));
  EXPECT_THAT(BlockStarts(9, 3), ElementsAre(0, 3));
  EXPECT_THAT(BlockStarts(4, 3), ElementsAre(0));
  EXPECT_THAT(BlockStarts(3, 1), ElementsAre(0, 1));
  EXPECT_THROW(BlockStarts(3, 3), Error);
  EXPECT_THROW(BlockStarts(3, 0), Error);
}

TEST(BatchStream, TenTokensInBlocksOfThreeAreThreeBatches) {
  const std::vector<int64_t> starts = BlockStarts(10, 3);
  BatchStream stream(starts.size(), 1, 7);
  EXPECT_EQ(stream.batches_per_epoch(), 3);
  for (int epoch = 0; epoch < 5; ++epoch) {
    EXPECT_EQ(stream.epoch(), epoch);
    std::vector<int64_t> seen;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(stream.position(), i);
      const std::vector<int64_t> batch = Batch(stream);
      ASSERT_EQ(batch.size(), 1);
      seen.push_back(starts[batch[0]]);
    }
    EXPECT_THAT(seen, UnorderedElementsAre(0, 3, 6));
  }
}

TEST(BatchStream, EpochsReshuffle) {
  BatchStream stream(20, 6, 3);
  const std::vector<int64_t> first = Epoch(stream), second = Epoch(stream);
  EXPECT_NE(first, second);
  EXPECT_EQ(Sorted(first), Sorted(second));
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  // The order is a function of seed and epoch: not of the batch size, and not
  // of what was drawn before.
  BatchStream other_size(20, 9, 3), other_seed(20, 6, 4);
  EXPECT_EQ(Epoch(other_size), first);
  EXPECT_EQ(Epoch(other_size), second);
  EXPECT_NE(Epoch(other_seed), first);
}

TEST(BatchStream, ShufflesInPlaceAsPermutationDoes) {
  BatchStream stream(9, 9, 3);
  const int64_t* data = stream.Next().data();
  for (int epoch = 1; epoch < 4; ++epoch) {
    const auto batch = stream.Next();
    EXPECT_EQ(batch.data(), data);
    EXPECT_EQ(std::vector<int64_t>(batch.begin(), batch.end()),
              Permutation(StreamKey(3, "batches"), epoch, 9));
  }
}

TEST(BatchStream, EveryOrderIsAboutAsLikely) {
  std::vector<int> count(6);
  BatchStream stream(3, 3, 1);
  for (int epoch = 0; epoch < 6000; ++epoch) {
    const std::vector<int64_t> order = Batch(stream);
    ++count[order[0] * 2 + (order[1] > order[2])];
  }
  for (const int c : count) EXPECT_NEAR(c, 1000, 150);  // 5 deviations
}

TEST(BatchStream, LastBatchIsShortOrDropped) {
  BatchStream keeps(7, 3, 0, {.shuffle = false});
  EXPECT_EQ(keeps.batches_per_epoch(), 3);
  EXPECT_THAT(Batch(keeps), ElementsAre(0, 1, 2));
  EXPECT_THAT(Batch(keeps), ElementsAre(3, 4, 5));
  EXPECT_THAT(Batch(keeps), ElementsAre(6));
  EXPECT_THAT(Batch(keeps), ElementsAre(0, 1, 2));

  BatchStream drops(7, 3, 0, {.shuffle = false, .drop_last = true});
  EXPECT_EQ(drops.batches_per_epoch(), 2);
  EXPECT_THAT(Batch(drops), ElementsAre(0, 1, 2));
  EXPECT_THAT(Batch(drops), ElementsAre(3, 4, 5));
  EXPECT_EQ(drops.epoch(), 1);
  EXPECT_THAT(Batch(drops), ElementsAre(0, 1, 2));

  BatchStream even(6, 3, 0, {.drop_last = true});
  EXPECT_EQ(even.batches_per_epoch(), 2);
  BatchStream larger(2, 5, 0, {.shuffle = false});
  EXPECT_THAT(Batch(larger), ElementsAre(0, 1));
}

TEST(BatchStream, ResumeRepeatsAndSkipsNothing) {
  for (const bool drop_last : {false, true}) {
    const BatchStreamOptions options{.drop_last = drop_last};
    BatchStream whole(10, 3, 5, options);
    std::vector<std::vector<int64_t>> expected;
    std::vector<BatchStream::State> states;
    for (int i = 0; i < 12; ++i) {
      states.push_back(whole.state());
      expected.push_back(Batch(whole));
    }
    for (size_t stop = 0; stop < states.size(); ++stop) {
      BatchStream resumed(10, 3, 5, options);
      Batch(resumed);  // what was drawn before does not matter
      ASSERT_TRUE(resumed.Restore(states[stop]).ok());
      for (size_t i = stop; i < expected.size(); ++i) {
        EXPECT_EQ(Batch(resumed), expected[i]) << stop << " " << i;
      }
    }
  }
}

TEST(BatchStream, ResumesWithAnotherBatchSize) {
  BatchStream whole(10, 10, 5), first(10, 3, 5), second(10, 4, 5);
  const std::vector<int64_t> order = Batch(whole);
  std::vector<int64_t> seen = Batch(first);
  ASSERT_TRUE(second.Restore(first.state()).ok());
  const std::vector<int64_t> rest = Epoch(second);
  seen.insert(seen.end(), rest.begin(), rest.end());
  EXPECT_EQ(seen, order);

  // Seven are left, too few for a batch of eight.
  BatchStream dropping(10, 8, 5, {.drop_last = true});
  ASSERT_TRUE(dropping.Restore(first.state()).ok());
  EXPECT_EQ(dropping.epoch(), 1);
  EXPECT_EQ(dropping.position(), 0);
}

TEST(BatchStream, RefusesAStateOfAnotherStream) {
  BatchStream stream(10, 3, 5);
  Batch(stream);
  const auto refuses = [&](BatchStream::State state) {
    const absl::Status status = stream.Restore(state);
    return status.code() == absl::StatusCode::kInvalidArgument &&
           stream.epoch() == 0 && stream.position() == 3;
  };
  EXPECT_TRUE(refuses(BatchStream(11, 3, 5).state()));
  EXPECT_TRUE(refuses(BatchStream(10, 3, 6).state()));
  EXPECT_TRUE(refuses(BatchStream(10, 3, 5, {.shuffle = false}).state()));
  EXPECT_TRUE(refuses({.n = 10, .seed = 5, .epoch = -1}));
  EXPECT_TRUE(refuses({.n = 10, .seed = 5, .position = 10}));
  EXPECT_TRUE(refuses({.n = 10, .seed = 5, .position = -1}));
  EXPECT_EQ(stream.Restore(BatchStream(11, 3, 5).state()).message(),
            "BatchStream: saved with n 11, seed 5, shuffle 1; this stream has "
            "n 10, seed 5, shuffle 1");
}

TEST(BatchStream, RefusesBadArguments) {
  EXPECT_THROW(BatchStream(0, 1, 0), Error);
  EXPECT_THROW(BatchStream(1, 0, 0), Error);
  EXPECT_THROW(BatchStream(2, 3, 0, {.drop_last = true}), Error);
}

}  // namespace
}  // namespace wengert::train
