// Attention on every path: fused, composed, packed, with each kind of mask.
#include "autograd/ops/ops_testlib.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Path = std::function<Tensor(const Tensor& q, const Tensor& k,
                                  const Tensor& v, const AttentionOptions&)>;

// [B, T, H, D] from the three parts, which must be alike.
Tensor Packed(const Tensor& q, const Tensor& k, const Tensor& v,
              const AttentionOptions& options) {
  const Shape part{q.dim(0), q.dim(1), 1, q.dim(2), q.dim(3)};
  return PackedAttention(
      Concat({Reshape(q, part), Reshape(k, part), Reshape(v, part)}, 2),
      options);
}

// A bias that is trained takes the composition.
Tensor TrainedBias(const Tensor& q, const Tensor& k, const Tensor& v,
                   const AttentionOptions& options) {
  AttentionOptions o = options;
  const Tensor zero = Tensor::Zeros({q.dim(1), k.dim(1)}, q.dtype());
  if (Tape::Current()) Tape::Current()->Watch(zero);
  o.bias = o.bias.defined() ? o.bias + zero : zero;
  return Attention(q, k, v, o);
}

std::vector<std::pair<const char*, Path>> Paths() {
  return {{"fused", Attention},
          {"composed",
           [](const Tensor& q, const Tensor& k, const Tensor& v,
              const AttentionOptions& o) {
             return AttentionWithWeights(q, k, v, o).out;
           }},
          {"packed", Packed},
          {"trained bias", TrainedBias}};
}

template <class Check>
void ForEachPath(Check check) {
  for (DType dtype : kFloats) {
    for (const auto& [name, path] : Paths()) {
      for (bool recorded : {false, true}) {
        SCOPED_TRACE(std::string(name) + " " + Name(dtype) +
                     (recorded ? " recorded" : ""));
        check(dtype, path, recorded);
      }
    }
  }
}

// Row 0 sees nothing, by each kind of mask that can say so.
TEST(AttentionTest, FullyMaskedRow) {
  AttentionOptions by_mask, by_bias, by_key;
  by_mask.mask = Tensor::Of<bool>({2, 2}, {false, false, true, true});
  by_bias.bias = Values({2, 2}, {-kInf, -kInf, 0, 0});
  ForEachPath([&](DType dtype, const Path& path, bool recorded) {
    const Tensor qk = Values({1, 2, 1, 1}, {1, 1}, dtype);
    const Tensor v = Values({1, 2, 1, 1}, {1, 3}, dtype);
    for (AttentionOptions o : {by_mask, by_bias}) {
      o.scale = 1;
      if (o.bias.defined()) o.bias = o.bias.To(dtype);
      const auto d =
          Differentiate([&](Inputs x) { return path(x[0], x[1], x[2], o); },
                        {qk, qk.Clone(), v}, {}, recorded);
      EXPECT_THAT(d.value.ToVector(), ElementsAre(0, 2));
      EXPECT_THAT(d.gradients[0].ToVector(), ElementsAre(0, 0));
      EXPECT_THAT(d.gradients[1].ToVector(),
                  ElementsAre(DoubleNear(-0.5, 1e-7), DoubleNear(0.5, 1e-7)));
      EXPECT_THAT(d.gradients[2].ToVector(), Each(DoubleNear(0.5, 1e-7)));
    }
  });
}

TEST(AttentionTest, NothingToSeeAtAll) {
  ForEachPath([&](DType dtype, const Path& path, bool recorded) {
    const Tensor x = Spread({2, 3, 2, 4}, -1, 1).To(dtype);
    AttentionOptions o;
    o.key_mask = Tensor::Zeros({2, 3}, DType::kBool);
    const auto d =
        Differentiate([&](Inputs x) { return path(x[0], x[1], x[2], o); },
                      {x, x.Clone(), x.Clone()}, {}, recorded);
    EXPECT_THAT(d.value.ToVector(), Each(0));
    for (const Tensor& g : d.gradients) EXPECT_THAT(g.ToVector(), Each(0));
  });
}

