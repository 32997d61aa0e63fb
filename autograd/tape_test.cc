#include "autograd/tape.h"

#include <cmath>
#include <limits>
#include <memory>
#include <thread>

#include "autograd/error.h"
#include "autograd/ops.h"
#include "autograd/parallel.h"
#include "autograd/parameter_testlib.h"
#include "autograd/storage.h"
#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Tensor D(const Shape& shape, std::initializer_list<double> values) {
  return Tensor::Of<double>(shape, values);
}

class TapeTest : public ::testing::Test {
 protected:
  Tensor Param(const std::string& name, const Tensor& x) {
    return store_.Add(name, x);
  }
  TestStore store_;
};

TEST_F(TapeTest, NothingIsRecordedWithoutATapeOrATrackedInput) {
  const Tensor p = Param("p", D({}, {2}));
  const Tensor y = p * 3.0;
  EXPECT_EQ(y.impl()->tape, 0u);
  Tape tape;
  const Tensor constant = D({}, {1}) * 3.0;
  EXPECT_EQ(tape.size(), 0u);
  const Tensor z = p * 3.0;
  EXPECT_EQ(tape.size(), 1u);
}

TEST_F(TapeTest, BackwardAddsIntoParameters) {
  const Tensor w = Param("w", D({}, {2}));
  EXPECT_FALSE(w.grad().defined());
  for (int batch = 1; batch <= 2; ++batch) {  // micro-batches add
    Tape tape;
    tape.Backward(w * 3.0 + w * 5.0);
    EXPECT_EQ(w.grad().item(), 8 * batch);
  }
  store_.MarkUsed();  // readable, and the next write stores
  EXPECT_EQ(w.grad().item(), 16);
  Tape tape;
  tape.Backward(w * 3.0);
  EXPECT_EQ(w.grad().item(), 3);
}

TEST_F(TapeTest, BackwardOnAParameterItselfAddsOne) {
  const Tensor w = Param("w", D({1}, {2}));
  Tape tape;
  tape.Backward(w);
  tape.Backward(w);
  EXPECT_EQ(w.grad().item(), 2);
}

TEST_F(TapeTest, ParameterWithoutPathGetsNoGradient) {
  const Tensor w = Param("w", D({}, {2})), other = Param("o", D({}, {3}));
  Tape tape;
  const Tensor unused = other * 2.0;
  tape.Backward(w * 3.0);
  EXPECT_FALSE(other.grad().defined());
}

TEST_F(TapeTest, Cotangent) {
  const Tensor w = Param("w", D({2}, {2, 3}));
  Tape tape;
  tape.Backward(w * w, D({2}, {10, 100}));
  EXPECT_THAT(w.grad().ToVector(), ElementsAre(40, 600));
  const Tensor y = w * w;
  EXPECT_THAT(ErrorOf([&] { tape.Backward(y); }),
              AllOf(StartsWith("Backward: "), HasSubstr("float64 [2]"),
                    HasSubstr("cotangent")));
  EXPECT_THAT(ErrorOf([&] { tape.Backward(y, D({1}, {1})); }),
              AllOf(HasSubstr("float64 [1]"), HasSubstr("float64 [2]")));
}

TEST_F(TapeTest, GradientLeavesGradAloneAndGivesZeros) {
  const Tensor w = Param("w", D({2}, {2, 3})),
               v = Param("v", D({3}, {1, 1, 1}));
  Tape tape;
  const Tensor h = w * w;
  const auto g = tape.Gradient(Sum(h * 2.0), {w, v, h});
  EXPECT_THAT(g[0].ToVector(), ElementsAre(8, 12));
  EXPECT_THAT(g[1].ToVector(), ElementsAre(0, 0, 0));
  EXPECT_THAT(g[2].ToVector(), ElementsAre(2, 2));
  EXPECT_FALSE(w.grad().defined());
}

TEST_F(TapeTest, GradientOfYItselfIsTheCotangent) {
  const Tensor w = Param("w", D({2}, {2, 3}));
  Tape tape;
  const Tensor y = w * w;
  const auto g = tape.Gradient(y, {y, w, y}, {.cotangent = D({2}, {1, 10})});
  EXPECT_THAT(g[0].ToVector(), ElementsAre(1, 10));
  EXPECT_THAT(g[1].ToVector(), ElementsAre(4, 60));
  EXPECT_THAT(g[2].ToVector(), ElementsAre(1, 10));
}

