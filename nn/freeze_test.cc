// Frozen parameters: ParameterStore::Freeze and Unfreeze.
#include <string>
#include <vector>

#include "autograd/tape_observer.h"
#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"
#include "nn/linear.h"
#include "nn/nn.h"

namespace wengert::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Model {
  Model(Params p) : up(p.Sub("up"), 3, 4), down(p.Sub("down"), 4, 2) {}
  Tensor operator()(const Tensor& x) const { return down(Tanh(up(x))); }
  Linear up, down;
};

// The layers whose rules ran, and what they had to compute.
struct Rules : TapeObserver {
  void OnRuleBegin(const RuleEvent& event) override {
    std::string rule = event.layer ? *event.layer : event.op;
    for (const Shape* shape : event.wanted) rule += shape ? " 1" : " 0";
    seen.push_back(rule);
  }
  std::vector<std::string> seen;
};

// Runs a step backward and returns the rules that it took.
std::vector<std::string> Backward(const Model& model) {
  Rules rules;
  Tape tape;
  tape.set_observer(&rules);
  tape.Backward(Sum(model(RandomTensor({5, 3}, 1, model.up.weight().dtype()))));
  return rules.seen;
}

TEST(FreezeTest, NothingIsComputedForAFrozenParameter) {
  ParameterStore store;
  const Model model(store.root());
  EXPECT_THAT(Backward(model),
              ElementsAre("Sum 1", "down 1 1 1", "Tanh 1", "up 0 1 1"));
  store.ZeroGrad();
  store.Freeze("down.*");
  EXPECT_THAT(Backward(model),
              ElementsAre("Sum 1", "down 1 0 0", "Tanh 1", "up 0 1 1"));
  EXPECT_FALSE(model.down.weight().grad().defined());
  EXPECT_FALSE(model.down.bias().grad().defined());
  EXPECT_TRUE(model.up.weight().grad().defined());
  store.Unfreeze("down.weight");
  store.Freeze("up.*");
  EXPECT_THAT(Backward(model), ElementsAre("Sum 1", "down 0 1 0"));
  EXPECT_TRUE(model.down.weight().grad().defined());
  EXPECT_FALSE(model.up.weight().grad().defined());  // dropped
}

// What lies before the first trained parameter is not even recorded.
TEST(FreezeTest, AFrozenBeginningIsNotRecorded) {
  ParameterStore store;
  const Model model(store.root());
  const Tensor x = RandomTensor({5, 3}, 1, DType::kFloat32);
  const auto records = [&] {
    Tape tape;
    model(x);
    return tape.size();
  };
  EXPECT_EQ(records(), 3u);
  store.Freeze("up*");
  EXPECT_EQ(records(), 1u);
  store.Freeze("*");
  EXPECT_EQ(records(), 0u);
  Tape tape;
  EXPECT_THAT(ErrorOf([&] { tape.Backward(Sum(model(x))); }),
              HasSubstr("frozen"));
  store.Unfreeze("*");
  EXPECT_EQ(records(), 3u);
}

TEST(FreezeTest, TheOthersGradientsAreThoseOfBefore) {
  ParameterStore store(DType::kFloat64, 1);
  const Model model(store.root());
  const Tensor x = RandomTensor({5, 3}, 1);
  const auto gradient = [&] {
    Tape tape;
    return tape.Gradient(Sum(Square(model(x))), model.up.weight());
  };
  const Tensor before = gradient();
  store.Freeze("down.*");
  store.Freeze("up.bias");
  EXPECT_TRUE(SameBits(gradient(), before));
  // To any order, by an input too.
  EXPECT_TRUE(GradCheck([&](auto in) { return model(in[0]); },
                        {x, model.up.weight()}, {.order = 2}));
}

