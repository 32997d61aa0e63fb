#include "autograd/tape_observer.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/ops.h"
#include "autograd/parallel.h"
#include "autograd/parameter_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Writes down what it is told; indented inside passes and rules.
class Notes : public TapeObserver {
 public:
  void OnStart() override { Add("start"); }
  void OnOperation(const OperationEvent& e) override {
    std::string line = absl::StrCat(e.op, "(");
    for (const Tensor& x : e.inputs) {
      absl::StrAppend(&line, x.defined() ? x.shape().ToString() : "none");
    }
    absl::StrAppend(&line, ")=", e.output.ToVector()[0]);
    Add(line + In(e.layer));
    if (e.op == throw_at) throw Error("thrown");
  }
  void OnPassBegin(const char* name) override {
    Add(name);
    ++depth;
  }
  void OnPassEnd() noexcept override { --depth; }
  void OnRuleBegin(const RuleEvent& e) override {
    std::string line = absl::StrCat(e.composed ? "again " : "rule ", e.op,
                                    " dy=", e.dy.ToVector()[0],
                                    " saved=", e.saved.size(), " wanted=");
    for (const Shape* s : e.wanted) {
      absl::StrAppend(&line, s ? s->ToString() : "-");
    }
    Add(line + In(e.layer));
    ++depth;
  }
  void OnRuleEnd() noexcept override { --depth; }

  static std::string In(const std::string* layer) {
    return layer ? " in " + *layer : "";
  }
  void Add(const std::string& line) {
    lines.push_back(std::string(depth, ' ') + line);
  }

  std::vector<std::string> lines;
  std::string throw_at;
  int depth = 0;
};

class TapeObserverTest : public ::testing::Test {
 protected:
  TestStore store_;
  Tensor w_ = store_.Add("w", Tensor::Of({1, 2}, {3, 4}));
  Tensor x_ = Tensor::Of({1, 2}, {1, 2});
  Notes notes_;
};

TEST_F(TapeObserverTest, SeesOperationsWithTheirLayerAndRules) {
  Tape tape;
  const Tensor unseen = w_ * w_;
  tape.set_observer(&notes_);
  Tensor y;
  {
    const std::string path = "layers.0";
    Scope scope(path);
    y = Linear(x_, w_);
    tape.Backward(y * 2.0);
    tape.set_observer(nullptr);
    y = w_ * w_;
  }
  EXPECT_THAT(notes_.lines,
              ElementsAre("start", "Linear([1, 2][1, 2]none)=11 in layers.0",
                          "Affine([1, 1])=22 in layers.0", "Backward",
                          " rule Affine dy=1 saved=0 wanted=[1, 1] in layers.0",
                          "  Affine([1, 1])=2 in layers.0",
                          " rule Linear dy=2 saved=3 wanted=-[1, 2]- "
                          "in layers.0"));
}

TEST_F(TapeObserverTest, SeesConstantsButNotUnderAPause) {
  Tape tape;
  tape.set_observer(&notes_);
  const Tensor constant = Neg(x_);
  {
    Tape::Pause pause;
    const Tensor paused = Neg(w_);
  }
  EXPECT_EQ(tape.size(), 0u);
  EXPECT_THAT(notes_.lines, ElementsAre("start", "Affine([1, 2])=-1"));
}

// In which the mean of the rows is taken under a Pause.
TEST_F(TapeObserverTest, SeesAFusedOperationOnce) {
  const Tensor ids = Tensor::From<int64_t>({1}, {0});
  const auto f = [&](const Tensor& x) { return CrossEntropy(Neg(x), ids); };
  Tape tape;
  tape.set_observer(&notes_);
  tape.Backward(Checkpoint(f, w_));
  std::vector<std::string> ops;
  for (const std::string& line : notes_.lines) {
    ops.push_back(line.substr(0, line.find('(')));
  }
  EXPECT_THAT(
      ops, ElementsAre("start", "Affine", "CrossEntropy", "Checkpoint",
                       "Backward", ::testing::_, "  Affine", "  CrossEntropy",
                       ::testing::_, ::testing::_, "   Affine"));
}

TEST_F(TapeObserverTest, ACheckpointedFunctionRunsInsideItsRule) {
  Tape tape;
  tape.set_observer(&notes_);
  tape.Backward(Checkpoint([&](const Tensor& x) { return Linear(x, w_); }, x_));
  EXPECT_THAT(notes_.lines,
              ElementsAre("start", "Linear([1, 2][1, 2]none)=11",
                          "Checkpoint([1, 2])=11", "Backward",
                          " again Checkpoint dy=1 saved=1 wanted=[1, 2]",
                          "  Linear([1, 2][1, 2]none)=11",
                          "  rule Linear dy=1 saved=3 wanted=-[1, 2]-"));
}

TEST_F(TapeObserverTest, ASecondOrderPassComposes) {
  Tape tape;
  tape.set_observer(&notes_);
  const Tensor y = Relu(w_);
  notes_.lines.clear();
  tape.Gradient(y, w_, {.create_graph = true, .cotangent = x_});
  EXPECT_EQ(notes_.lines[0], "Gradient");
  EXPECT_EQ(notes_.lines[1], " again Relu dy=1 saved=1 wanted=[1, 2]");
  EXPECT_EQ(notes_.depth, 0);
}

TEST_F(TapeObserverTest, ANestedTapeHasItsOwn) {
  Tape outer;
  outer.set_observer(&notes_);
  {
    Tape inner;
    inner.Backward(Sum(w_ * w_));
  }
  EXPECT_THAT(notes_.lines, ElementsAre("start"));
}

TEST_F(TapeObserverTest, EndsComeAfterAnException) {
  Tape tape;
  tape.set_observer(&notes_);
  Tensor y = Neg(w_);
  Record("Broken", y = y.Clone(), {w_}, Save(),
         [](GradientSink&) { throw Error("rule"); });
  EXPECT_THROW(tape.Backward(Sum(y)), Error);
  EXPECT_EQ(notes_.depth, 0);
  EXPECT_EQ(notes_.lines.back(), " rule Broken dy=1 saved=0 wanted=[1, 2]");
}

TEST_F(TapeObserverTest, ItsExceptionGoesToTheCaller) {
  Tape tape;
  tape.set_observer(&notes_);
  notes_.throw_at = "Sum";
  const Tensor y = Neg(w_);
  EXPECT_THROW(Sum(y), Error);
  EXPECT_EQ(tape.size(), 1u);
  tape.set_observer(nullptr);
  tape.Backward(Sum(y));
  EXPECT_THAT(w_.grad().ToVector(), ElementsAre(-1, -1));
}

TEST_F(TapeObserverTest, SeesNothingInsideAParallelFor) {
  Tape tape;
  tape.set_observer(&notes_);
  notes_.lines.clear();
  ParallelFor(4, 1, [&](int64_t, int64_t) { Neg(x_); });
  EXPECT_THAT(notes_.lines, IsEmpty());
}

}  // namespace
}  // namespace wengert
