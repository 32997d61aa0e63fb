// State of optimizers is saved and restored by name, with the options, wholly
// or not at all.
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/adam.h"
#include "train/optimizer.h"
#include "train/optimizer_testlib.h"
#include "train/sgd.h"

namespace wengert::train {
namespace {

using nn::ParameterStore;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(OptimizerState, KeepsStateByName) {
  ParameterStore store(DType::kFloat64);
  const Tensor a = store.root().Ones("a", {2}), b = store.root().Ones("b", {2});
  Sgd optimizer(store, {.lr = 0.25,
                        .momentum = 0.5,
                        .nesterov = true,
                        .weight_decay = 0.125,
                        .decay_filter = IsMatrix});
  AddGradient(a, {1, 1});
  AddGradient(b, {5, 5});
  optimizer.Step();

  ParameterStore other(DType::kFloat64);  // lists b first
  const Tensor other_b = other.root().Zeros("b", {2}),
               other_a = other.root().Zeros("a", {2});
  Sgd restored(other, {.lr = 1});
  restored.Load(optimizer.State());
  const OptimizerState state = restored.State();
  EXPECT_THAT(state.parameters.at("a").tensors.at("momentum").ToVector(),
              ElementsAre(1, 1));
  EXPECT_THAT(state.parameters.at("b").tensors.at("momentum").ToVector(),
              ElementsAre(5, 5));
  EXPECT_EQ(state.parameters.at("a").step, 1);
  EXPECT_FALSE(state.parameters.at("a").decay);
  EXPECT_EQ(state.options, optimizer.State().options);
  EXPECT_EQ(restored.lr(), 0.25);
  other.CopyFrom(store);
  for (const Tensor& w : {a, b, other_a, other_b}) AddGradient(w, {1, 2});
  optimizer.Step();
  restored.Step();
  EXPECT_EQ(other_a.ToVector(), a.ToVector());
  EXPECT_EQ(other_b.ToVector(), b.ToVector());
}

TEST(OptimizerState, AStateIsACopyAndATiedNameFindsIt) {
  ParameterStore store;
  const Tensor a = store.root().Ones("a", {2});
  store.root().Tied("b", a);
  Adam optimizer(store);
  AddGradient(a, {1, 1});
  optimizer.Step();
  const OptimizerState state = optimizer.State();
  EXPECT_EQ(state.parameters.size(), 1u);
  const auto m = state.parameters.at("a").tensors.at("m").ToVector();
  AddGradient(a, {1, 1});
  optimizer.Step();
  EXPECT_EQ(state.parameters.at("a").tensors.at("m").ToVector(), m);

  ParameterStore other;  // b is the first of the two names
  other.root().Tied("a", other.root().Ones("b", {2}));
  Adam restored(other);
  restored.Load(state);
  EXPECT_EQ(restored.State().parameters.at("b").tensors.at("m").ToVector(), m);
  OptimizerState twice = state;
  twice.parameters["b"] = twice.parameters["a"];
  EXPECT_THAT([&] { restored.Load(twice); },
              ThrowsMessage<Error>(HasSubstr("tied")));
}

TEST(OptimizerState, SharesItsMemory) {
  ParameterStore store;
  const Tensor a = store.root().Ones("a", {2});
  Adam optimizer(store);
  OptimizerState shared = optimizer.SharedState();
  AddGradient(a, {1, 1});
  optimizer.Step();
  Tensor& m = shared.parameters.at("a").tensors.at("m");
  EXPECT_EQ(m.ToVector(),
            optimizer.State().parameters.at("a").tensors.at("m").ToVector());
  m.mutable_data<float>()[1] = 7;
  shared.parameters.at("a").step = 5;
  optimizer.Load(shared);
  const OptimizerState state = optimizer.State();
  EXPECT_EQ(state.parameters.at("a").tensors.at("m").ToVector()[1], 7);
  EXPECT_EQ(state.parameters.at("a").step, 5);
}

TEST(OptimizerState, LoadListsEveryFaultAndChangesNothing) {
  ParameterStore store;
  const Tensor a = store.root().Ones("a", {2}), b = store.root().Ones("b", {3});
  AdamW optimizer(store, {.lr = 0.5});
  AddGradient(a, {1, 1});
  optimizer.Step();
  const OptimizerState good = optimizer.State();
  const auto expect_refused = [&](const OptimizerState& bad, auto matcher) {
    EXPECT_THAT([&] { optimizer.Load(bad); }, ThrowsMessage<Error>(matcher));
    const OptimizerState after = optimizer.State();
    EXPECT_EQ(after.options, good.options);
    for (const auto& [name, entry] : good.parameters) {
      EXPECT_EQ(after.parameters.at(name).step, entry.step);
      for (const auto& [tensor, value] : entry.tensors) {
        EXPECT_EQ(after.parameters.at(name).tensors.at(tensor).ToVector(),
                  value.ToVector());
      }
    }
  };
  OptimizerState bad = good;
  bad.kind = "Sgd";
  bad.options.erase("eps");
  bad.options["momentum"] = 0;
  bad.parameters["c"] = bad.parameters["b"];
  bad.parameters.erase("b");
  bad.parameters["a"].step = -1;
  bad.parameters["a"].tensors["m"] = Tensor::Ones({3});
  bad.parameters["a"].tensors.erase("v");
  bad.parameters["a"].tensors["momentum"] = Tensor::Ones({2});
  expect_refused(
      bad, AllOf(HasSubstr("there is no 'momentum' of 'a'"),
                 HasSubstr("AdamW.Load: the state is one of Sgd"),
                 HasSubstr("the option 'eps' is missing"),
                 HasSubstr("no option 'momentum'"),
                 HasSubstr("the store has no 'c'"),
                 HasSubstr("the state has no 'b'"), HasSubstr("-1 updates"),
                 HasSubstr("'m' of 'a' is float32 [3]; wanted float32 [2]"),
                 HasSubstr("'v' of 'a' is undefined")));
  for (const auto& [option, value] :
       {std::pair("beta1", 1.), {"eps", 0.}, {"lr", -1.}}) {
    bad = good;
    bad.parameters["a"].step = 9;
    bad.options[option] = value;
    bad.options["weight_decay"] = 0.5;
    expect_refused(bad, HasSubstr(absl::StrCat("AdamW: ", option, " is ")));
  }
}

TEST(OptimizerState, ARunGoesOnWhereItWasSaved) {
  const auto train = [](ParameterStore& store, Optimizer& optimizer, int from,
                        int to) {
    for (int step = from; step < to; ++step) {
      for (const Parameter* p : store.parameters()) {
        AddGradient(p->value, RandomGradient(p->value, step));
      }
      optimizer.Step();
    }
  };
  ParameterStore straight, half;
  for (ParameterStore* store : {&straight, &half}) {
    store->root().Uniform("a", {17}, 1);
    store->root().Uniform("b", {3}, 1);
  }
  AdamW optimizer(straight, {.lr = 0.1}), first(half, {.lr = 0.1});
  train(straight, optimizer, 0, 10);
  train(half, first, 0, 5);
  ParameterStore copy = half.Clone();
  AdamW second(copy);
  second.Load(first.State());
  train(copy, second, 5, 10);
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(copy.Find(name).ToVector(), straight.Find(name).ToVector());
  }
}

}  // namespace
}  // namespace wengert::train
