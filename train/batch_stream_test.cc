// The stream of batches: complete, reshuffled, exact when resumed.
#include "train/batch_stream.h"

#include <algorithm>
#include <set>
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
  EXPECT_EQ(NumBlocks(10, 3), 3);
  EXPECT_EQ(NumBlocks(9, 3), 2);
  EXPECT_EQ(NumBlocks(int64_t{1} << 40, 1), (int64_t{1} << 40) - 1);
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

TEST(BatchStream, AnOrderWithoutMemory) {
  // As a program in another language computed it.
  BatchStream ten(10, 10, 3, {.low_memory = true});
  EXPECT_THAT(Batch(ten), ElementsAre(8, 0, 5, 6, 7, 3, 1, 9, 2, 4));
  EXPECT_THAT(Batch(ten), ElementsAre(5, 1, 4, 0, 9, 7, 8, 2, 3, 6));
  for (const int64_t n : {1, 2, 3, 4, 5, 16, 17, 1000, 1025}) {
    BatchStream stream(n, 7, 1, {.low_memory = true});
    for (int epoch = 0; epoch < 3; ++epoch) {
      const std::vector<int64_t> sorted = Sorted(Epoch(stream));
      ASSERT_EQ(sorted.size(), n);
      for (int64_t i = 0; i < n; ++i) EXPECT_EQ(sorted[i], i);
    }
  }
  // Not of the batch size, here either.
  BatchStream a(1000, 3, 5, {.low_memory = true}),
      b(1000, 400, 5, {.low_memory = true});
  EXPECT_EQ(Epoch(a), Epoch(b));
  EXPECT_EQ(Epoch(a), Epoch(b));
}

TEST(BatchStream, EveryOrderWithoutMemoryIsAboutAsLikely) {
  std::vector<int> count(6);
  BatchStream stream(3, 3, 1, {.low_memory = true});
  for (int epoch = 0; epoch < 6000; ++epoch) {
    const std::vector<int64_t> order = Batch(stream);
    ++count[order[0] * 2 + (order[1] > order[2])];
  }
  for (const int c : count) EXPECT_NEAR(c, 1000, 150);  // 5 deviations
  // In a larger one, where an index goes does not depend on where it was, nor
  // on where its neighbour goes.
  std::vector<int> quarter(16);
  int neighbours = 0;
  BatchStream large(100, 100, 1, {.low_memory = true});
  for (int epoch = 0; epoch < 1000; ++epoch) {
    const std::vector<int64_t> order = Batch(large);
    for (int i = 0; i < 100; ++i) ++quarter[i / 25 * 4 + order[i] / 25];
    neighbours += order[1] == order[0] + 1;
  }
  EXPECT_NEAR(neighbours, 10, 16);  // 5 deviations
  for (const int q : quarter) EXPECT_NEAR(q, 6250, 350);
}

// 200 examples of lengths 0 to 19.
std::vector<int32_t> Lengths() {
  std::vector<int32_t> lengths(200);
  for (int i = 0; i < 200; ++i) lengths[i] = i * 7 % 20;
  return lengths;
}

// How much the batches of an epoch would be padded.
int64_t Padding(BatchStream& stream, const std::vector<int32_t>& lengths) {
  int64_t padding = 0;
  for (const int64_t epoch = stream.epoch(); stream.epoch() == epoch;) {
    const auto batch = stream.Next();
    int32_t longest = 0;
    for (const int64_t i : batch) longest = std::max(longest, lengths[i]);
    for (const int64_t i : batch) padding += longest - lengths[i];
  }
  return padding;
}

TEST(BatchStream, BatchesOfLikeLength) {
  const std::vector<int32_t> lengths = Lengths();
  for (const bool low_memory : {false, true}) {
    BatchStream stream(
        200, 8, 5,
        {.low_memory = low_memory, .lengths = lengths, .window = 10});
    BatchStream plain(200, 8, 5, {.low_memory = low_memory});
    std::vector<std::vector<int64_t>> orders;
    for (int epoch = 0; epoch < 3; ++epoch) {
      orders.push_back(Epoch(stream));
      const std::vector<int64_t> sorted = Sorted(orders.back());
      ASSERT_EQ(sorted.size(), 200);
      for (int64_t i = 0; i < 200; ++i) EXPECT_EQ(sorted[i], i);
      // A window has the examples of the plain order's.
      const std::vector<int64_t> in_order = Epoch(plain);
      EXPECT_EQ(Sorted({in_order.begin(), in_order.begin() + 80}),
                Sorted({orders[epoch].begin(), orders[epoch].begin() + 80}));
    }
    EXPECT_NE(orders[0], orders[1]);
    EXPECT_LT(Padding(stream, lengths) * 5, Padding(plain, lengths));
    // The batches come in no order of length, and others every epoch.
    std::vector<int32_t> firsts;
    std::set<std::set<int64_t>> batches;
    for (const auto& order : orders) {
      for (int i = 0; i < 80; i += 8) {
        firsts.push_back(lengths[order[i]]);
        batches.emplace(order.begin() + i, order.begin() + i + 8);
      }
    }
    EXPECT_FALSE(std::is_sorted(firsts.begin(), firsts.begin() + 10));
    EXPECT_GT(batches.size(), 25);
  }
}

