// Runs that are saved and go on, and files that do not fit.
#include "train/checkpoint.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/ops.h"
#include "autograd/parallel.h"
#include "autograd/tape.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/adam.h"
#include "train/files_testlib.h"
#include "train/optimizer_testlib.h"
#include "train/sgd.h"

namespace wengert::train {
namespace {

using nn::ParameterStore;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

class CheckpointTest : public FilesTest {};

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

// A regression whose weights are used twice, with dropout.
struct Regression {
  explicit Regression(DType dtype, bool bias_first = false)
      : store(dtype, /*seed=*/3), generator(5), batches(10, 3, /*seed=*/7) {
    if (bias_first) bias = store.root().Zeros("bias", {4});
    weight = store.root().Uniform("up.weight", {4, 4}, 1);
    store.root().Tied("down.weight", weight);
    if (!bias_first) bias = store.root().Zeros("bias", {4});
    unused = store.root().Ones("unused", {0, 3});
    optimizer = std::make_unique<AdamW>(
        store, AdamWOptions{
                   .lr = 0.03, .weight_decay = 0.1, .decay_filter = IsMatrix});
  }

  double Step() {
    const absl::Span<const int64_t> batch = batches.Next();
    Tensor x =
        Tensor::Empty({static_cast<int64_t>(batch.size()), 4}, store.dtype());
    WithFloat(store.dtype(), [&]<class T>(T) {
      T* to = x.mutable_data<T>();
      for (size_t i = 0; i < batch.size(); ++i) {
        for (int k = 0; k < 4; ++k) {
          to[4 * i + k] = static_cast<T>(std::sin(batch[i] + 0.5 * k));
        }
      }
    });
    Tape tape(generator);
    const Tensor h = Dropout(Gelu(Linear(x, weight, bias)), 0.25);
    const Tensor loss = Mean(Square(Linear(h, weight) - x));
    tape.Backward(loss);
    optimizer->set_lr(0.03 / (1 + info.step));
    optimizer->Step();
    ++info.step;
    info.cursor = batches.state();
    return loss.item();
  }

  TrainingRun parts() {
    return {&store, optimizer.get(), &generator, &batches};
  }

  // Everything that a checkpoint keeps.
  std::vector<std::vector<double>> Everything() {
    const OptimizerState state = optimizer->State();
    std::vector<std::vector<double>> all = {
        {double(info.step), double(generator.seed()),
         double(generator.offset()), double(batches.epoch()),
         double(batches.position()), optimizer->lr()}};
    for (const char* name : {"up.weight", "bias", "unused"}) {
      const OptimizerState::Entry& entry = state.parameters.at(name);
      all.push_back(store.Find(name).ToVector());
      all.push_back({double(entry.step), double(entry.decay)});
      for (const auto& [key, x] : entry.tensors) all.push_back(x.ToVector());
    }
    return all;
  }

  ParameterStore store;
  Generator generator;
  BatchStream batches;
  Tensor weight, bias, unused;
  std::unique_ptr<AdamW> optimizer;
  CheckpointInfo info;
};

TEST_F(CheckpointTest, ARunGoesOnAsIfItHadNotStopped) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const int stop : {0, 1, 5, 9}) {
      SetNumThreads(1);
      Regression straight(dtype), first(dtype);
      first.info.cursor = first.batches.state();
      for (int i = 0; i < stop; ++i) EXPECT_EQ(straight.Step(), first.Step());
      const std::string path = Path("checkpoint");
      ASSERT_TRUE(SaveCheckpoint(path, first.parts(), first.info).ok());
      SetNumThreads(2);
      Regression second(dtype, /*bias_first=*/true);
      if (stop == 5) second.Step();  // what it did before is forgotten
      const auto info = LoadCheckpoint(path, second.parts());
      ASSERT_TRUE(info.ok()) << info.status();
      second.info = *info;
      EXPECT_EQ(second.Everything(), first.Everything());
      for (int i = stop; i < 12; ++i) EXPECT_EQ(second.Step(), straight.Step());
      EXPECT_EQ(second.Everything(), straight.Everything());
    }
  }
}