TEST(FreezeTest, HoldsForWhatWasRecordedBefore) {
  ParameterStore store;
  const Model model(store.root());
  const Tensor x = RandomTensor({5, 3}, 1, DType::kFloat32);
  Tape tape;
  const Tensor loss = Sum(model(x));
  store.Freeze("down.weight");
  tape.Backward(loss);
  EXPECT_FALSE(model.down.weight().grad().defined());
  EXPECT_TRUE(model.down.bias().grad().defined());
  // And a constant of a tape stays one.
  const Tensor again = Sum(model(x));
  store.Unfreeze("down.weight");
  tape.Backward(again);
  EXPECT_FALSE(model.down.weight().grad().defined());
}

TEST(FreezeTest, AWatchedOneMayBeAskedFor) {
  ParameterStore store;
  const Model model(store.root());
  const Tensor x = RandomTensor({5, 3}, 1, DType::kFloat32);
  const auto gradient = [&](Tape& tape) {
    return tape.Gradient(Sum(model(x)), model.down.weight(), {.retain = true});
  };
  Tape open;
  const Tensor wanted = gradient(open);
  store.Freeze("down.weight");
  Tape tape;
  tape.Watch(model.down.weight());
  EXPECT_TRUE(SameBits(gradient(tape), wanted));
  tape.Backward(Sum(model(x)));
  EXPECT_FALSE(model.down.weight().grad().defined());
}

TEST(FreezeTest, DropsWhatWasGathered) {
  ParameterStore store;
  const Model model(store.root());
  Backward(model);
  store.Freeze("up.weight");
  EXPECT_FALSE(model.up.weight().grad().defined());
  EXPECT_TRUE(model.up.bias().grad().defined());
  store.Unfreeze("up.weight");
  EXPECT_FALSE(model.up.weight().grad().defined());
}

TEST(FreezeTest, ATiedParameterHasOneState) {
  ParameterStore store;
  const Tensor words = store.root().Zeros("words", {3, 2});
  store.root().Tied("head.weight", words);
  store.Freeze("head.*");
  EXPECT_TRUE(store.parameters()[0]->frozen());
  store.Unfreeze("words");
  EXPECT_FALSE(store.parameters()[0]->frozen());
}

TEST(FreezeTest, AClonesParametersAreFrozenAlike) {
  ParameterStore store;
  const Model model(store.root());
  store.Freeze("up.*");
  ParameterStore clone = store.Clone();
  const Model copy(clone.root());
  EXPECT_THAT(Backward(copy), ElementsAre("Sum 1", "down 0 1 1"));
  // Each has a state of its own, which values do not carry over.
  clone.Unfreeze("*");
  EXPECT_TRUE(store.parameters()[0]->frozen());
  clone.CopyFrom(store);
  for (const Parameter* p : clone.parameters()) EXPECT_FALSE(p->frozen());
  store.CopyFrom(clone);
  EXPECT_TRUE(store.parameters()[0]->frozen());
}

TEST(FreezeTest, TheTableSaysSo) {
  ParameterStore store;
  const Model model(store.root());
  EXPECT_THAT(store.Table(), Not(HasSubstr("frozen")));
  store.Freeze("up.bias");
  EXPECT_THAT(store.Table(), HasSubstr("up.bias      [4] frozen"));
  EXPECT_THAT(store.Table(), Not(HasSubstr("[4, 3] frozen")));
}

TEST(FreezeTest, RefusesWhatMatchesNothing) {
  ParameterStore store;
  EXPECT_THAT(ErrorOf([&] { store.Freeze("*"); }), HasSubstr("there are none"));
  const Model model(store.root());
  EXPECT_THAT(ErrorOf([&] { store.Freeze("up.wieght"); }),
              HasSubstr("ParameterStore::Freeze: no parameter matches "
                        "'up.wieght'; the nearest is 'up.weight'"));
  EXPECT_THAT(ErrorOf([&] { store.Unfreeze("up"); }),
              HasSubstr("ParameterStore::Unfreeze: no parameter matches 'up'"));
  for (const Parameter* p : store.parameters()) EXPECT_FALSE(p->frozen());
}

}  // namespace
}  // namespace wengert::nn
