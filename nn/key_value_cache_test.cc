#include "nn/key_value_cache.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/encoder.h"
#include "nn/layer_testlib.h"
#include "nn/multi_head_attention.h"
#include "nn/transformer.h"

namespace wengert::nn {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// How positions may arrive: one by one, several at once, a long prompt first
// and steps behind it, none for once.
const std::vector<std::vector<int64_t>> kChunks = {std::vector<int64_t>(37, 1),
                                                   {5, 7, 1, 24},
                                                   {33, 1, 1, 1, 1},
                                                   {37},
                                                   {16, 0, 17, 4}};

// Fails unless step(part of x) gives the rows of `whole`, for all chunks, to
// the bit or to the tolerance.
template <class NewCache, class Step>
void ExpectStepsGive(const Tensor& whole, const Tensor& x, NewCache new_cache,
                     Step step, double tolerance = 0) {
  for (const std::vector<int64_t>& chunks : kChunks) {
    auto cache = new_cache();
    int64_t at = 0;
    for (const int64_t n : chunks) {
      const Tensor y = step(Slice(x, 1, at, n), cache);
      const Tensor wanted = Slice(whole, 1, at, n);
      if (tolerance > 0) {
        ExpectNear(y, wanted, tolerance, absl::StrCat("y at ", at));
      } else {
        EXPECT_TRUE(SameBits(y, wanted)) << n << " positions at " << at;
      }
      at += n;
    }
    ASSERT_EQ(at, x.dim(1));
  }
}

TEST(KeyValueCacheTest, AttentionInStepsHasTheSameBits) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const int64_t n_kv_heads : {4, 2, 1}) {
      ParameterStore store(dtype, 1);
      const MultiHeadAttention attention(store.root(), 68, 4,
                                         {.n_kv_heads = n_kv_heads});
      Randomise(store);
      const Tensor x = RandomTensor({3, 37, 68}, 2, dtype);
      ExpectStepsGive(
          attention(x, {.causal = true}), x, [] { return KeyValueCache(); },
          [&](const Tensor& part, KeyValueCache& cache) {
            return attention.Step(part, cache);
          });
    }
  }
}

TEST(KeyValueCacheTest, AnEncoderInStepsHasTheSameBits) {
  for (const Norm norm : {Norm::kPost, Norm::kPre}) {
    ParameterStore store;
    const Encoder encoder(
        store.root(), 2,
        {.d_model = 34, .n_heads = 2, .hidden = 40, .norm = norm});
    Randomise(store);
    const Tensor x = RandomTensor({2, 37, 34}, 2, DType::kFloat32);
    ExpectStepsGive(
        encoder(x, {.causal = true}), x, [&] { return encoder.Start(); },
        [&](const Tensor& part, auto& caches) {
          return encoder.Step(part, caches);
        });
  }
}

TEST(KeyValueCacheTest, ADecoderInStepsHasTheSameBits) {
  for (const Norm norm : {Norm::kPost, Norm::kPre}) {
    ParameterStore store;
    const Decoder decoder(
        store.root(), 2,
        {.d_model = 34, .n_heads = 2, .hidden = 40, .norm = norm});
    Randomise(store);
    const Tensor x = RandomTensor({2, 37, 34}, 2, DType::kFloat32);
    const Tensor memory = RandomTensor({2, 5, 34}, 3, DType::kFloat32);
    const DecoderMasks masks = {.memory_key_mask = Tensor::Of<bool>(
                                    {2, 5}, {1, 1, 1, 1, 1, 0, 1, 1, 0, 1})};
    ExpectStepsGive(
        decoder(x, memory, masks), x, [&] { return decoder.Start(memory); },
        [&](const Tensor& part, DecoderCache& cache) {
          return decoder.Step(part, cache, masks);
        });
  }
}

// A small kernel serves heads of up to 16 while there are up to 16 positions.
TEST(KeyValueCacheTest, NarrowHeadsInStepsAreTheSameToRounding) {
  ParameterStore store(DType::kFloat64, 1);
  const MultiHeadAttention attention(store.root(), 64, 4);
  Randomise(store);
  const Tensor x = RandomTensor({3, 37, 64}, 2);
  const auto step = [&](const Tensor& part, KeyValueCache& cache) {
    return attention.Step(part, cache);
  };
  ExpectStepsGive(
      attention(x, {.causal = true}), x, [] { return KeyValueCache(); }, step,
      1e-13);
  // The bits again where all of it is short.
  const Tensor part = Slice(x, 1, 0, 16);
  const Tensor whole = attention(part, {.causal = true});
  KeyValueCache cache;
  for (int64_t t = 0; t < 16; ++t) {
    EXPECT_TRUE(
        SameBits(step(Slice(part, 1, t, 1), cache), Slice(whole, 1, t, 1)))
        << t;
  }
}