TEST_F(TapeTest, WatchMakesALeaf) {
  const Tensor x = D({2}, {1, 2});
  Tape tape;
  EXPECT_THAT(
      ErrorOf([&] { tape.Gradient(Sum(x * x), x); }),
      AllOf(StartsWith("Gradient: xs[0] (float64 [2])"), HasSubstr("watch")));
  tape.Watch(x);
  EXPECT_THAT(tape.Gradient(Sum(x * x), x).ToVector(), ElementsAre(2, 4));
  EXPECT_THAT(ErrorOf([&] { tape.Watch(Tensor::Of<int64_t>({1}, {1})); }),
              HasSubstr("int64 [1]"));
}

TEST_F(TapeTest, WatchOfWhatThisTapeMadeBeforeItWasEmptied) {
  const Tensor w = Param("w", D({}, {2}));
  Tape tape;
  const Tensor h = w * w;
  tape.Watch(h);  // is recorded, so nothing is to be done
  tape.Backward(h);
  EXPECT_THAT(ErrorOf([&] { tape.Watch(h); }),
              AllOf(StartsWith("Watch: float64 []"), HasSubstr("Detach")));
  const Tensor carried = h.Detach();
  tape.Watch(carried);
  EXPECT_EQ(tape.Gradient(carried * carried, carried).item(), 8);
}

TEST_F(TapeTest, ManyWatchedTensors) {
  std::vector<Tensor> xs;
  Tape tape;
  for (int i = 0; i < 500; ++i) {
    xs.push_back(D({}, {static_cast<double>(i)}));
    tape.Watch(xs.back());
  }
  Tensor sum = xs[0] * 0.0;
  for (const Tensor& x : xs) sum = sum + x * x;
  const auto g = tape.Gradient(sum, xs);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(g[i].item(), 2 * i);
}

TEST_F(TapeTest, UsedTapeIsAnErrorThatNamesTheOperation) {
  const Tensor w = Param("w", D({}, {2}));
  Tape tape;
  const Tensor h = w * w, y = h * 3.0;
  tape.Backward(y);
  EXPECT_EQ(tape.size(), 0u);
  EXPECT_THAT(ErrorOf([&] { tape.Backward(y); }), HasSubstr("used"));
  const Tensor later = h * w;  // recording it is no mistake yet
  EXPECT_THAT(ErrorOf([&] { tape.Backward(later); }),
              AllOf(HasSubstr("input 0 of Mul"), HasSubstr("retain")));
  EXPECT_EQ(w.grad().item(), 12) << "a refused pass changes nothing";
  tape.Backward(w * 1.0);  // the tape lives on
  EXPECT_EQ(w.grad().item(), 13);
}

TEST_F(TapeTest, RetainedPassesAdd) {
  const Tensor w = Param("w", D({}, {2}));
  Tape tape;
  const Tensor y = w * w;
  tape.Backward(y, {.retain = true});
  tape.Backward(y, {.retain = true});
  EXPECT_EQ(w.grad().item(), 8);
  tape.Backward(y);
  EXPECT_EQ(w.grad().item(), 12);
  EXPECT_EQ(tape.size(), 0u);
}

TEST_F(TapeTest, WhyATensorHasNoGradient) {
  const Tensor w = Param("w", D({}, {2}));
  Tape outer;
  const Tensor h = w * w;
  {
    Tape inner;
    EXPECT_THAT(ErrorOf([&] { inner.Backward(h); }), HasSubstr("another tape"));
    Tensor paused;
    {
      Tape::Pause pause;
      paused = w * 2.0;
    }
    EXPECT_THAT(ErrorOf([&] { inner.Backward(paused); }),
                HasSubstr("not recorded"));
    EXPECT_THAT(ErrorOf([&] { inner.Backward(Tensor()); }),
                HasSubstr("undefined"));
  }
}