TEST(BatchStream, ExamplesOfOneLengthMeetOthersEveryEpoch) {
  BatchStream stream(40, 4, 5, {.lengths = std::vector<int32_t>(40, 3)});
  std::set<std::vector<int64_t>> batches;
  for (int i = 0; i < 30; ++i) batches.insert(Sorted(Batch(stream)));
  EXPECT_GT(batches.size(), 25);
}

TEST(BatchStream, TheShortBatchIsNotThatOfTheLongest) {
  // 10 are left over in each epoch; by length they would all be of 19.
  const std::vector<int32_t> lengths = Lengths();
  BatchStream stream(200, 19, 5, {.drop_last = true, .lengths = lengths});
  std::vector<int> seen(20);
  for (int i = 0; i < 40 * 10; ++i) {
    for (const int64_t k : Batch(stream)) ++seen[lengths[k]];
  }
  for (const int n : seen) EXPECT_NEAR(n, 380, 22);  // 5 deviations
}

TEST(BatchStream, BatchesOfLikeLengthWithoutShuffling) {
  BatchStream stream(
      7, 2, 5,
      {.shuffle = false, .lengths = {5, 1, 3, 1, 9, 9, 9}, .window = 2});
  EXPECT_THAT(Batch(stream), ElementsAre(1, 3));
  EXPECT_THAT(Batch(stream), ElementsAre(2, 0));
  EXPECT_THAT(Batch(stream), ElementsAre(4, 5));
  EXPECT_THAT(Batch(stream), ElementsAre(6));
}

TEST(BatchStream, EveryKindOfOrderResumesExactly) {
  const std::vector<int32_t> lengths = Lengths();
  for (const BatchStreamOptions& options :
       {BatchStreamOptions{.low_memory = true},
        BatchStreamOptions{.lengths = lengths, .window = 4},
        BatchStreamOptions{.low_memory = true, .lengths = lengths, .window = 4},
        BatchStreamOptions{.drop_last = true, .lengths = lengths}}) {
    BatchStream whole(200, 9, 5, options);
    std::vector<std::vector<int64_t>> expected;
    std::vector<BatchStream::State> states;
    for (int i = 0; i < 50; ++i) {
      states.push_back(whole.state());
      expected.push_back(Batch(whole));
    }
    for (size_t stop = 0; stop < states.size(); stop += 3) {
      BatchStream resumed(200, 9, 5, options);
      Batch(resumed);
      ASSERT_TRUE(resumed.Restore(states[stop]).ok());
      for (size_t i = stop; i < expected.size(); ++i) {
        ASSERT_EQ(Batch(resumed), expected[i]) << stop << " " << i;
      }
    }
  }
}

TEST(BatchStream, RefusesAStateOfAnotherKindOfOrder) {
  const std::vector<int32_t> lengths = Lengths();
  std::vector<int32_t> others = lengths;
  ++others[3];
  std::vector<BatchStream> streams;
  for (const BatchStreamOptions& options :
       {BatchStreamOptions{}, BatchStreamOptions{.low_memory = true},
        BatchStreamOptions{.lengths = lengths},
        BatchStreamOptions{.lengths = others},
        BatchStreamOptions{.lengths = lengths, .window = 2},
        BatchStreamOptions{.low_memory = true, .lengths = lengths}}) {
    streams.emplace_back(200, 9, 5, options);
  }
  streams.emplace_back(200, 10, 5, BatchStreamOptions{.lengths = lengths});
  for (BatchStream& to : streams) {
    for (const BatchStream& from : streams) {
      EXPECT_EQ(to.Restore(from.state()).ok(), &to == &from);
    }
  }
  EXPECT_EQ(streams[0].Restore(streams[1].state()).message(),
            "BatchStream: saved of an order that other lengths, another batch "
            "size, window or low_memory made");
  EXPECT_EQ(streams[0].state().order, 0);
  BatchStream::State state = streams[2].state();
  state.position = 10;
  EXPECT_EQ(streams[2].Restore(state).message(),
            "BatchStream: saved position 10, wanted the beginning of a batch "
            "of 9");
}

TEST(BatchStream, RefusesBadArguments) {
  EXPECT_THROW(BatchStream(2, 1, 0, {.lengths = {1}}), Error);
  EXPECT_THROW(BatchStream(1, 1, 0, {.lengths = {1}, .window = 0}), Error);
  EXPECT_THROW(BatchStream(0, 1, 0), Error);
  EXPECT_THROW(BatchStream(1, 0, 0), Error);
  EXPECT_THROW(BatchStream(2, 3, 0, {.drop_last = true}), Error);
}

}  // namespace
}  // namespace wengert::train