// Prompts of two lengths, the shorter with padding before it.
TEST(KeyValueCacheTest, HidesPaddingInStepsToo) {
  ParameterStore store;
  const Encoder encoder(store.root(), 1,
                        {.d_model = 8, .n_heads = 2, .hidden = 8});
  const Tensor x = RandomTensor({2, 4, 8}, 1, DType::kFloat32);
  const auto mask = Tensor::Of<bool>({2, 4}, {1, 1, 1, 1, 0, 0, 1, 1});
  const Tensor whole = encoder(x, {.causal = true, .key_mask = mask});
  auto caches = encoder.Start();
  encoder.Step(Slice(x, 1, 0, 3), caches, {.key_mask = Slice(mask, 1, 0, 3)});
  const Tensor last =
      encoder.Step(Slice(x, 1, 3, 1), caches, {.key_mask = mask});
  EXPECT_TRUE(SameBits(last, Slice(whole, 1, 3, 1)));
}

TEST(KeyValueCacheTest, MemoryGrowsGeometricallyAndStaysInPlace) {
  KeyValueCache cache;
  const Tensor k = RandomTensor({2, 1, 1, 3}, 1),
               v = RandomTensor({2, 1, 1, 3}, 2);
  int moves = 0;
  const void* place = nullptr;
  for (int64_t t = 1; t <= 1000; ++t) {
    cache.Append(k, v);
    EXPECT_EQ(cache.length(), t);
    moves += place != cache.keys().impl()->data;
    place = cache.keys().impl()->data;
  }
  EXPECT_EQ(moves, 7);  // 16, 32, ..., 1024
  for (const int64_t b : {0, 1}) {
    for (const int64_t t : {0, 15, 16, 999}) {
      const int64_t at = (b * cache.keys().dim(1) + t) * 3;
      for (int64_t j = 0; j < 3; ++j) {
        EXPECT_EQ(cache.keys().data<double>()[at + j],
                  k.data<double>()[b * 3 + j]);
        EXPECT_EQ(cache.values().data<double>()[at + j],
                  v.data<double>()[b * 3 + j]);
      }
    }
  }
}

struct Model {
  ParameterStore store;
  Decoder decoder{store.root(), 2, {.d_model = 8, .n_heads = 2, .hidden = 8}};
};

TEST(KeyValueCacheTest, CopiesAreIndependent) {
  const Model m;
  const Tensor memory = RandomTensor({1, 3, 8}, 1, DType::kFloat32);
  const Tensor x = RandomTensor({1, 4, 8}, 2, DType::kFloat32);
  const Tensor other = RandomTensor({1, 1, 8}, 3, DType::kFloat32);
  DecoderCache cache = m.decoder.Start(memory);
  m.decoder.Step(Slice(x, 1, 0, 3), cache);
  DecoderCache copy = cache;
  m.decoder.Step(other, copy);
  EXPECT_EQ(cache.length(), 3);
  // Both write their fourth position.
  const Tensor last = m.decoder.Step(Slice(x, 1, 3, 1), cache);
  EXPECT_TRUE(SameBits(last, Slice(m.decoder(x, memory), 1, 3, 1)));
  const Tensor branch = Concat({Slice(x, 1, 0, 3), other, other}, 1);
  EXPECT_TRUE(SameBits(m.decoder.Step(other, copy),
                       Slice(m.decoder(branch, memory), 1, 4, 1)));
}

TEST(KeyValueCacheTest, SelectsSequences) {
  const Model m;
  const Tensor memory = RandomTensor({2, 3, 8}, 1, DType::kFloat32);
  const Tensor x = RandomTensor({2, 4, 8}, 2, DType::kFloat32);
  const auto rows = Tensor::Of<int64_t>({3}, {1, 1, 0});
  const auto pick = [&](const Tensor& x) {
    return Reshape(Embedding(x, rows), {3, x.dim(1), x.dim(2)});
  };
  DecoderCache cache = m.decoder.Start(memory);
  cache.Select({1, 0});  // the memory alone, there and back
  cache.Select({1, 0});
  m.decoder.Step(Slice(x, 1, 0, 3), cache);
  cache.Select(rows.span<int64_t>());
  const Tensor last = m.decoder.Step(pick(Slice(x, 1, 3, 1)), cache);
  EXPECT_TRUE(SameBits(last, Slice(m.decoder(pick(x), pick(memory)), 1, 3, 1)));
  EXPECT_THAT(ErrorOf([&] {
                cache.Select({0, 3});
              }),
              HasSubstr("Select: row 3 of float32 [3, "));
  EXPECT_THAT(ErrorOf([&] { cache.Select({-1}); }), HasSubstr("row -1"));
  EXPECT_THAT(ErrorOf([] { KeyValueCache().Select({0}); }), HasSubstr("row 0"));
}

