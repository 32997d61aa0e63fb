// What every optimizer promises: which parameters a step touches, how updates
// are counted, and what its options may be.
#include "train/optimizer.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/ops.h"
#include "autograd/parallel.h"
#include "autograd/storage.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/adagrad.h"
#include "train/adam.h"
#include "train/clip.h"
#include "train/lion.h"
#include "train/optimizer_testlib.h"
#include "train/rmsprop.h"
#include "train/sgd.h"

namespace wengert::train {
namespace {

using nn::ParameterStore;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Adam, CountsUpdatesAndNotParameters) {
  ParameterStore store(DType::kFloat64);
  const Tensor a = store.root().Ones("a", {}), b = store.root().Ones("b", {});
  Adam optimizer(store, {.lr = 0.1});
  AddGradient(a, {1.});
  AddGradient(b, {1.});
  optimizer.Step();
  EXPECT_NEAR(a.item(), 0.900000001, 1e-15);
  EXPECT_EQ(b.item(), a.item());
}

TEST(Adam, CorrectsItsBias) {
  for (DType dtype : {DType::kFloat64, DType::kFloat32}) {
    ParameterStore store(dtype);
    const Tensor w = store.root().Ones("w", {});
    Adam optimizer(store, {.lr = 0.1});
    const double tolerance = dtype == DType::kFloat64 ? 1e-10 : 2e-7;
    const double gradients[] = {1, -2, 3};
    const double want[] = {0.900000001, 0.9366103535, 0.9022862456};
    for (int i = 0; i < 3; ++i) {
      AddGradient(w, {gradients[i]});
      optimizer.Step();
      EXPECT_NEAR(w.item(), want[i], tolerance);
    }
  }
}

TEST(AdamW, DecaysFromTheOldValue) {
  ParameterStore store(DType::kFloat64);
  const Tensor w = store.root().Constant("w", {}, 2);
  AdamW optimizer(store, {.lr = 0.1, .weight_decay = 0.1});
  AddGradient(w, {1.});
  optimizer.Step();
  EXPECT_NEAR(w.item(), 1.88, 2e-9);
  EXPECT_NEAR(w.item(), 2 * (1 - 0.01) - 0.1 / (1 + 1e-8), 1e-15);
}

TEST(Sgd, UpdatesASharedParameterOnce) {
  ParameterStore store(DType::kFloat64);
  const Tensor w = store.root().Constant("w", {}, 2);
  const Tensor tied = store.root().Tied("tied", w);
  Sgd optimizer(store, {.lr = 0.1});
  Tape tape;
  tape.Backward(w * 3 + tied * 5);
  EXPECT_EQ(w.grad().item(), 8);
  optimizer.Step();
  EXPECT_NEAR(w.item(), 1.2, 1e-15);
}

TEST(Optimizer, MicroBatchesAddAndTheNextPassReplaces) {
  ParameterStore store(DType::kFloat64);
  const Tensor w = store.root().Ones("w", {2});
  Sgd optimizer(store, {.lr = 0.5});
  AddGradient(w, {1, 2});
  AddGradient(w, {3, 4});
  optimizer.Step();
  EXPECT_THAT(w.ToVector(), ElementsAre(1 - 2, 1 - 3));
  EXPECT_THAT(w.grad().ToVector(), ElementsAre(4, 6));  // still readable
  optimizer.Step();                                     // but used
  EXPECT_THAT(w.ToVector(), ElementsAre(-1, -2));
  AddGradient(w, {2, 2});
  EXPECT_THAT(w.grad().ToVector(), ElementsAre(2, 2));
  store.ZeroGrad();
  optimizer.Step();
  EXPECT_THAT(w.ToVector(), ElementsAre(-1, -2));
}

TEST(Optimizer, LeavesAParameterWithoutGradientAlone) {
  ParameterStore store(DType::kFloat64);
  const Tensor a = store.root().Ones("a", {}), b = store.root().Ones("b", {}),
               c = store.root().Ones("c", {});
  AdamW optimizer(store, {.lr = 0.1, .weight_decay = 0.5});
  const uint64_t version = b.version();
  double a_after_one = 0;
  for (int i = 0; i < 3; ++i) {
    AddGradient(a, {1.});
    AddGradient(c, {1.});
    optimizer.Step();
    if (i == 0) a_after_one = a.item();
  }
  EXPECT_EQ(b.item(), 1);  // did not decay
  EXPECT_EQ(b.version(), version);
  EXPECT_EQ(optimizer.State().parameters.at("a").step, 3);
  EXPECT_EQ(optimizer.State().parameters.at("b").step, 0);
  AddGradient(b, {1.});
  optimizer.Step();
  EXPECT_EQ(b.item(), a_after_one);  // its own first update
  EXPECT_EQ(optimizer.State().parameters.at("b").step, 1);
  EXPECT_EQ(optimizer.State().parameters.at("a").step, 3);
  EXPECT_EQ(c.item(), a.item());
}

TEST(Optimizer, RefusesIncompleteGradients) {
  ParameterStore store(DType::kFloat64);
  const Tensor w = store.root().Ones("w", {});
  Sgd optimizer(store, {.lr = 0.5});
  ThrowInBackward(w);
  EXPECT_THAT([&] { optimizer.Step(); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("Sgd.Step"), HasSubstr("ZeroGrad first"))));
  EXPECT_EQ(w.item(), 1);
  EXPECT_EQ(optimizer.State().parameters.at("w").step, 0);
  store.ZeroGrad();
  optimizer.Step();
  EXPECT_EQ(w.item(), 1);
  AddGradient(w, {1.});
  optimizer.Step();
  EXPECT_EQ(w.item(), 0.5);
}