TEST_F(CheckpointTest, KeepsWhatStandsBeside) {
  Regression run(DType::kFloat32);
  run.generator = Generator(~uint64_t{0}, ~uint64_t{0} - 1);
  run.info = {
      .step = int64_t{1} << 60,
      .cursor = run.batches.state(),
      .schedule = "cosine to \"0\"",
      .config = "--lr=0.1\n--name=é\n",
      .metrics = {{"loss", 0.1},
                  {"best loss", std::numeric_limits<double>::infinity()},
                  {"", -5e-324},
                  {"nan", std::nan("")}}};
  const std::string path = Path("checkpoint");
  ASSERT_TRUE(SaveCheckpoint(path, run.parts(), run.info).ok());
  Regression other(DType::kFloat32);
  for (const auto& info :
       {ReadCheckpointInfo(path), LoadCheckpoint(path, other.parts())}) {
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(info->step, run.info.step);
    EXPECT_EQ(info->cursor->n, 10);
    EXPECT_EQ(info->cursor->seed, 7u);
    EXPECT_TRUE(info->cursor->shuffle);
    EXPECT_EQ(info->schedule, run.info.schedule);
    EXPECT_EQ(info->config, run.info.config);
    EXPECT_EQ(info->metrics.size(), 4u);
    EXPECT_EQ(info->metrics.at("loss"), 0.1);
    EXPECT_EQ(info->metrics.at("best loss"),
              std::numeric_limits<double>::infinity());
    EXPECT_EQ(info->metrics.at(""), -5e-324);
    EXPECT_TRUE(std::isnan(info->metrics.at("nan")));
  }
  EXPECT_EQ(other.generator.seed(), ~uint64_t{0});
  EXPECT_EQ(other.generator.offset(), ~uint64_t{0} - 1);
}

TEST_F(CheckpointTest, HoldsATiedParameterOnce) {
  Regression run(DType::kFloat32);
  run.Step();
  const std::string path = Path("checkpoint");
  ASSERT_TRUE(SaveCheckpoint(path, run.parts(), run.info).ok());
  const auto file = SafetensorsFile::Open(path);
  std::vector<std::string> names;
  for (const auto& entry : file->entries()) names.push_back(entry.name);
  EXPECT_THAT(names,
              ElementsAre("up.weight", "bias", "unused", "optimizer.m.bias",
                          "optimizer.v.bias", "optimizer.m.unused",
                          "optimizer.v.unused", "optimizer.m.up.weight",
                          "optimizer.v.up.weight"));
}

// The cursor is that of the batches consumed, not of those read ahead.
TEST_F(CheckpointTest, TakesTheCursorThatItIsGiven) {
  Regression run(DType::kFloat32);
  EXPECT_THAT([&] { (void)SaveCheckpoint(Path("x"), run.parts(), {}); },
              ThrowsMessage<Error>(HasSubstr("no cursor")));
  run.Step();
  run.batches.Next();
  ASSERT_TRUE(SaveCheckpoint(Path("x"), run.parts(), run.info).ok());
  ASSERT_TRUE(LoadCheckpoint(Path("x"), run.parts()).ok());
  EXPECT_EQ(run.batches.position(), 3);
}

TEST_F(CheckpointTest, PartsThatARunDoesNotHave) {
  Regression run(DType::kFloat32);
  run.Step();
  ASSERT_TRUE(SaveCheckpoint(Path("all"), run.parts(), run.info).ok());
  ASSERT_TRUE(SaveCheckpoint(Path("few"), {&run.store}, {}).ok());
  ParameterStore store = run.store.Clone();
  EXPECT_TRUE(LoadCheckpoint(Path("all"), {&store}).ok());
  const auto before = run.Everything();
  EXPECT_EQ(Message(LoadCheckpoint(Path("few"), run.parts()).status()),
            Path("few") +
                ": 3 differences: the file has no generator; the file has no "
                "place in a stream of batches; the file has no optimizer");
  EXPECT_EQ(run.Everything(), before);
}

TEST_F(CheckpointTest, DropsGradientsThatWereGathered) {
  Regression run(DType::kFloat32);
  run.Step();
  ASSERT_TRUE(SaveCheckpoint(Path("x"), run.parts(), run.info).ok());
  const auto before = run.Everything();
  for (const bool parameters_only : {false, true}) {
    AddGradient(run.bias, {1, 2, 3, 4});
    ASSERT_TRUE((parameters_only
                     ? LoadParameters(Path("x"), run.store)
                     : LoadCheckpoint(Path("x"), run.parts()).status())
                    .ok());
    run.optimizer->Step();
    EXPECT_EQ(run.Everything(), before);
  }
}

