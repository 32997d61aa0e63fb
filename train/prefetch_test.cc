// Batches that are prepared ahead: the right ones, in order, with their errors.
#include "train/prefetch.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "autograd/ops.h"
#include "autograd/tensor_testlib.h"
#include "gtest/gtest.h"
#include "train/allocations_testlib.h"

namespace wengert::train {
namespace {

using Indices = std::vector<int64_t>;

Indices Copy(absl::Span<const int64_t> indices) {
  return {indices.begin(), indices.end()};
}

TEST(Prefetch, GivesTheBatchesOfTheStream) {
  for (const int64_t depth : {1, 2, 7}) {
    BatchStream batches(10, 3, 5);
    Prefetch<Indices> prefetch(batches, Copy, depth);
    for (int i = 0; i < 20; ++i) {
      const auto indices = batches.Next();
      EXPECT_EQ(prefetch.Get(indices), Copy(indices));
    }
  }
}

TEST(Prefetch, GoesOnInTheMiddleAndLeavesTheCursorToTheSteps) {
  BatchStream batches(10, 3, 5);
  for (int i = 0; i < 6; ++i) batches.Next();
  BatchStream resumed(10, 3, 5);
  ASSERT_TRUE(resumed.Restore(batches.state()).ok());
  std::atomic<int> made = 0;
  Prefetch<Indices> prefetch(
      resumed, [&](auto indices) { return ++made, Copy(indices); }, 4);
  while (made < 4) std::this_thread::yield();
  EXPECT_EQ(resumed.position(), batches.position());
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(prefetch.Get(resumed.Next()), Copy(batches.Next()));
    EXPECT_EQ(resumed.state().position, batches.state().position);
  }
}

TEST(Prefetch, PreparesNoMoreThanItsDepth) {
  BatchStream batches(100, 1, 5, {.shuffle = false});
  std::atomic<int64_t> made = 0;
  Prefetch<Indices> prefetch(
      batches, [&](auto indices) { return ++made, Copy(indices); }, 3);
  for (int i = 0; i < 3; ++i) {
    while (made < i + 3) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(made, i + 3);
    prefetch.Get(batches.Next());
  }
}

TEST(Prefetch, RefusesOtherIndicesAndKeepsItsBatch) {
  BatchStream batches(10, 2, 5, {.shuffle = false});
  Prefetch<Indices> prefetch(batches, Copy);
  EXPECT_EQ(ErrorOf([&] {
              prefetch.Get({4, 5});
            }),
            "Prefetch: batch [4, 5] of 2, prepared was [0, 1] of 2");
  EXPECT_EQ(ErrorOf([&] { prefetch.Get({0}); }),
            "Prefetch: batch [0] of 1, prepared was [0, 1] of 2");
  EXPECT_EQ(prefetch.Get({0, 1}), Indices({0, 1}));
  BatchStream large(100, 10, 5, {.shuffle = false});
  Prefetch<Indices> many(large, Copy);
  EXPECT_EQ(ErrorOf([&] { many.Get({1}); }),
            "Prefetch: batch [1] of 1, prepared was [0, 1, 2, 3, 4, 5, 6, 7, "
            "...] of 10");
  EXPECT_THROW(Prefetch<Indices>(batches, Copy, 0), Error);
}

TEST(Prefetch, ThrowsWhatMakeThrewForItsBatch) {
  BatchStream batches(6, 1, 5, {.shuffle = false});
  Prefetch<Indices> prefetch(
      batches,
      [](auto indices) {
        if (indices[0] == 2) throw std::runtime_error("two");
        return Copy(indices);
      },
      3);
  for (int64_t i = 0; i < 12; ++i) {
    const auto indices = batches.Next();
    if (indices[0] != 2) {
      EXPECT_EQ(prefetch.Get(indices), Indices({i % 6}));
      continue;
    }
    try {
      prefetch.Get(indices);
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "two");
    }
  }
}

TEST(Prefetch, GivesStatusesAndTensors) {
  BatchStream batches(6, 2, 5, {.shuffle = false});
  Prefetch<absl::StatusOr<Tensor>> prefetch(
      batches, [](auto indices) -> absl::StatusOr<Tensor> {
        if (indices[0] == 2) return absl::NotFoundError("two");
        return Add(Tensor::Full({3}, indices[0]), Tensor::Ones({3}));
      });
  EXPECT_TRUE(SameBits(*prefetch.Get(batches.Next()), Tensor::Ones({3})));
  EXPECT_EQ(prefetch.Get(batches.Next()).status(), absl::NotFoundError("two"));
  EXPECT_TRUE(
      SameBits(*prefetch.Get(batches.Next()), Tensor::Of({3}, {5, 5, 5})));
}

TEST(Prefetch, EndsAtAnyMoment) {
  BatchStream batches(10, 3, 5);
  for (int i = 0; i < 200; ++i) {
    Prefetch<Tensor> prefetch(
        batches,
        [](auto indices) {
          return Tensor::Full({100}, static_cast<double>(indices[0]));
        },
        1 + i % 3);
    BatchStream copy = batches;
    for (int k = 0; k < i % 4; ++k) prefetch.Get(copy.Next());
  }
}

// Tensors that one thread makes and another drops go back to the first.
TEST(Prefetch, TakesNothingFromTheSystemOnceWarm) {
  if (!CountsAllocations()) GTEST_SKIP() << "a sanitizer allocates";
  constexpr int kDepth = 2;
  BatchStream batches(64, 4, 5);
  std::atomic<int64_t> made = 0;
  Prefetch<Tensor> prefetch(
      batches,
      [&](auto indices) {
        Tensor x = Tensor::Full({4, 10000}, static_cast<double>(indices[0]));
        ++made;
        return x;
      },
      kDepth);
  // As many at once as there can ever be: those that are prepared, one in the
  // making, and one that a step has.
  const auto step = [&](int64_t i) {
    const Tensor x = prefetch.Get(batches.Next());
    while (made < i + 1 + kDepth) std::this_thread::yield();
  };
  int64_t i = 0;
  for (; i < 20; ++i) step(i);
  const int64_t before = SystemAllocations();
  for (; i < 200; ++i) step(i);
  EXPECT_EQ(SystemAllocations(), before);
}

}  // namespace
}  // namespace wengert::train