// Scores of no features are 0: the mean of v.
TEST(AttentionTest, NoFeatures) {
  for (const auto& [name, path] : Paths()) {
    if (std::string(name) == "packed") continue;  // v has q's width
    SCOPED_TRACE(name);
    const auto d = Differentiate(
        [&path = path](Inputs x) { return path(x[0], x[1], x[2], {}); },
        {Tensor::Zeros({1, 1, 1, 0}, DType::kFloat64),
         Tensor::Zeros({1, 2, 1, 0}, DType::kFloat64),
         Values({1, 2, 1, 1}, {1, 3})},
        {}, false);
    EXPECT_THAT(d.value.ToVector(), ElementsAre(2));
    EXPECT_THAT(d.gradients[2].ToVector(), ElementsAre(0.5, 0.5));
  }
}

// The last query is aligned with the last key.
TEST(AttentionTest, CausalWithCachedKeys) {
  for (DType dtype : kFloats) {
    const Tensor q = Tensor::Ones({1, 1, 1, 1}, dtype);
    const Tensor k = Tensor::Ones({1, 4, 1, 1}, dtype);
    const Tensor v = Values({1, 4, 1, 1}, {1, 2, 3, 4}, dtype);
    const AttentionOptions o{.causal = true};
    EXPECT_NEAR(Attention(q, k, v, o).item(), 2.5, 1e-6);
    EXPECT_NEAR(AttentionWithWeights(q, k, v, o).out.item(), 2.5, 1e-6);
    // Four queries against one key: the first three see nothing.
    const Tensor y = Attention(k, q, q, o);
    EXPECT_THAT(y.ToVector(), ElementsAre(0, 0, 0, 1));
    EXPECT_THAT(AttentionWithWeights(k, q, q, o).out.ToVector(),
                ElementsAre(0, 0, 0, 1));
  }
  ForEachPath([](DType dtype, const Path& path, bool) {
    const Tensor ones = Tensor::Ones({1, 3, 1, 1}, dtype);
    const Tensor v = Values({1, 3, 1, 1}, {1, 2, 6}, dtype);
    EXPECT_THAT(path(ones, ones, v, {.causal = true}).ToVector(),
                ElementsAre(1, 1.5, DoubleNear(3, 1e-6)));
  });
}

TEST(AttentionTest, AdditiveMask) {
  for (DType dtype : kFloats) {
    const Tensor q = Tensor::Zeros({1, 1, 1, 1}, dtype);
    const Tensor k = Tensor::Zeros({1, 2, 1, 1}, dtype);
    const Tensor v = Values({1, 2, 1, 1}, {1, 5}, dtype);
    const AttentionOptions o{.bias = Values({0, std::log(3)}, dtype)};
    const auto check = [&] {
      const AttentionResult r = AttentionWithWeights(q, k, v, o);
      EXPECT_EQ(r.weights.shape(), (Shape{1, 1, 1, 2}));
      EXPECT_THAT(r.weights.ToVector(),
                  ElementsAre(DoubleNear(0.25, 1e-7), DoubleNear(0.75, 1e-7)));
      EXPECT_NEAR(r.out.item(), 4, 1e-6);
      EXPECT_NEAR(Attention(q, k, v, o).item(), 4, 1e-6);
    };
    check();  // without a tape
    Generator generator(1);
    {
      Tape tape(generator);
      tape.Watch(q);
      check();
    }
    Tape tape(Tape::kEval);
    tape.Watch(q);
    check();
  }
}

TEST(AttentionTest, MasksCombine) {
  ForEachPath([](DType dtype, const Path& path, bool) {
    // Equal scores, so that the output is the mean of the visible values.
    const Tensor ones = Tensor::Ones({1, 4, 1, 1}, dtype);
    const Tensor v = Values({1, 4, 1, 1}, {1, 2, 4, 8}, dtype);
    AttentionOptions o{.causal = true};
    o.key_mask = Tensor::Of<bool>({1, 4}, {true, true, false, true});
    o.mask = Tensor::Of<bool>({4, 4}, {true, true, true, true,   //
                                       false, true, true, true,  //
                                       true, true, true, true,   //
                                       false, true, false, true});
    EXPECT_THAT(path(ones, ones, v, o).ToVector(),
                ElementsAre(1, 2, DoubleNear(1.5, 1e-6), DoubleNear(5, 1e-6)));
  });
}