TEST(Optimizer, RefusesAHookAndAnEndedStore) {
  std::optional<ParameterStore> store(std::in_place);
  const Tensor w = store->root().Ones("w", {});
  Adam optimizer(*store);
  {
    Tape tape;
    const Tensor y = w * 2;
    tape.OnGradient(y, [&](const Tensor&) {
      EXPECT_THAT([&] { optimizer.Step(); },
                  ThrowsMessage<Error>(HasSubstr("a Backward is writing")));
      return Tensor();
    });
    tape.Backward(y);
  }
  store.reset();
  EXPECT_THAT([&] { optimizer.Step(); },
              ThrowsMessage<Error>("Adam.Step: the ParameterStore has ended"));
  EXPECT_EQ(w.item(), 1);
}

TEST(Optimizer, ARecordOfTheOldValuesRefuses) {
  ParameterStore store;
  const Tensor a = store.root().Ones("a", {}), b = store.root().Ones("b", {});
  Sgd optimizer(store);
  Tape tape;
  const Tensor aa = a * a, bb = b * b;
  AddGradient(a, {1.});
  optimizer.Step();
  EXPECT_THAT([&] { tape.Backward(aa, {.retain = true}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("(parameter a)"),
                                         HasSubstr("was written to since"))));
  tape.Backward(bb);
  EXPECT_EQ(b.grad().item(), 2);
}

TEST(Optimizer, DecaysByName) {
  ParameterStore store(DType::kFloat64);
  const Tensor weight = store.root().Ones("up.weight", {1, 1}),
               gain = store.root().Ones("norm.weight", {1}),
               bias = store.root().Ones("up.bias", {1});
  const auto step = [&](DecayFilter filter) {
    Sgd optimizer(store,
                  {.lr = 1, .weight_decay = 0.25, .decay_filter = filter});
    const Tensor all[] = {weight, gain, bias};
    for (Tensor w : all) {
      w.mutable_data<double>()[0] = 1;
      AddGradient(w, {0.});
    }
    optimizer.Step();
    return std::vector<double>{weight.item(), gain.item(), bias.item()};
  };
  EXPECT_THAT(step(nullptr), ElementsAre(0.75, 0.75, 0.75));
  EXPECT_THAT(step(IsMatrix), ElementsAre(0.75, 1, 1));
  EXPECT_THAT(step([](const std::string& name, const Tensor&) {
                return name.rfind("up.", 0) == 0;
              }),
              ElementsAre(0.75, 1, 0.75));
}