TEST_F(CheckpointTest, ListsDifferencesAndChangesNothing) {
  ParameterStore saved;
  saved.root().Ones("a", {2});
  saved.root().Ones("b", {2, 3});
  saved.root().Ones("c", {1});
  AdamW adamw(saved);
  BatchStream ten(10, 1, 1);
  const std::string path = Path("checkpoint");
  ASSERT_TRUE(SaveCheckpoint(path, {&saved, &adamw, nullptr, &ten},
                             {.step = 9, .cursor = ten.state()})
                  .ok());
  ParameterStore store;
  const Tensor a = store.root().Zeros("a", {2});
  const Tensor b = store.root().Zeros("b", {3, 2});
  const Tensor d = store.root().Zeros("d", {1});
  AdamW optimizer(store);
  AddGradient(a, {1, 1});
  optimizer.Step();
  Generator generator(4, 2);
  BatchStream batches(11, 1, 1);
  batches.Next();
  const std::vector<double> m =
      optimizer.State().parameters.at("a").tensors.at("m").ToVector();
  const auto expect_unchanged = [&] {
    EXPECT_EQ(batches.position(), 1);
    EXPECT_EQ(b.ToVector(), std::vector<double>(6));
    EXPECT_LT(a.ToVector()[0], 0);
    const OptimizerState state = optimizer.State();
    EXPECT_EQ(state.parameters.at("a").step, 1);
    EXPECT_EQ(state.parameters.at("a").tensors.at("m").ToVector(), m);
    EXPECT_EQ(generator.offset(), 2u);
  };
  const auto load = [&](const TrainingRun& run, const LoadOptions& options) {
    return Message(LoadCheckpoint(path, run, options).status());
  };
  EXPECT_EQ(
      load({&store, &optimizer, &generator, &batches}, {}),
      path +
          ": 9 differences: the store has no 'c'; "
          "'b' is F32 [2, 3] in the file; wanted float32 [3, 2]; "
          "the file has no 'd'; the file has no generator; "
          "BatchStream: saved with n 10, seed 1, shuffle 1; this stream has n "
          "11, seed 1, shuffle 1; "
          "'optimizer.m.b' is F32 [2, 3] in the file; wanted float32 [3, 2]; "
          "'optimizer.v.b' is F32 [2, 3] in the file; wanted float32 [3, 2]; "
          "the store has no 'c', of which the file has the optimizer's state; "
          "the file has no state of the optimizer for 'd'");
  expect_unchanged();
  // Other kinds of optimizer, and options that it refuses, after the stream
  // has been restored.
  ParameterStore same = saved.Clone();
  Sgd sgd(same);
  BatchStream stream(10, 1, 1);
  stream.Next();
  EXPECT_EQ(load({&same, &sgd, nullptr, &stream}, {}),
            path + ": the optimizer is \"AdamW\" in the file; wanted Sgd");
  EXPECT_EQ(stream.position(), 1);
  // An optimizer that could be loaded, where something else does not fit.
  AdamW fits(same, {.lr = 0.25});
  EXPECT_EQ(load({&same, &fits, &generator}, {}),
            path + ": the file has no generator");
  EXPECT_EQ(fits.lr(), 0.25);
  // Of another model the first differences are enough.
  ParameterStore large;
  for (int i = 10; i < 40; ++i) large.root().Zeros(absl::StrCat(i), {});
  EXPECT_THAT(
      load({&large}, {}),
      AllOf(StartsWith(path + ": 33 differences: the store has no 'a'; "),
            HasSubstr("the file has no '16'; and 23 more"),
            Not(HasSubstr("'17'"))));
}

TEST_F(CheckpointTest, KeepsThePlaceInEveryKindOfOrder) {
  ParameterStore store;
  store.root().Ones("a", {2});
  const std::string path = Path("checkpoint");
  BatchStream saved(10, 2, 1, {.lengths = std::vector<int32_t>(10)});
  saved.Next();
  ASSERT_TRUE(SaveCheckpoint(path, {.parameters = &store, .batches = &saved},
                             {.cursor = saved.state()})
                  .ok());
  BatchStream same(10, 2, 1, {.lengths = std::vector<int32_t>(10)});
  ASSERT_TRUE(
      LoadCheckpoint(path, {.parameters = &store, .batches = &same}).ok());
  EXPECT_EQ(same.position(), 2);
  EXPECT_EQ(same.Next(), saved.Next());
  BatchStream plain(10, 2, 1);
  EXPECT_THAT(
      Message(LoadCheckpoint(path, {.parameters = &store, .batches = &plain})
                  .status()),
      HasSubstr("saved of an order that other lengths"));
}

