// Ties, the printed table, and copies of whole stores.
#include <cstdint>

#include "autograd/error.h"
#include "autograd/ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/parameter_store.h"

namespace wengert::nn {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ParameterStore, TiesNames) {
  ParameterStore store;
  const Tensor a = store.root().Sub("embed").Ones("weight", {2, 3});
  const Tensor b = store.root().Sub("head").Tied("weight", a);
  EXPECT_EQ(a.impl(), b.impl());
  EXPECT_EQ(store.size(), 1);
  EXPECT_EQ(store.num_elements(), 6);
  EXPECT_EQ(store.Find("head.weight").impl(), a.impl());
  EXPECT_EQ(store.parameters()[0]->name, "embed.weight");
  Tape tape;
  tape.Backward(Sum(a * 3) + Sum(b * 5));
  EXPECT_THAT(a.grad().ToVector(), Each(8));

  EXPECT_THAT([&] { store.root().Tied("embed.weight", a); },
              ThrowsMessage<Error>(HasSubstr("exists already")));
  EXPECT_THAT(
      [&] {
        store.root().Ones("head.weight", {2, 3});
      },
      ThrowsMessage<Error>(HasSubstr("exists already")));
  EXPECT_THAT([&] { store.root().Tied("c", Tensor::Ones({2})); },
              ThrowsMessage<Error>(HasSubstr("float32 [2], which is no")));
  ParameterStore other;
  const Tensor theirs = other.root().Ones("x", {});
  EXPECT_THROW(store.root().Tied("c", theirs), Error);
  EXPECT_THROW(store.root().Tied("c", Tensor()), Error);
}

TEST(ParameterStore, PrintsATable) {
  ParameterStore store;
  const Tensor weight = store.root().Sub("embed").Zeros("weight", {27, 12});
  store.root().Sub("layers").Sub(0).Zeros("gain", {12});
  store.root().Sub("head").Tied("weight", weight);
  store.root().Zeros("scale", {});
  EXPECT_EQ(store.Table(),
            "parameter      shape           count\n"
            "embed.weight   [27, 12]          324\n"
            "layers.0.gain  [12]               12\n"
            "head.weight    = embed.weight\n"
            "scale          []                  1\n"
            "total                            337\n");
  EXPECT_EQ(ParameterStore().Table(),
            "parameter  shape  count\n"
            "total                 0\n");
}

TEST(ParameterStore, ClonesValuesAndTies) {
  ParameterStore store(DType::kFloat64, 3);
  Tensor a = store.root().Uniform("a", {5}, 1);
  store.root().Tied("b", a);
  const auto start = a.ToVector();
  a.mutable_data<double>()[0] = 42;
  Tape tape;
  tape.Backward(Sum(a));

  ParameterStore clone = store.Clone();
  EXPECT_EQ(clone.dtype(), DType::kFloat64);
  EXPECT_EQ(clone.seed(), 3u);
  EXPECT_EQ(clone.Table(), store.Table());
  EXPECT_EQ(clone.Find("b").ToVector(), a.ToVector());
  EXPECT_EQ(clone.Find("b").impl(), clone.Find("a").impl());
  EXPECT_NE(clone.Find("a").impl(), a.impl());
  EXPECT_FALSE(clone.Find("a").grad().defined());
  a.mutable_data<double>()[0] = 43;
  EXPECT_EQ(clone.Find("a").ToVector()[0], 42);
}

TEST(ParameterStore, ALayerTakesUpAClonesParameters) {
  const auto build = [](const Params& p) {
    const Tensor a = p.Sub("x").Uniform("a", {5}, 1);
    p.Tied("b", a);
    return a;
  };
  ParameterStore store;
  Tensor a = build(store.root());
  a.mutable_data<float>()[0] = 42;
  ParameterStore clone = store.Clone();
  const Tensor theirs = build(clone.root());
  EXPECT_EQ(theirs.impl(), clone.Find("x.a").impl());
  EXPECT_EQ(theirs.ToVector(), a.ToVector());
  EXPECT_EQ(clone.size(), 1);
  EXPECT_THAT([&] { clone.root().Sub("x").Uniform("a", {5}, 1); },
              ThrowsMessage<Error>(HasSubstr("exists already")));
  EXPECT_THAT([&] { clone.root().Tied("b", theirs); },
              ThrowsMessage<Error>(HasSubstr("exists already")));

  // New names start as they would in any store of that seed.
  const Tensor c = clone.root().Uniform("c", {4}, 1);
  EXPECT_EQ(c.ToVector(), store.root().Uniform("c", {4}, 1).ToVector());

  ParameterStore again = store.Clone();
  EXPECT_THAT([&] { again.root().Zeros("x.a", {6}); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("'x.a' is [5]"), HasSubstr("wanted [6]"))));
  EXPECT_THAT([&] { again.root().Zeros("b", {5}); },
              ThrowsMessage<Error>(HasSubstr("'b' is = x.a")));
  const Tensor taken = again.root().Zeros("c", {4});
  EXPECT_THAT([&] { again.root().Tied("b", taken); },
              ThrowsMessage<Error>(HasSubstr("wanted = c")));
}

TEST(ParameterStore, CopiesByName) {
  ParameterStore from, to;
  from.root().Constant("a", {2}, 1);
  from.root().Constant("b", {3}, 2);
  const Tensor b = to.root().Zeros("b", {3}), a = to.root().Zeros("a", {2});
  const uint64_t a_version = a.version(), b_version = b.version();
  to.CopyFrom(from);
  EXPECT_THAT(a.ToVector(), Each(1));
  EXPECT_THAT(b.ToVector(), Each(2));
  EXPECT_GT(a.version(), a_version);
  EXPECT_GT(b.version(), b_version);
}

TEST(ParameterStore, CopyListsEveryDifferenceAndChangesNothing) {
  ParameterStore from, to;
  for (ParameterStore* store : {&from, &to}) {
    const bool is_from = store == &from;
    store->root().Constant("a", {2}, is_from);
    store->root().Constant("b", {is_from ? 3 : 4}, is_from);
    store->root().Constant(is_from ? "c" : "d", {1}, is_from);
  }
  to.root().Tied("e", to.Find("a"));
  from.root().Constant("e", {2}, 1);
  EXPECT_THAT(
      [&] { to.CopyFrom(from); },
      ThrowsMessage<Error>(AllOf(HasSubstr("'b' is [4] here and [3] there"),
                                 HasSubstr("'c' is missing here"),
                                 HasSubstr("'d' is missing there"),
                                 HasSubstr("'e' is = a here and [2] there"))));
  for (const Parameter* p : to.parameters()) {
    EXPECT_THAT(p->value.ToVector(), Each(0));
  }
  ParameterStore doubles(DType::kFloat64);
  EXPECT_THAT([&] { doubles.CopyFrom(ParameterStore()); },
              ThrowsMessage<Error>(AllOf(HasSubstr("float64 here"),
                                         HasSubstr("float32 there"))));
}

}  // namespace
}  // namespace wengert::nn