TEST(Optimizer, TakesUpNewParameters) {
  ParameterStore store(DType::kFloat64);
  const Tensor a = store.root().Ones("a", {});
  Adam optimizer(store, {.lr = 0.1});
  AddGradient(a, {1.});
  optimizer.Step();
  const Tensor b = store.root().Ones("b", {});
  const Tensor c = store.root().Ones("c", {500'000});  // in a new segment
  AddGradient(b, {1.});
  AddGradient(c, Tensor::Ones({500'000}));
  optimizer.Step();
  EXPECT_EQ(b.item(), a.item());
  EXPECT_THAT(c.ToVector(), Each(a.item()));
}

// A store of several segments and odd sizes, of which some parameters get
// gradients in each step.
std::vector<Tensor> Ragged(ParameterStore& store) {
  std::vector<Tensor> tensors;
  for (int64_t n : {3, 300'000, 5, 0, 7, 33, 16, 200'003, 1}) {
    tensors.push_back(
        store.root().Uniform(absl::StrCat("p", tensors.size()), {n}, 1));
  }
  return tensors;
}

bool GetsGradient(int step, size_t i) { return step == 0 || (step + i) % 3; }

// Passes over several parameters at once give what each alone would get.
TEST(Optimizer, NeighboursShareAPassWithoutTouchingEachOther) {
  ParameterStore store;
  const std::vector<Tensor> all = Ragged(store);
  AdamW together(store, {.lr = 0.01});
  std::vector<ParameterStore> alone_stores;
  std::vector<std::unique_ptr<AdamW>> alone;
  for (size_t i = 0; i < all.size(); ++i) {
    alone_stores.emplace_back();
    alone_stores[i].root().Uniform(absl::StrCat("p", i), all[i].shape(), 1);
  }
  for (ParameterStore& s : alone_stores) {
    alone.push_back(std::make_unique<AdamW>(s, AdamWOptions{.lr = 0.01}));
  }
  for (int step = 0; step < 4; ++step) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (!GetsGradient(step, i)) continue;
      const Tensor g = RandomGradient(all[i], 100 * step + i);
      AddGradient(all[i], g);
      AddGradient(alone_stores[i].parameters()[0]->value, g);
      alone[i]->Step();
    }
    together.Step();
  }
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].ToVector(),
              alone_stores[i].parameters()[0]->value.ToVector())
        << i;
  }
  for (const nn::Segment& s : store.segments()) {
    const float* values = s.values.data<float>();
    for (size_t i = 0; i + 1 < s.parameters.size(); ++i) {
      for (int64_t at = s.offsets[i] + s.parameters[i]->value.size();
           at < s.offsets[i + 1]; ++at) {
        EXPECT_EQ(values[at], 0);
      }
    }
  }
}

// A gradient that is 0 from the start moves nothing and makes no NaN.
TEST(Optimizer, ZeroGradientsMoveNothing) {
  const auto check = [](auto make) {
    ParameterStore store;
    const Tensor w = store.root().Constant("w", {2}, 0.5);
    const auto optimizer = make(store);
    for (int step = 0; step < 3; ++step) {
      AddGradient(w, {0, 0});
      optimizer->Step();
    }
    EXPECT_EQ(w.ToVector(), (std::vector<double>{0.5, 0.5}));
  };
  check([](ParameterStore& s) {
    return std::make_unique<RmsProp>(s, RmsPropOptions{.centered = true});
  });
  check([](ParameterStore& s) { return std::make_unique<Adagrad>(s); });
  check([](ParameterStore& s) { return std::make_unique<Lion>(s); });
}

TEST(Optimizer, ThreadsGiveTheSameBits) {
  const int before = NumThreads();
  std::vector<std::vector<double>> first;
  for (int threads : {1, 2, 3, 5}) {
    SetNumThreads(threads);
    const int64_t shared_before = GetParallelStats().shared_loops;
    std::vector<std::vector<double>> values;
    for (const std::string kind :
         {"Adam", "AdamW", "Sgd", "RmsProp", "Adagrad", "Lion"}) {
      ParameterStore store;
      const std::vector<Tensor> all = Ragged(store);
      std::unique_ptr<Optimizer> optimizer;
      if (kind == "Adam") {
        optimizer = std::make_unique<Adam>(store);
      } else if (kind == "AdamW") {
        optimizer = std::make_unique<AdamW>(store);
      } else if (kind == "RmsProp") {
        optimizer = std::make_unique<RmsProp>(
            store, RmsPropOptions{.momentum = 0.9, .centered = true});
      } else if (kind == "Adagrad") {
        optimizer = std::make_unique<Adagrad>(store);
      } else if (kind == "Lion") {
        optimizer = std::make_unique<Lion>(store);
      } else {
        optimizer = std::make_unique<Sgd>(
            store, SgdOptions{.momentum = 0.9, .nesterov = true});
      }
      for (int step = 0; step < 3; ++step) {
        for (size_t i = 0; i < all.size(); ++i) {
          AddGradient(all[i], RandomGradient(all[i], 100 * step + i));
        }
        EXPECT_TRUE(ClipGradNorm(store, 1).clipped);
        optimizer->Step();
      }
      for (const Tensor& w : all) values.push_back(w.ToVector());
    }
    if (threads == 1) {
      first = values;
    } else {
      EXPECT_EQ(values, first);
      EXPECT_GT(GetParallelStats().shared_loops, shared_before);
    }
  }
  SetNumThreads(before);
}