TEST_F(TapeTest, TensorsOfAnOuterTapeAreConstantsInside) {
  const Tensor w = Param("w", D({}, {3}));
  Tape outer;
  const Tensor h = w * w;
  {
    Tape inner;
    inner.Backward(h * w);  // h is 9
    EXPECT_EQ(w.grad().item(), 9);
  }
  store_.ZeroGrad();
  outer.Backward(h * w);
  EXPECT_EQ(w.grad().item(), 27);
}

TEST_F(TapeTest, TheOuterTapeWaitsForTheInnerOne) {
  const Tensor w = Param("w", D({}, {3}));
  Tape outer;
  const Tensor y = w * w;
  Tape inner;
  EXPECT_THAT(ErrorOf([&] { outer.Backward(y); }), HasSubstr("still live"));
}

TEST_F(TapeTest, EndingOutOfOrderIsReportedAndHarmless) {
  const Tensor w = Param("w", D({}, {3}));
  auto outer = std::make_unique<Tape>();
  auto inner = std::make_unique<Tape>();
  outer.reset();
  EXPECT_THAT(ErrorOf([&] { inner->Backward(w * w); }),
              HasSubstr("reverse order"));
  inner.reset();
  EXPECT_EQ(Tape::Current(), nullptr);
  Tape tape;
  tape.Backward(w * w);
  EXPECT_EQ(w.grad().item(), 6);
}

TEST_F(TapeTest, StaysOnItsThread) {
  const Tensor w = Param("w", D({}, {3}));
  auto tape = std::make_unique<Tape>();
  const Tensor y = w * w;
  std::thread([&] {
    EXPECT_THAT(ErrorOf([&] { tape->Backward(y); }), HasSubstr("thread"));
    tape.reset();  // ending elsewhere leaves nothing behind
  }).join();
  EXPECT_EQ(Tape::Current(), nullptr);
  EXPECT_EQ((w * w).impl()->tape, 0u);
}

TEST_F(TapeTest, PauseNests) {
  const Tensor w = Param("w", D({}, {3}));
  Tape tape;
  {
    Tape::Pause a;
    { Tape::Pause b; }
    EXPECT_FALSE(tape.recording());
    const Tensor h = w * w;
    EXPECT_EQ(tape.size(), 0u);
    Tape inner;  // a tape inside records all the same
    inner.Backward(w * w);
  }
  EXPECT_EQ(w.grad().item(), 6);
  EXPECT_TRUE(tape.recording());
}

TEST_F(TapeTest, SharedCotangentIsNeverWrittenInPlace) {
  const Tensor p = Param("p", D({}, {.7})), q = Param("q", D({}, {.4}));
  Tape tape;
  const Tensor a = p * 2.0, b = q * 3.0;
  tape.Backward(Sum(Gelu(a) + (a + b)));
  EXPECT_EQ(q.grad().item(), 3);
}

TEST_F(TapeTest, UsersCotangentAndResultsKeepTheirValues) {
  const Tensor x = D({2}, {1, 2}), c = D({2}, {1, 1});
  Tape tape;
  tape.Watch(x);
  const Tensor h = x * 1.0, y = h + Gelu(h);
  const auto g = tape.Gradient(y, {x, h, y}, {.retain = true, .cotangent = c});
  const auto before = g[1].ToVector();
  tape.Gradient(y, {x, h}, {.cotangent = c});
  EXPECT_THAT(c.ToVector(), ElementsAre(1, 1));
  EXPECT_EQ(g[1].ToVector(), before);
}

TEST_F(TapeTest, RepeatedInputOfAFusedOperation) {
  // The same tensor as x and as weight: both contributions, no overlap.
  const Tensor w = Param("w", D({2, 2}, {1, 2, 3, 4}));
  Tape tape;
  tape.Backward(Sum(Linear(w, w)));
  const Tensor fused = w.grad().Clone();
  store_.ZeroGrad();
  tape.Backward(Sum(LinearComposed(w, w)));
  EXPECT_EQ(fused.ToVector(), w.grad().ToVector());
  store_.ZeroGrad();
  const Tensor x = Param("x", D({1, 2, 1, 2}, {1, 2, 3, 5}));
  tape.Backward(Sum(Square(Attention(x, x, x))));
  const Tensor attention = x.grad().Clone();
  store_.ZeroGrad();
  tape.Backward(Sum(Square(AttentionWithWeights(x, x, x).out)));
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(attention.ToVector()[i], x.grad().ToVector()[i], 1e-12);
  }
}