TEST_F(CheckpointTest, NotStrictTakesWhatIsThere) {
  ParameterStore saved;
  saved.root().Ones("a", {2});
  saved.root().Ones("b", {2});
  AdamW adamw(saved);
  AddGradient(saved.Find("a"), {1, 1});
  AddGradient(saved.Find("b"), {1, 1});
  adamw.Step();
  const std::string path = Path("checkpoint");
  ASSERT_TRUE(SaveCheckpoint(path, {&saved, &adamw}, {.step = 1}).ok());
  ParameterStore store;
  const Tensor a = store.root().Zeros("a", {2});
  const Tensor c = store.root().Constant("c", {2}, 7);
  AdamW optimizer(store);
  std::vector<std::string> passed_over = {"old"};
  const auto info =
      LoadCheckpoint(path, {&store, &optimizer},
                     {.strict = false, .passed_over = &passed_over});
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(a.ToVector(), saved.Find("a").ToVector());
  EXPECT_THAT(c.ToVector(), ElementsAre(7, 7));
  EXPECT_EQ(optimizer.State().parameters.at("a").step, 1);
  EXPECT_EQ(optimizer.State().parameters.at("c").step, 0);
  EXPECT_THAT(passed_over,
              ElementsAre("the store has no 'b'", "the file has no 'c'",
                          "the store has no 'b', of which the file has the "
                          "optimizer's state",
                          "the file has no state of the optimizer for 'c'"));
  // A wrong shape is not passed over.
  ParameterStore wrong;
  wrong.root().Zeros("a", {3});
  EXPECT_THAT(Message(LoadParameters(path, wrong, {.strict = false})),
              HasSubstr("'a' is F32 [2] in the file; wanted float32 [3]"));
}

TEST_F(CheckpointTest, Renames) {
  ParameterStore saved;
  saved.root().Sub("encoder").Constant("w", {1}, 1);
  saved.root().Sub("encoder2").Constant("w", {1}, 2);
  AdamW adamw(saved);
  AddGradient(saved.Find("encoder.w"), {1});
  adamw.Step();
  const std::string path = Path("checkpoint");
  ASSERT_TRUE(SaveCheckpoint(path, {&saved, &adamw}, {}).ok());
  ParameterStore store;
  const Tensor w = store.root().Sub("model").Sub("layer").Zeros("w", {1});
  const Tensor w2 = store.root().Sub("encoder2").Zeros("w", {1});
  AdamW optimizer(store);
  LoadOptions options = {.rename = {{"encoder.", "model.layer."}}};
  const auto info = LoadCheckpoint(path, {&store, &optimizer}, options);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(w.ToVector(), saved.Find("encoder.w").ToVector());
  EXPECT_THAT(w2.ToVector(), ElementsAre(2));
  EXPECT_EQ(optimizer.State().parameters.at("model.layer.w").step, 1);
  EXPECT_EQ(optimizer.State().parameters.at("encoder2.w").step, 0);

  options.rename = {{"encoder.", "encoder2."}};
  EXPECT_EQ(
      Message(LoadParameters(path, store, options)),
      path +
          ": 2 differences: 'encoder2.w' (in the file 'encoder.w') and "
          "'encoder2.w' are one parameter, and their values differ in the "
          "file; the file has no 'model.layer.w'");
}

TEST_F(CheckpointTest, ParametersOfOtherPrograms) {
  ParameterStore store;
  const Tensor w = store.root().Zeros("w", {2});
  store.root().Tied("head", w);
  const std::string path = Path("file");
  const auto write = [&](const std::vector<NamedTensor>& tensors,
                         std::optional<ElementType> type = {}) {
    ASSERT_TRUE(WriteSafetensors(path, tensors, {}, type).ok());
  };
  const Tensor values = Tensor::Of({2}, {1.5, -2});
  for (const ElementType type :
       {ElementType::kF16, ElementType::kBF16, ElementType::kF32}) {
    write({{"head", values}}, type);
    EXPECT_TRUE(LoadParameters(path, store).ok());
    EXPECT_THAT(w.ToVector(), ElementsAre(1.5, -2));
  }
  write({{"w", Tensor::Of<double>({2}, {0.1, 3})}});
  EXPECT_EQ(Message(LoadParameters(path, store)),
            path + ": 'w' is F64 [2] in the file; wanted float32 [2]");
  ASSERT_TRUE(LoadParameters(path, store, {.round = true}).ok());
  EXPECT_THAT(w.ToVector(), ElementsAre(0.1f, 3));
  write({{"w", Tensor::Of<int64_t>({2}, {1, 2})}});
  EXPECT_EQ(Message(LoadParameters(path, store, {.round = true})),
            path + ": 'w' is I64 [2] in the file; wanted float32 [2]");
  // Both names, which agree or not.
  write({{"head", values}, {"w", values}});
  EXPECT_TRUE(LoadParameters(path, store).ok());
  write({{"head", values}, {"w", Tensor::Ones({2})}});
  EXPECT_THAT(Message(LoadParameters(path, store)),
              HasSubstr("'head' and 'w' are one parameter"));
  // A name that only checkpoints keep for themselves.
  write({{"w", values}, {"optimizer.m.w", values}});
  EXPECT_EQ(Message(LoadParameters(path, store)),
            path + ": the store has no 'optimizer.m.w'");
  EXPECT_EQ(Message(LoadCheckpoint(path, {&store}).status()),
            path + ": is no checkpoint of a training run");
  EXPECT_EQ(Message(ReadCheckpointInfo(path).status()),
            path + ": is no checkpoint of a training run");
  EXPECT_THAT(w.ToVector(), ElementsAre(1.5, -2));
}