// Query head h reads key head h / (H / Hkv).
TEST(AttentionTest, GroupedHeads) {
  for (DType dtype : kFloats) {
    const Tensor q = Spread({2, 3, 4, 5}, -1, 1, 1).To(dtype);
    const Tensor k = Spread({2, 6, 2, 5}, -1, 1, 2).To(dtype);
    const Tensor v = Spread({2, 6, 2, 3}, -1, 1, 3).To(dtype);
    const Tensor y = Attention(q, k, v);
    ASSERT_EQ(y.shape(), (Shape{2, 3, 4, 3}));
    for (int h = 0; h < 4; ++h) {
      const Tensor alone = Attention(Slice(q, 2, h, 1), Slice(k, 2, h / 2, 1),
                                     Slice(v, 2, h / 2, 1));
      ExpectClose(Slice(y, 2, h, 1), alone, 1e-6, "head");
    }
  }
}

TEST(AttentionTest, DropoutIsOfTheWeights) {
  for (DType dtype : kFloats) {
    for (const auto& [name, path] : Paths()) {
      SCOPED_TRACE(name);
      Generator generator(4);
      Tape tape(generator);
      // With v = 1 an output is the sum of the weights that were kept, scaled.
      const Tensor zero = Tensor::Zeros({1, 8, 2, 1}, dtype);
      const Tensor one = Tensor::Ones({1, 8, 2, 1}, dtype);
      tape.Watch(zero);
      const std::vector<double> y =
          path(zero, zero, one, {.dropout = 0.5}).ToVector();
      double sum = 0;
      for (double v : y) {
        EXPECT_NEAR(v * 4, std::round(v * 4), 1e-5);  // k / 8 * 2
        sum += v;
      }
      EXPECT_NEAR(sum / 16, 1, 0.5);
      EXPECT_NE(y, std::vector<double>(16, 1));
      EXPECT_EQ(generator.offset(), 1u);
      EXPECT_THAT(path(zero, zero, one, {.dropout = 1}).ToVector(), Each(0));
      // The weights that are returned are those before dropout.
      EXPECT_THAT(AttentionWithWeights(zero, zero, one, {.dropout = 0.5})
                      .weights.ToVector(),
                  Each(0.125));
    }
    // Off without a training tape.
    const Tensor one = Tensor::Ones({1, 2, 1, 1}, dtype);
    EXPECT_THAT(Attention(one, one, one, {.dropout = 0.5}).ToVector(), Each(1));
    Tape tape;
    EXPECT_THAT(
        ErrorOf([&] { Attention(one, one, one, {.dropout = 0.5}); }),
        AllOf(StartsWith("Attention: dropout 0.5"), HasSubstr("Tape tape(")));
  }
}

TEST(AttentionTest, ScaleIsOneOverRootDByDefault) {
  ForEachPath([](DType dtype, const Path& path, bool) {
    const Tensor x = Spread({1, 3, 1, 4}, -2, 2).To(dtype);
    ExpectClose(path(x, x, x, {}), path(x, x, x, {.scale = 0.5}), 1e-6,
                "scale");
    EXPECT_GT(std::abs(path(x, x, x, {}).ToVector()[0] -
                       path(x, x, x, {.scale = 0.1}).ToVector()[0]),
              1e-3);
  });
}

// Scores in the thousands overflow an exp that is not taken from the maximum.
TEST(AttentionTest, LargeScores) {
  ForEachPath([](DType dtype, const Path& path, bool recorded) {
    const Tensor q = Values({1, 2, 1, 1}, {1e3, -1e3}, dtype);
    const Tensor v = Values({1, 2, 1, 1}, {1, 3}, dtype);
    const auto d =
        Differentiate([&](Inputs x) { return path(x[0], x[1], x[2], {}); },
                      {q, q.Clone(), v}, {}, recorded);
    EXPECT_THAT(d.value.ToVector(), ElementsAre(1, 3));
    EXPECT_THAT(d.gradients[2].ToVector(), ElementsAre(1, 1));
    for (double g : d.gradients[0].ToVector()) EXPECT_TRUE(std::isfinite(g));
  });
}