TEST_F(TapeTest, HigherOrders) {
  const Tensor x = Param("x", D({}, {1.3}));
  Tape tape;
  const Tensor y = Pow(x, 4);
  Tensor d = y;
  double want = std::pow(1.3, 4);
  for (int order = 1; order <= 6; ++order) {
    d = tape.Gradient(d, x, {.create_graph = true});
    want = order > 4 ? 0 : want * (5 - order) / 1.3;
    EXPECT_NEAR(d.item(), want, 1e-12) << "order " << order;
  }
}

TEST_F(TapeTest, FusedOperationToTheThirdOrder) {
  const Tensor x = Param("x", D({}, {.7}));
  const auto g = [](double v) {
    const double u = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
    return .5 * v * (1 + std::tanh(u));
  };
  const double h = 1e-3;
  Tape tape;
  const Tensor d1 = tape.Gradient(GeluTanh(x), x, {.create_graph = true});
  const Tensor d2 = tape.Gradient(d1, x, {.create_graph = true});
  const Tensor d3 = tape.Gradient(d2, x, {.create_graph = true});
  EXPECT_NEAR(d1.item(), (g(.7 + h) - g(.7 - h)) / (2 * h), 1e-6);
  EXPECT_NEAR(d2.item(), (g(.7 + h) - 2 * g(.7) + g(.7 - h)) / (h * h), 1e-5);
  EXPECT_NEAR(d3.item(),
              (g(.7 + 2 * h) - 2 * g(.7 + h) + 2 * g(.7 - h) - g(.7 - 2 * h)) /
                  (2 * h * h * h),
              1e-4);
}

TEST_F(TapeTest, GradientPenaltyTrainsParameters) {
  // L = (d/dx w x²)² = 4 w² x²: dL/dw = 8 w x².
  const Tensor w = Param("w", D({}, {3}));
  const Tensor x = D({}, {2});
  Tape tape;
  tape.Watch(x);
  const Tensor dx = tape.Gradient(w * Square(x), x, {.create_graph = true});
  tape.Backward(Square(dx));
  EXPECT_EQ(w.grad().item(), 8 * 3 * 4);
}

TEST_F(TapeTest, DerivativeThroughTheCotangent) {
  // Gradient(y, x, c) with y = x² is 2 x c, whose derivative in c is 2 x.
  const Tensor x = D({2}, {3, 4}), c = D({2}, {1, 1});
  Tape tape;
  tape.Watch(x);
  tape.Watch(c);
  const Tensor g =
      tape.Gradient(Square(x), x, {.create_graph = true, .cotangent = c});
  EXPECT_THAT(tape.Gradient(Sum(g), c).ToVector(), ElementsAre(6, 8));
}

TEST_F(TapeTest, SavedVersionsAreCheckedBeforeAnyRuleRuns) {
  Tensor w = Param("w", D({}, {2}));
  const Tensor v = Param("v", D({}, {5}));
  Tape tape;
  const Tensor y = w * v + v * 1.0;
  w.mutable_data<double>()[0] = 7;
  EXPECT_THAT(ErrorOf([&] { tape.Backward(y); }),
              AllOf(StartsWith("Backward: Mul saved float64 []"),
                    HasSubstr("parameter w"), HasSubstr("version 0")));
  EXPECT_FALSE(v.grad().defined());
  EXPECT_FALSE(store_.owner().gradients_invalid);
}

TEST_F(TapeTest, SavedVersionsAreCheckedAgainBeforeEachRule) {
  // The gradient of an earlier pass stands in the loss as a constant, and this
  // pass adds to it before it is read for the last time.
  const Tensor w = Param("w", D({}, {3}));
  Tape tape;
  tape.Backward(w * 1.0);
  const Tensor g = w.grad();
  EXPECT_THAT(ErrorOf([&] { tape.Backward(g * w + g * (w * 2.0)); }),
              StartsWith("Backward: Mul saved float64 []"));
  EXPECT_TRUE(store_.owner().gradients_invalid);
  store_.ZeroGrad();
  tape.Backward(w * 1.0);
  const Tensor copy = w.grad().Clone();
  tape.Backward(copy * w + copy * (w * 2.0));
  EXPECT_EQ(w.grad().item(), 4);
  // A hook that writes.
  Tensor v = Param("v", D({}, {5}));
  const Tensor h = w * v;
  tape.OnGradient(h, [&](const Tensor&) {
    v.mutable_data<double>()[0] = 7;
    return Tensor();
  });
  EXPECT_THAT(ErrorOf([&] { tape.Backward(Square(h)); }),
              AllOf(StartsWith("Backward: Mul saved"), HasSubstr("v")));
}