TEST_F(CheckpointTest, PythonsOwnFile) {
  ParameterStore store(DType::kFloat64);
  store.root().Zeros("f16", {2, 5});
  store.root().Zeros("bf16", {5, 2, 1});
  store.root().Zeros("scalar", {});
  store.root().Zeros("empty", {0, 3});
  ASSERT_TRUE(LoadParameters("train/testdata/reference.safetensors", store,
                             {.strict = false})
                  .ok());
  EXPECT_EQ(store.Find("f16").ToVector()[4], 0x1.998p-4);
  EXPECT_EQ(store.Find("bf16").ToVector()[4], 0x1.9ap-4);
  EXPECT_EQ(store.Find("scalar").item(), 3);
}

TEST_F(CheckpointTest, SavesParametersAlone) {
  Regression run(DType::kFloat64);
  ASSERT_TRUE(SaveParameters(Path("f64"), run.store).ok());
  ASSERT_TRUE(SaveParameters(Path("bf16"), run.store, ElementType::kBF16).ok());
  ParameterStore exact = run.store.Clone(), rounded = run.store.Clone();
  for (ParameterStore* store : {&exact, &rounded}) {
    Tensor w = store->Find("up.weight");
    std::fill_n(w.mutable_data<double>(), w.size(), 9);
  }
  ASSERT_TRUE(LoadParameters(Path("f64"), exact).ok());
  ASSERT_TRUE(LoadParameters(Path("bf16"), rounded).ok());
  const auto w = run.weight.ToVector();
  EXPECT_EQ(exact.Find("up.weight").ToVector(), w);
  const auto r = rounded.Find("up.weight").ToVector();
  EXPECT_NE(r, w);
  for (size_t i = 0; i < w.size(); ++i) {
    EXPECT_NEAR(r[i], w[i], std::abs(w[i]) / 256);
  }
}

TEST_F(CheckpointTest, WhatCannotBeSavedLeavesTheOldFile) {
  Regression run(DType::kFloat32);
  run.Step();
  const std::string path = Path("checkpoint");
  ASSERT_TRUE(SaveCheckpoint(path, run.parts(), run.info).ok());
  const std::string old = Contents(path);
  const auto before = run.Everything();
  {
    const FullDisk full(1 << 10);
    EXPECT_EQ(Message(SaveCheckpoint(path, run.parts(), run.info)),
              path + ": cannot be written: File too large");
  }
  EXPECT_EQ(Message(SaveCheckpoint(path + "/x", run.parts(), run.info)),
            path + "/x: cannot be written: Not a directory");
  EXPECT_EQ(Message(SaveCheckpoint(Path("no/x"), run.parts(), run.info)),
            Path("no/x") + ": cannot be written: No such file or directory");
  run.info.config = "\xFF";
  EXPECT_THAT(Message(SaveCheckpoint(path, run.parts(), run.info)),
              HasSubstr("is not UTF-8"));
  ParameterStore clash;
  clash.root().Sub("optimizer").Ones("w", {1});
  EXPECT_EQ(Message(SaveCheckpoint(path, {&clash}, {})),
            path +
                ": cannot be written: the name 'optimizer.w' of a parameter is "
                "one that a checkpoint keeps for an optimizer or an average");
  EXPECT_EQ(Contents(path), old);
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  EXPECT_EQ(run.Everything(), before);
}