TEST(AttentionTest, Errors) {
  const Tensor x = Tensor::Zeros({2, 3, 4, 5});
  const auto zeros = [](const Shape& s) { return Tensor::Zeros(s); };
  for (const auto& [q, k, v] : std::vector<std::array<Tensor, 3>>{
           {x, zeros({1, 3, 4, 5}), zeros({1, 3, 4, 5})},  // batch
           {x, zeros({2, 3, 4, 6}), x},                    // D
           {x, x, zeros({2, 2, 4, 5})},                    // Tk
           {x, x, zeros({2, 3, 2, 5})},                    // Hkv of k and v
           {x, zeros({2, 3, 3, 5}), zeros({2, 3, 3, 5})},  // H % Hkv
           {x, zeros({2, 3, 0, 5}), zeros({2, 3, 0, 5})},
           {x, x, zeros({3, 4, 5})}}) {
    EXPECT_THAT(ErrorOf([&, q = q, k = k, v = v] { Attention(q, k, v); }),
                AllOf(StartsWith("Attention: q float32 [2, 3, 4, 5], k "),
                      HasSubstr(Describe(k)), HasSubstr(Describe(v)),
                      HasSubstr("wanted q [B, Tq, H, D], k [B, Tk, Hkv, D]")));
  }
  EXPECT_THAT(ErrorOf([&] { Attention(x, x, {}); }),
              StartsWith("Attention: got float32 [2, 3, 4, 5]"));
  const auto with = [&](const AttentionOptions& o) {
    return ErrorOf([&] { Attention(x, x, x, o); });
  };
  EXPECT_EQ(with({.key_mask = SomeTrue({3, 2})}),
            "Attention: key_mask bool [3, 2]; wanted bool [2, 3]");
  EXPECT_THAT(with({.key_mask = zeros({2, 3})}),
              StartsWith("Attention: key_mask float32 [2, 3]; wanted bool"));
  EXPECT_EQ(
      with({.mask = SomeTrue({3, 4})}),
      "Attention: mask bool [3, 4]; wanted bool that broadcasts to [B, H, "
      "Tq, Tk] = [2, 4, 3, 3]");
  EXPECT_THAT(with({.mask = zeros({3, 3})}),
              StartsWith("Attention: mask float32 [3, 3]; wanted bool"));
  EXPECT_EQ(with({.bias = zeros({2, 3, 3})}),
            "Attention: bias float32 [2, 3, 3]; wanted float32 that broadcasts "
            "to [B, H, Tq, Tk] = [2, 4, 3, 3]");
  EXPECT_THAT(with({.bias = zeros({3, 3}).To(DType::kFloat64)}),
              StartsWith("Attention: bias float64 [3, 3]; wanted float32"));
  EXPECT_THAT(with({.dropout = 1.5}),
              StartsWith("Attention: dropout probability 1.5"));
  EXPECT_EQ(
      ErrorOf([&] { PackedAttention(x); }),
      "PackedAttention: qkv float32 [2, 3, 4, 5]; wanted [B, T, 3, H, D]");
  EXPECT_THAT(ErrorOf([&] {
                PackedAttention(zeros({1, 2, 4, 1, 1}));
              }),
              StartsWith("PackedAttention: qkv float32 [1, 2, 4, 1, 1]"));
  EXPECT_THAT(ErrorOf([&] { PackedAttention({}); }),
              StartsWith("PackedAttention: got undefined"));
  EXPECT_THAT(
      ErrorOf([&] {
        PackedAttention(zeros({1, 2, 3, 1, 1}), {.key_mask = SomeTrue({2, 2})});
      }),
      HasSubstr("key_mask bool [2, 2]; wanted bool [1, 2]"));
}

TEST(AttentionTest, SameBitsForAnyNumberOfThreads) {
  for (DType dtype : kFloats) {
    const Tensor q = Spread({3, 70, 4, 33}, -1, 1, 1).To(dtype);
    const Tensor k = Spread({3, 91, 2, 33}, -1, 1, 2).To(dtype);
    AttentionOptions o{.causal = true};
    o.key_mask = SomeTrue({3, 91});
    ExpectSameBitsForThreads(
        [&](Inputs x) { return Attention(x[0], x[1], x[2], o); },
        {q, k, Spread({3, 91, 2, 21}, -1, 1, 3).To(dtype)});
    ExpectSameBitsForThreads(
        [&](Inputs x) { return PackedAttention(x[0], {.causal = true}); },
        {Spread({2, 67, 3, 3, 20}, -1, 1).To(dtype)});
  }
}

}  // namespace
}  // namespace wengert