TEST_F(TapeTest, AViewSharesTheVersionAndASliceWritesThrough) {
  const Tensor x = D({2, 2}, {1, 2, 3, 4});
  Tape tape;
  tape.Watch(x);
  const Tensor y = Sum(Square(x));
  Tensor row = Slice(x, 0, 1, 1);
  row.mutable_data<double>()[0] = 9;
  EXPECT_EQ(x.ToVector()[2], 9);
  EXPECT_THAT(ErrorOf([&] { tape.Gradient(y, x); }), HasSubstr("Square"));
}

TEST_F(TapeTest, HooksSeeTheWholeGradientOnceAndMayReplaceIt) {
  const Tensor w = Param("w", D({}, {2})), v = Param("v", D({}, {3}));
  Tape tape;
  const Tensor h = w * v;
  int calls = 0;
  std::vector<double> seen;
  tape.OnGradient(h, [&](const Tensor& g) {
    seen.push_back(g.item());
    return g * 10.0;
  });
  tape.OnGradient(v, [&](const Tensor& g) {
    ++calls;
    seen.push_back(g.item());
    return Tensor();
  });
  tape.Backward(h * 1.0 + h * 2.0 + v, {.retain = true});
  EXPECT_THAT(seen, ElementsAre(3, 61));
  EXPECT_EQ(w.grad().item(), 90);
  EXPECT_EQ(v.grad().item(), 61);
  const Tensor y = h * 1.0;
  tape.Backward(y);  // again in the next pass, on that pass alone
  EXPECT_THAT(seen, ElementsAre(3, 61, 1, 20));
  EXPECT_EQ(v.grad().item(), 81);
  EXPECT_EQ(calls, 2);
}

TEST_F(TapeTest, ASecondPassSaysThatTheTapeWasEmptied) {
  const Tensor x = D({}, {2});
  Tape tape;
  tape.Watch(x);
  const Tensor y = Square(x);
  tape.Gradient(y, x);
  EXPECT_THAT(ErrorOf([&] { tape.Gradient(y, x); }),
              HasSubstr("the tape was emptied since"));
}

TEST_F(TapeTest, HookErrors) {
  const Tensor w = Param("w", D({2}, {2, 2}));
  Tape tape;
  const Tensor h = w * 1.0;
  tape.OnGradient(h, [](const Tensor&) { return D({1}, {1}); });
  EXPECT_THAT(
      ErrorOf([&] { tape.OnGradient(h, [](const Tensor& g) { return g; }); }),
      HasSubstr("already"));
  EXPECT_THAT(ErrorOf([&] { tape.OnGradient(w, GradientHook()); }),
              HasSubstr("the hook is empty"));
  const Tensor y = Sum(h);
  EXPECT_THAT(ErrorOf([&] { tape.Backward(y); }),
              AllOf(StartsWith("OnGradient: "), HasSubstr("float64 [1]"),
                    HasSubstr("float64 [2]")));
}

TEST_F(TapeTest, BackwardFromAHookOfTheSameTapeIsAnError) {
  const Tensor w = Param("w", D({}, {2}));
  Tape tape;
  const Tensor h = w * 1.0;
  tape.OnGradient(h, [&](const Tensor& g) {
    tape.Backward(w);
    return g;
  });
  EXPECT_THAT(ErrorOf([&] { tape.Backward(h * 2.0); }), HasSubstr("hook"));
}