TEST_F(CheckpointTest, MetadataThatIsMalformed) {
  Regression run(DType::kFloat32);
  run.Step();
  const auto contents = CollectCheckpoint(run.parts(), run.info);
  ASSERT_TRUE(contents.ok());
  const auto before = run.Everything();
  const std::string path = Path("checkpoint");
  const auto fault = [&](SafetensorsFile::Metadata metadata) {
    EXPECT_TRUE(WriteSafetensors(path, contents->tensors, metadata).ok());
    return Message(LoadCheckpoint(path, run.parts()).status());
  };
  SafetensorsFile::Metadata bad = contents->metadata;
  bad.erase("step");
  bad["batches.epoch"] = "1.5";
  bad["batches.shuffle"] = "maybe";
  bad["generator.seed"] = "18446744073709551616";
  bad["optimizer.options.lr"] = "much\x1B";
  bad.erase("optimizer.decay.bias");
  EXPECT_EQ(fault(bad),
            path +
                ": 6 differences: the metadata has no 'step'; "
                "'batches.shuffle' of the metadata is \"maybe\", which cannot "
                "be read; "
                "'batches.epoch' of the metadata is \"1.5\", which cannot be "
                "read; "
                "'generator.seed' of the metadata is \"18446744073709551616\", "
                "which cannot be read; "
                "'optimizer.options.lr' of the metadata is \"much\uFFFD\", "
                "which cannot be read; "
                "the metadata has no 'optimizer.decay.bias'");
  bad = contents->metadata;
  bad["metrics.two\nlines"] = "";
  EXPECT_EQ(fault(bad), path +
                            ": 'metrics.two\uFFFDlines' of the metadata is "
                            "\"\", which cannot be read");
  bad = contents->metadata;
  bad["optimizer.kind"] = "two\nlines";
  EXPECT_THAT(fault(bad), HasSubstr("the optimizer is \"two\uFFFDlines\" in"));
  bad = contents->metadata;
  bad["wengert.format_version"] = "2";
  bad.erase("step");
  EXPECT_EQ(fault(bad), path +
                            ": the checkpoint is of format version 2; this "
                            "program reads up to 1");
  bad = contents->metadata;
  bad["optimizer.options.beta1"] = "2";
  bad["batches.position"] = "10";
  EXPECT_THAT(fault(bad),
              AllOf(HasSubstr("2 differences"), HasSubstr("AdamW: beta1 is 2"),
                    HasSubstr("position 10")));
  bad = contents->metadata;
  bad.erase("optimizer.step.bias");
  EXPECT_EQ(fault(bad),
            path + ": the file has no state of the optimizer for 'bias'");
  EXPECT_EQ(run.Everything(), before);
}

// A file that SaveCheckpoint wrote when the format was new.
TEST_F(CheckpointTest, AFileOfFormatVersion1) {
  ParameterStore store;
  const Tensor b = store.root().Zeros("b", {2});
  const Tensor w = store.root().Zeros("w", {2, 2});
  store.root().Tied("head", w);
  Sgd optimizer(store);
  Generator generator(0);
  BatchStream batches(10, 3, 7);
  const auto info = LoadCheckpoint("train/testdata/checkpoint_v1.safetensors",
                                   {&store, &optimizer, &generator, &batches});
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->step, 6);
  EXPECT_EQ(info->schedule, "constant 0.5");
  EXPECT_EQ(info->config, "--steps=9");
  EXPECT_EQ(info->metrics.at("loss"), 0.1);
  EXPECT_THAT(w.ToVector(), ElementsAre(0.5, 1, 1.5, 2));
  EXPECT_THAT(b.ToVector(), ElementsAre(-1, 0.25));
  EXPECT_EQ(generator.seed(), 12345678901234567890u);
  EXPECT_EQ(generator.offset(), 17u);
  EXPECT_EQ(batches.epoch(), 1);
  EXPECT_EQ(batches.position(), 6);
  EXPECT_EQ(optimizer.lr(), 0.5);
  const OptimizerState state = optimizer.State();
  EXPECT_EQ(state.options.at("momentum"), 0.75);
  EXPECT_EQ(state.parameters.at("w").step, 1);
  EXPECT_TRUE(state.parameters.at("w").decay);
  EXPECT_THAT(state.parameters.at("w").tensors.at("momentum").ToVector(),
              ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(state.parameters.at("b").step, 0);
  EXPECT_FALSE(state.parameters.at("b").decay);
}

}  // namespace
}  // namespace wengert::train