TEST(KeyValueCacheTest, TakesPositionsBack) {
  const Model m;
  const Tensor memory = RandomTensor({1, 3, 8}, 1, DType::kFloat32);
  const Tensor x = RandomTensor({1, 4, 8}, 2, DType::kFloat32);
  DecoderCache cache = m.decoder.Start(memory);
  m.decoder.Step(x, cache);
  for (KeyValueCache& c : cache.self) c.Truncate(2);
  const Tensor last = m.decoder.Step(Slice(x, 1, 2, 2), cache);
  EXPECT_TRUE(SameBits(last, Slice(m.decoder(x, memory), 1, 2, 2)));
  EXPECT_THAT(ErrorOf([&] { cache.self[0].Truncate(5); }),
              HasSubstr("to 5 positions; wanted 0 to 4"));
  EXPECT_THAT(ErrorOf([&] { cache.self[0].Truncate(-1); }),
              HasSubstr("to -1 positions"));
}

// Each wrong step is refused and leaves the cache as it was.
TEST(KeyValueCacheTest, RefusesWhatDoesNotFit) {
  const Model m;
  const Tensor memory = RandomTensor({2, 3, 8}, 1, DType::kFloat32);
  const Tensor x = RandomTensor({2, 3, 8}, 2, DType::kFloat32);
  DecoderCache cache = m.decoder.Start(memory);
  const auto refused = [&](const Tensor& x, const DecoderMasks& masks) {
    const int64_t length = cache.length();
    const std::string message =
        ErrorOf([&] { m.decoder.Step(x, cache, masks); });
    for (const KeyValueCache& c : cache.self) EXPECT_EQ(c.length(), length);
    return message;
  };
  const Tensor wrong_mask = Tensor::Of<bool>({1, 3}, {1, 1, 1});
  // An empty cache takes any batch; the memory in it does not.
  EXPECT_THAT(refused(Slice(x, 0, 0, 1), {}), StartsWith("CachedAttention: q"));
  EXPECT_THAT(refused(x, {.memory_key_mask = wrong_mask}),
              HasSubstr("key_mask bool [1, 3]"));
  m.decoder.Step(Slice(x, 1, 0, 2), cache);
  EXPECT_THAT(refused(Slice(x, 0, 0, 1), {}),
              StartsWith("KeyValueCache::Append: k float32 [1, 3, 2, 4]"));
  EXPECT_THAT(refused(x, {.key_mask = wrong_mask}),
              HasSubstr("key_mask bool [1, 3]; wanted bool [2, 5]"));
  EXPECT_THAT(refused(Reshape(x, {2, 6, 4}), {}), HasSubstr("query"));
  const Tensor last = m.decoder.Step(Slice(x, 1, 2, 1), cache);
  EXPECT_TRUE(SameBits(last, Slice(m.decoder(x, memory), 1, 2, 1)));

  DecoderCache fewer = cache;
  fewer.self.pop_back();
  EXPECT_THAT(ErrorOf([&] { m.decoder.Step(x, fewer); }),
              HasSubstr("Decoder::Step: 1 caches for 2 layers"));
  ParameterStore store(DType::kFloat64);
  const MultiHeadAttention doubles(store.root(), 8, 2);
  EXPECT_THAT(ErrorOf([&] {
                doubles.Step(RandomTensor({2, 1, 8}, 1), cache.self[0]);
              }),
              StartsWith("KeyValueCache::Append: k float64"));
}

// The keys of earlier steps would get no gradients.
TEST(KeyValueCacheTest, RefusesATapeThatRecords) {
  const Model m;
  const Tensor x = RandomTensor({1, 1, 8}, 1, DType::kFloat32);
  DecoderCache cache = m.decoder.Start(x);
  Tape tape;
  EXPECT_THAT(ErrorOf([&] { m.decoder.Step(x, cache); }),
              HasSubstr("a tape records, and cached keys have no gradients"));
  EXPECT_EQ(cache.length(), 0);
  {
    Tape::Pause pause;
    m.decoder.Step(x, cache);
  }
  EXPECT_EQ(cache.length(), 1);
  tape.Clear();
}

TEST(KeyValueCacheTest, CachedAttentionChecksItsLength) {
  const Tensor q = RandomTensor({1, 1, 2, 3}, 1),
               k = RandomTensor({1, 4, 2, 3}, 2);
  for (const int64_t n : {-1, 5}) {
    EXPECT_THAT(ErrorOf([&] { CachedAttention(q, k, k, n); }),
                StartsWith("CachedAttention: n_keys " + std::to_string(n)));
  }
  const Tensor first = Slice(k, 1, 0, 3);
  EXPECT_TRUE(
      SameBits(CachedAttention(q, k, k, 3), Attention(q, first, first)));
  ExpectNear(CachedAttention(q, k, k, 0),
             Tensor::Zeros({1, 1, 2, 3}, DType::kFloat64), 0, "without keys");
}

}  // namespace
}  // namespace wengert::nn