TEST_F(TapeTest, ANestedTapeMayWorkInsideAHook) {
  const Tensor w = Param("w", D({}, {2}));
  Tape tape;
  const Tensor h = w * 1.0;
  tape.OnGradient(h, [&](const Tensor& g) {
    Tape inner;
    inner.Watch(g);
    return inner.Gradient(Square(g), g);  // 2 g
  });
  tape.Backward(h * 3.0);
  EXPECT_EQ(w.grad().item(), 6);
}

TEST_F(TapeTest, ExceptionHalfWayInvalidatesTheGatheredGradients) {
  const Tensor w = Param("w", D({}, {2})), v = Param("v", D({}, {2}));
  Tape tape;
  const Tensor h = w * 1.0;
  tape.OnGradient(
      h, [](const Tensor&) -> Tensor { throw std::runtime_error("half-way"); });
  EXPECT_THROW(tape.Backward(h * v), std::runtime_error);
  EXPECT_TRUE(store_.owner().gradients_invalid);
  EXPECT_FALSE(store_.owner().in_backward);
  store_.ZeroGrad();
  tape.Backward(w * v);
  EXPECT_EQ(w.grad().item(), 2);
}

TEST_F(TapeTest, ExceptionInForwardLeavesTheTapeSound) {
  const Tensor w = Param("w", D({2}, {2, 3}));
  Tape tape;
  const Tensor h = w * w;
  EXPECT_THROW(MatMul(h, w), Error);
  tape.Backward(Sum(h));
  EXPECT_THAT(w.grad().ToVector(), ElementsAre(4, 6));
}

TEST_F(TapeTest, TwoBackwardsIntoOneStoreAtATimeAreAnError) {
  const Tensor w = Param("w", D({}, {2}));
  Tape tape;
  const Tensor h = w * 1.0;
  tape.OnGradient(h, [&](const Tensor& g) {
    std::thread([&] {
      Tape other;
      const Tensor y = w * 5.0;
      EXPECT_THAT(ErrorOf([&] { other.Backward(y); }),
                  HasSubstr("another Backward"));
      EXPECT_EQ(other.Gradient(y, w).item(), 5);
    }).join();
    return g;
  });
  tape.Backward(h);
  EXPECT_EQ(w.grad().item(), 1);
}

TEST_F(TapeTest, ThreadsEachWithATapeShareParameters) {
  const Tensor w = Param("w", D({8}, {1, 2, 3, 4, 5, 6, 7, 8}));
  std::vector<std::thread> threads;
  std::vector<double> sums(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int step = 0; step < 200; ++step) {
        Tape tape;
        const Tensor g = tape.Gradient(Sum(Gelu(w) * w * (t + 1.0)), w);
        sums[t] = Sum(g).item();
      }
    });
  }
  for (auto& t : threads) t.join();
  for (int t = 1; t < 4; ++t) EXPECT_NEAR(sums[t], sums[0] * (t + 1), 1e-9);
}

TEST_F(TapeTest, TheStoreMustOutliveTheTape) {
  auto store = std::make_unique<TestStore>();
  const Tensor w = store->Add("w", D({}, {2}));
  Tape tape;
  const Tensor y = w * w;
  store.reset();
  EXPECT_THAT(ErrorOf([&] { tape.Backward(y); }),
              HasSubstr("ended before its tape"));
  EXPECT_EQ(w.item(), 2) << "handles stay readable";
}

TEST_F(TapeTest, RecordingInsideAParallelForThrows) {
  const Tensor w = Param("w", D({}, {2}));
  SetNumThreads(2);
  Tape tape;
  EXPECT_THAT(
      ErrorOf([&] { ParallelFor(8, 1, [&](int64_t, int64_t) { w* w; }); }),
      HasSubstr("ParallelFor"));
  EXPECT_EQ(tape.size(), 0u);
  SetNumThreads(1);
}

TEST_F(TapeTest, CheckFiniteNamesTheFirstOperationForward) {
  const Tensor w = Param("w", D({2}, {1, 0}));
  Tape tape;
  tape.set_check_finite(true);
  const std::string path = "layers.0.norm";
  std::string message;
  try {
    const Scope scope(path);
    const Tensor bad = Log(w);
    ADD_FAILURE() << "not caught";
  } catch (const NonFiniteError& e) {
    message = e.what();
  }
  EXPECT_THAT(message, AllOf(StartsWith("Log in layers.0.norm: forward"),
                             HasSubstr("float64 [2]")));
  // A mask of -inf is meant, not made.
  EXPECT_NO_THROW(
      Softmax(MaskedFill(w, Tensor::Of<bool>({2}, {true, false}),
                         -std::numeric_limits<double>::infinity())));
}