TEST(Optimizer, AStepTakesNoMemory) {
  ParameterStore store;
  const Tensor w = store.root().Ones("w", {1000});
  AdamW optimizer(store);
  AddGradient(w, Tensor::Ones({1000}));
  ResetPoolPeak();
  const int64_t live = GetPoolStats().peak_live_bytes;
  optimizer.Step();
  EXPECT_EQ(GetPoolStats().peak_live_bytes, live);
}

TEST(Optimizer, RefusesBadOptions) {
  const double nan = std::nan(""),
               inf = std::numeric_limits<double>::infinity();
  ParameterStore store, doubles(DType::kFloat64);
  EXPECT_THAT([&] { Adam(store, {.lr = -1}); },
              ThrowsMessage<Error>("Adam: lr is -1; wanted a finite number "
                                   ">= 0"));
  EXPECT_THAT([&] { AdamW(store, {.beta2 = 1}); },
              ThrowsMessage<Error>(HasSubstr("AdamW: beta2 is 1;")));
  EXPECT_THROW(Adam(store, {.lr = nan}), Error);
  EXPECT_THROW(Adam(store, {.beta1 = -0.1}), Error);
  EXPECT_THROW(Adam(store, {.beta1 = nan}), Error);
  EXPECT_THROW(Adam(store, {.eps = 0}), Error);
  EXPECT_THROW(Adam(store, {.eps = 1e-60}), Error);  // 0 as a float
  EXPECT_NO_THROW(Adam(doubles, {.eps = 1e-60}));
  EXPECT_THROW(Adam(store, {.weight_decay = -1}), Error);
  EXPECT_THROW(Sgd(store, {.lr = inf}), Error);
  EXPECT_THROW(Sgd(store, {.momentum = 1}), Error);
  EXPECT_THROW(Sgd(store, {.weight_decay = nan}), Error);
  EXPECT_THROW(RmsProp(store, {.alpha = 1.5}), Error);
  EXPECT_THROW(RmsProp(store, {.eps = 1e-60}), Error);
  EXPECT_THROW(RmsProp(store, {.momentum = 1}), Error);
  EXPECT_THROW(RmsProp(store, {.weight_decay = -1}), Error);
  EXPECT_THROW(Adagrad(store, {.eps = 0}), Error);
  EXPECT_THROW(Adagrad(store, {.lr_decay = -1}), Error);
  EXPECT_THROW(Adagrad(store, {.initial_sum = inf}), Error);
  EXPECT_THROW(Lion(store, {.beta1 = 1}), Error);
  EXPECT_THROW(Lion(store, {.weight_decay = nan}), Error);
  Sgd optimizer(store, {.lr = 0.5});
  EXPECT_THROW(optimizer.set_lr(nan), Error);
  EXPECT_EQ(optimizer.lr(), 0.5);
  optimizer.set_lr(0.25);
  EXPECT_EQ(optimizer.lr(), 0.25);
}

TEST(Optimizer, UsesTheNewRate) {
  ParameterStore store;
  const Tensor w = store.root().Ones("w", {});
  Sgd optimizer(store, {.lr = 0.5});
  optimizer.set_lr(0.25);
  AddGradient(w, {1.});
  optimizer.Step();
  EXPECT_EQ(w.item(), 0.75);
}

}  // namespace
}  // namespace wengert::train
