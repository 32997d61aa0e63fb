// Activation checkpointing: the same bits for less memory.
#include <string>
#include <vector>

#include "autograd/error.h"
#include "autograd/ops.h"
#include "autograd/parameter_testlib.h"
#include "autograd/storage.h"
#include "autograd/tape.h"
#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Tensor D(const Shape& shape, std::initializer_list<double> values) {
  return Tensor::Of<double>(shape, values);
}

class CheckpointTest : public ::testing::Test {
 protected:
  Tensor Param(const std::string& name, const Tensor& x) {
    return store_.Add(name, x);
  }
  TestStore store_;
};

Tensor Block(const Tensor& x, const Tensor& w) {
  return Dropout(Gelu(MatMul(x, w)), .25) + x;
}

TEST_F(CheckpointTest, CheckpointGivesTheSameBitsOfValuesAndGradients) {
  Generator init(3);
  Tensor start = Tensor::Empty({32, 32});
  FillNormal(1, 0, 0, .3, 1024, start.mutable_data<float>());
  const Tensor w = Param("w", start);
  const Tensor x = Tensor::Ones({16, 32});
  std::vector<std::vector<double>> results;
  for (const bool checkpoint : {false, true}) {
    store_.ZeroGrad();
    Generator generator(5);
    Tape tape(generator);
    Tensor h = x * 0.5;
    for (int layer = 0; layer < 4; ++layer) {
      h = checkpoint
              ? Checkpoint([w](const Tensor& h) { return Block(h, w); }, h)
              : Block(h, w);
    }
    results.push_back(h.ToVector());
    const Tensor after = Dropout(h, .5);  // the generator went on
    tape.Backward(Sum(after));
    results.push_back(w.grad().ToVector());
    EXPECT_EQ(generator.offset(), 5u);
  }
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[1], results[3]);
}

TEST_F(CheckpointTest, CheckpointMemoryIsOneBlockAndTheInputs) {
  const int kLayers = 16;
  const Tensor w = Param("w", Tensor::Full({64, 64}, .01));
  const Tensor x = Tensor::Ones({256, 64});
  int64_t peak[2];
  for (const bool checkpoint : {false, true}) {
    Generator generator(5);
    Tape tape(generator);
    ResetPoolPeak();
    const int64_t before = GetPoolStats().live_bytes;
    Tensor h = x;
    for (int layer = 0; layer < kLayers; ++layer) {
      const auto block = [w](const Tensor& h) { return Block(h, w); };
      h = checkpoint ? Checkpoint(block, h) : block(h);
    }
    Tensor loss = Sum(h);
    h = {};
    tape.Backward(loss);
    peak[checkpoint] = GetPoolStats().peak_live_bytes - before;
  }
  const int64_t activation = 256 * 64 * 4;
  EXPECT_GT(peak[0], 2 * kLayers * activation);
  EXPECT_LT(peak[1], (kLayers + 10) * activation);
}

TEST_F(CheckpointTest, CheckpointNotesTheParametersItReads) {
  Tensor w = Param("w", D({}, {2}));
  const Tensor unused = Param("unused", D({}, {2}));
  Tape tape;
  const Tensor x = D({}, {3});
  Tensor y = Checkpoint([w](const Tensor& x) { return w * w * x; }, x);
  EXPECT_EQ(tape.size(), 1u);
  tape.Backward(y);
  EXPECT_EQ(w.grad().item(), 12);
  EXPECT_FALSE(unused.grad().defined());
  y = Checkpoint([w](const Tensor& x) { return w * x; }, x);
  w.mutable_data<double>()[0] = 5;
  EXPECT_THAT(ErrorOf([&] { tape.Backward(y); }),
              AllOf(HasSubstr("Checkpoint"), HasSubstr("parameter w")));
}

TEST_F(CheckpointTest, CheckpointToTheSecondOrderAndNested) {
  const Tensor x = Param("x", D({}, {.7}));
  const auto inner = [](const Tensor& x) { return Gelu(x) * x; };
  const auto outer = [inner](const Tensor& x) {
    return Checkpoint(inner, Square(x)) + x;
  };
  Tape tape;
  std::vector<double> values;
  for (const bool checkpoint : {false, true}) {
    const Tensor y = checkpoint ? Checkpoint(outer, x) : inner(Square(x)) + x;
    const Tensor d1 = tape.Gradient(y, x, {.create_graph = true});
    const Tensor d2 = tape.Gradient(d1, x, {.create_graph = true});
    values.insert(values.end(), {d1.item(), d2.item()});
  }
  EXPECT_EQ(values[0], values[2]);
  EXPECT_NEAR(values[1], values[3], 1e-12);
}

TEST_F(CheckpointTest, CheckpointOfCapturedActivationsAndIdentity) {
  const Tensor w = Param("w", D({}, {2}));
  Tape tape;
  const Tensor h = w * 3.0;
  const Tensor y = Checkpoint([h](const Tensor& x) { return x * h; }, h);
  const Tensor same = Checkpoint([](const Tensor& x) { return x; }, h);
  tape.Backward(y + same * 10.0);  // (3w)² + 30w
  EXPECT_EQ(w.grad().item(), 2 * 9 * 2 + 30);
}

TEST_F(CheckpointTest, CheckpointThatChangesIsRefused) {
  const Tensor w = Param("w", D({2}, {2, 3}));
  const Tensor other = Param("other", D({2}, {2, 3}));
  int runs = 0;
  Tape tape;
  Tensor y = Checkpoint(
      [&](const Tensor& x) { return ++runs > 1 ? Sum(x) : x * x; }, w);
  EXPECT_THAT(ErrorOf([&] { tape.Backward(Sum(y)); }), HasSubstr("run again"));
  store_.ZeroGrad();
  runs = 0;
  y = Checkpoint(
      [&](const Tensor& x) { return ++runs > 1 ? x * other : x * x; }, w);
  EXPECT_THAT(ErrorOf([&] { tape.Backward(Sum(y)); }),
              HasSubstr("did not read before"));
}

TEST_F(CheckpointTest, CheckpointOfNothing) {
  const Tensor w = Param("w", D({}, {2}));
  Tape tape;
  EXPECT_THAT(
      ErrorOf([&] { Checkpoint([](const Tensor&) { return Tensor(); }, w); }),
      AllOf(StartsWith("Checkpoint: "), HasSubstr("undefined")));
  tape.Backward(w * w);  // records as before
  EXPECT_EQ(w.grad().item(), 4);
}

TEST_F(CheckpointTest, CheckpointWithRetain) {
  const Tensor w = Param("w", D({}, {2}));
  Tape tape;
  const Tensor y = Checkpoint([](const Tensor& x) { return x * x; }, w);
  tape.Backward(y, {.retain = true});
  tape.Backward(y);
  EXPECT_EQ(w.grad().item(), 8);
}

}  // namespace
}  // namespace wengert