TEST_F(TapeTest, CheckFiniteNamesTheFirstOperationBackward) {
  const Tensor w = Param("w", D({2}, {1, 0}));
  Tape tape;
  tape.set_check_finite(true);
  const std::string path = "head";
  Tensor y;
  {
    const Scope scope(path);
    y = Sqrt(w);
  }
  y = Sum(y * 2.0);
  try {
    tape.Backward(y);
    ADD_FAILURE() << "not caught";
  } catch (const NonFiniteError& e) {
    EXPECT_THAT(e.what(), AllOf(StartsWith("Sqrt in head: backward"),
                                HasSubstr("input 0"), EndsWith("float64 [2]")));
  }
}

// An infinity that came in with the data is not the rule's doing alone.
TEST_F(TapeTest, CheckFiniteSaysWhatWasNotFiniteBefore) {
  const Tensor w = Param("w", D({2}, {1, 2}));
  Tape tape;
  tape.set_check_finite(true);
  const Tensor y =
      Sum(Square(w - D({2}, {0, std::numeric_limits<double>::infinity()})));
  try {
    tape.Backward(y);
    ADD_FAILURE() << "not caught";
  } catch (const NonFiniteError& e) {
    EXPECT_THAT(e.what(),
                AllOf(StartsWith("Square: backward"),
                      EndsWith("and values that were not finite before")));
  }
}

TEST_F(TapeTest, AnOpenScopeKeepsItsPathWhenTheTapeIsEmptied) {
  struct Owner : ParameterOwner {
    explicit Owner(bool* gone) : gone(gone) {}
    ~Owner() override { *gone = true; }
    void AllocateGradients() override {}
    bool* const gone;
  };
  bool gone = false;
  OwnerHandle layer(new Owner(&gone));
  const std::string path = "layer";
  const Tensor x = D({}, {2});
  Tape tape;
  Tensor y;
  {
    const Scope scope(path, layer.get());
    tape.Clear();
    tape.Watch(x);
    y = Square(x);
  }
  layer = {};
  EXPECT_FALSE(gone) << "a record names the path";
  EXPECT_EQ(tape.Gradient(y, x).item(), 4);
  EXPECT_TRUE(gone);
}

// An infinity that was there before is not blamed on the next rule.
TEST_F(TapeTest, CheckFiniteBlamesNoRuleForWhatCameBefore) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor w = Param("w", D({}, {3}));
  {
    Tape tape;
    tape.Backward(w * 1.0, D({}, {inf}));
  }
  Tape tape;
  tape.set_check_finite(true);
  EXPECT_NO_THROW(tape.Backward(Square(w)));
  EXPECT_EQ(w.grad().item(), inf);
}

TEST_F(TapeTest, ModesDecideDropout) {
  const Tensor w = Param("w", Tensor::Ones({1000}));
  EXPECT_EQ(Dropout(w, .5).ToVector(), w.ToVector()) << "no tape: inference";
  {
    Tape tape;
    EXPECT_THAT(ErrorOf([&] { Dropout(w, .5); }),
                AllOf(StartsWith("Dropout: "),
                      HasSubstr("Tape tape(generator)"), HasSubstr("kEval")));
    EXPECT_EQ(Dropout(w, 0).ToVector(), w.ToVector());
  }
  {
    Tape tape(Tape::kEval);
    EXPECT_EQ(Dropout(w, .5).ToVector(), w.ToVector());
  }
  Generator generator(7);
  std::vector<double> first;
  {
    Tape tape(generator);
    const Tensor y = Dropout(w, .5);
    first = y.ToVector();
    EXPECT_EQ(generator.offset(), 1u);
    tape.Backward(Sum(y));
    EXPECT_EQ(w.grad().ToVector(), first) << "the same elements in backward";
    EXPECT_NE(Dropout(w, .5).ToVector(), first);
  }
  generator.set_offset(0);
  Tape tape(generator);
  EXPECT_EQ(Dropout(w, .5).ToVector(), first);
  EXPECT_THROW(Tape{Tape::kTrain}, Error);
}

// ---- Custom operations ------------------------------------------------------

// y = x³ with a rule that runs a kernel of its own, and a composition.
Tensor Cube(const Tensor& x) {
  Tensor y = Tensor::Empty(x.shape(), x.dtype());
  for (int64_t i = 0; i < x.size(); ++i) {
    const double v = x.data<double>()[i];
    y.mutable_data<double>()[i] = v * v * v;
  }
  Record(
      "Cube", y, {x}, Save(x),
      [](GradientSink& g, const Tensor& x) {
        auto dx = g.Into<double>(0);
        for (int64_t i = 0; i < x.size(); ++i) {
          const double v = x.data<double>()[i];
          const double d = 3 * v * v * g.dy().data<double>()[i];
          dx.data[i] = dx.accumulate ? dx.data[i] + d : d;
        }
      },
      [](const Tensor& x) { return x * x * x; });
  return y;
}

TEST_F(TapeTest, CustomOperationFromOutside) {
  const Tensor x = Param("x", D({2}, {2, 3}));
  Tape tape;
  const Tensor y = Sum(Cube(x) + Cube(x));
  const Tensor d1 = tape.Gradient(y, x, {.create_graph = true});
  EXPECT_THAT(d1.ToVector(), ElementsAre(24, 54));
  EXPECT_THAT(tape.Gradient(Sum(d1), x, {.retain = true}).ToVector(),
              ElementsAre(24, 36));
  tape.Backward(y);
  EXPECT_THAT(x.grad().ToVector(), ElementsAre(24, 54));
}

TEST_F(TapeTest, CustomMistakesAreNamed) {
  const Tensor x = Param("x", D({2}, {2, 3}));
  Tape tape;
  Tensor y = x * 1.0;
  EXPECT_THAT(
      ErrorOf([&] { Record("Again", y, {x}, Save(), [](GradientSink&) {}); }),
      AllOf(StartsWith("Again: "), HasSubstr("fresh")));
  Tensor z = Tensor::Empty({2}, DType::kFloat64);
  Record("Raw", z, {x}, Save(), [](GradientSink& g) { g.Into<double>(0); });
  EXPECT_THAT(
      ErrorOf([&] { tape.Gradient(Sum(z), x, {.create_graph = true}); }),
      AllOf(StartsWith("Raw: "), HasSubstr("composition")));
  tape.Clear();
  Tensor w = Tensor::Empty({2}, DType::kFloat64);
  Record("Wrong", w, {x}, Save(), [](GradientSink& g) {
    g.Add(0, D({3}, {1, 2, 3}));
  });
  EXPECT_THAT(ErrorOf([&] { tape.Gradient(Sum(w), x); }),
              AllOf(HasSubstr("[3]"), HasSubstr("[2]")));
}

TEST_F(TapeTest, SecondStepAllocatesNothingFromThePoolsSystem) {
  const Tensor w = Param("w", Tensor::Full({32, 32}, .01));
  const Tensor x = Tensor::Ones({8, 32});
  Generator generator(1);
  int64_t before = 0;
  for (int step = 0; step < 4; ++step) {
    if (step == 2) before = GetPoolStats().system_allocations;
    Tape tape(generator);
    tape.Backward(Mean(Square(Linear(Dropout(Gelu(Linear(x, w)), .1), w))));
    store_.MarkUsed();
  }
  EXPECT_EQ(GetPoolStats().system_allocations, before);
}

TEST_F(TapeTest, MixedDtypesCastTheirGradients) {
  const Tensor w = Param("w", D({}, {2}));
  Tape tape;
  const Tensor y = Square(w.To(DType::kFloat32));
  EXPECT_EQ(y.dtype(), DType::kFloat32);
  tape.Backward(y.To(DType::kFloat64) * w);
  EXPECT_EQ(w.grad().item(), 12);
}

TEST_F(TapeTest, DetachStopsGradients) {
  const Tensor w = Param("w", D({}, {2}));
  Tape tape;
  tape.Backward(w * w.Detach());
  EXPECT_EQ(w.grad().item(), 2);
}

}  // namespace
}  // namespace wengert
