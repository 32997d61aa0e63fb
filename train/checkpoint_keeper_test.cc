// Checkpoints written on the side, kept, found again, and what goes wrong.
#include "train/checkpoint_keeper.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/adam.h"
#include "train/files_testlib.h"

namespace wengert::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

class CheckpointKeeperTest : public FilesTest {
 protected:
  CheckpointKeeperTest()
      : w_(store_.root().Zeros("w", {100, 7})), optimizer_(store_) {}

  static std::string Name(int step) {
    return absl::StrCat("step-00000000", step, ".safetensors");
  }

  // All values become `step`.
  void Step(int step, double loss = 0) {
    std::fill_n(w_.mutable_data<float>(), w_.size(), static_cast<float>(step));
    info_.step = step;
    info_.metrics["loss"] = loss;
  }
  absl::Status Save(CheckpointKeeper& keeper, int step, double loss = 0) {
    Step(step, loss);
    return keeper.Save({&store_, &optimizer_}, info_);
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string Newest() const {
    const auto newest = NewestCheckpoint(folder_);
    return newest.ok() ? *newest : std::string(newest.status().message());
  }

  nn::ParameterStore store_;
  Tensor w_;
  AdamW optimizer_;
  CheckpointInfo info_;
};

TEST_F(CheckpointKeeperTest, KeepsTheLastAndTheBest) {
  const CheckpointKeeperOptions options = {.keep_last = 2,
                                           .best_metric = "loss"};
  File("step-1.safetensors", "somebody else's");
  File(Name(9) + ".partial", "of a run that was killed");
  File("notes.partial", "somebody else's");
  {
    CheckpointKeeper keeper(folder_, options);
    const double loss[] = {5, 1, std::nan(""), 1, 2};
    for (int step = 1; step <= 5; ++step) {
      EXPECT_TRUE(Save(keeper, step, loss[step - 1]).ok());
      EXPECT_TRUE(keeper.Finish().ok());
      EXPECT_EQ(Newest(), Path(Name(step)));
    }
    EXPECT_THAT(Names(), ElementsAre("notes.partial", Name(2), Name(4), Name(5),
                                     "step-1.safetensors"));
  }
  // The best is known again.
  CheckpointKeeper keeper(folder_, options);
  EXPECT_TRUE(Save(keeper, 6, 1.5).ok());
  EXPECT_TRUE(keeper.Finish().ok());
  EXPECT_EQ(*BestCheckpoint(folder_, options), Path(Name(2)));
  EXPECT_EQ(*BestCheckpoint(folder_,
                            {.best_metric = "loss", .lower_is_better = false}),
            Path(Name(5)));
  EXPECT_TRUE(Save(keeper, 7, 0.5).ok());
  EXPECT_TRUE(keeper.Finish().ok());
  EXPECT_THAT(Names(), ElementsAre("notes.partial", Name(6), Name(7),
                                   "step-1.safetensors"));
  EXPECT_EQ(BestCheckpoint(folder_, {.best_metric = "x"}).status().message(),
            folder_.string() + ": there is no checkpoint with the metric 'x'");
}

TEST_F(CheckpointKeeperTest, WithoutAMetricTheLastAreKept) {
  CheckpointKeeper keeper(Path("made/for it"), {.keep_last = 1});
  for (int step = 1; step <= 3; ++step) {
    EXPECT_TRUE(Save(keeper, step, step).ok());
  }
  EXPECT_TRUE(keeper.Finish().ok());
  folder_ = Path("made/for it");
  EXPECT_THAT(Names(), ElementsAre(Name(3)));
  EXPECT_THAT([&] { CheckpointKeeper(folder_, {.keep_last = 0}); },
              ThrowsMessage<Error>(HasSubstr("keep_last is 0")));
}

TEST_F(CheckpointKeeperTest, NeverRemovesWhatItHasJustWritten) {
  CheckpointKeeper keeper(folder_, {.keep_last = 1});
  EXPECT_TRUE(Save(keeper, 8).ok());
  EXPECT_TRUE(Save(keeper, 2).ok());  // resumed from further back
  EXPECT_TRUE(keeper.Finish().ok());
  EXPECT_THAT(Names(), ElementsAre(Name(2), Name(8)));
  EXPECT_TRUE(Save(keeper, 9).ok());
  EXPECT_TRUE(keeper.Finish().ok());
  EXPECT_THAT(Names(), ElementsAre(Name(9)));
}

TEST_F(CheckpointKeeperTest, WritesWhatWasThenWhileTheRunGoesOn) {
  // The name of the first leads to a pipe, on which its writing waits.
  const std::string pipe = Path(Name(1));
  std::string bytes;
  std::thread reader;
  {
    CheckpointKeeper keeper(folder_);
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    ASSERT_TRUE(Save(keeper, 1).ok());
    Step(2);
    reader = std::thread([&] { bytes = Contents(pipe); });
    EXPECT_TRUE(Save(keeper, 3).ok());
    Step(4);
    EXPECT_TRUE(keeper.Finish().ok());
  }
  reader.join();
  const auto values = [&](const SafetensorsFile& file) {
    std::vector<float> w(700);
    CopyElements(*file.Find("w"), DType::kFloat32, w.data());
    EXPECT_EQ(*std::min_element(w.begin(), w.end()), w[0]);
    EXPECT_EQ(*std::max_element(w.begin(), w.end()), w[0]);
    return w[0];
  };
  const auto first = SafetensorsFile::Parse(
      {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, pipe);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(values(*first), 1);
  EXPECT_EQ(first->metadata().at("step"), "1");
  const auto second = SafetensorsFile::Open(Path(Name(3)));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(values(*second), 3);
}

TEST_F(CheckpointKeeperTest, ReportsAFullDiskAndGoesOn) {
  CheckpointKeeper keeper(folder_, {.keep_last = 1});
  EXPECT_TRUE(Save(keeper, 1).ok());
  EXPECT_TRUE(keeper.Finish().ok());
  const std::string fault =
      Path(Name(2)) + ": cannot be written: File too large";
  {
    const FullDisk full(1 << 10);
    EXPECT_TRUE(Save(keeper, 2).ok());
    EXPECT_EQ(keeper.Finish().message(), fault);
    EXPECT_TRUE(keeper.Finish().ok());
    EXPECT_TRUE(Save(keeper, 2).ok());
    EXPECT_EQ(Save(keeper, 3).message(), fault);  // and tries the next
    EXPECT_FALSE(keeper.Finish().ok());
  }
  EXPECT_THAT(Names(), ElementsAre(Name(1)));
  EXPECT_TRUE(Save(keeper, 4).ok());
  EXPECT_TRUE(keeper.Finish().ok());
  EXPECT_THAT(Names(), ElementsAre(Name(4)));
}

TEST_F(CheckpointKeeperTest, FoldersThatCannotBeOrVanish) {
  const std::string file = File("file", "old");
  {
    CheckpointKeeper keeper(file + "/folder");
    EXPECT_EQ(Save(keeper, 1).message(),
              file + "/folder: cannot be made: Not a directory");
    EXPECT_EQ(
        keeper.Finish().message(),
        file + "/folder/" + Name(1) + ": cannot be written: Not a directory");
  }
  CheckpointKeeper keeper(Path("folder"));
  EXPECT_TRUE(Save(keeper, 1).ok());
  EXPECT_TRUE(keeper.Finish().ok());
  std::filesystem::remove_all(Path("folder"));
  EXPECT_TRUE(Save(keeper, 2).ok());
  EXPECT_EQ(keeper.Finish().message(),
            Path("folder/") + Name(2) +
                ": cannot be written: No such file or directory");
}

TEST_F(CheckpointKeeperTest, SaysWhatARunCannotSave) {
  CheckpointKeeper keeper(folder_);
  info_.config = "\xFF";
  EXPECT_TRUE(Save(keeper, 1).ok());
  EXPECT_THAT(std::string(keeper.Finish().message()),
              HasSubstr("is not UTF-8"));
  info_.config = "";
  store_.root().Ones("optimizer.w", {1});
  EXPECT_TRUE(Save(keeper, 2).ok());  // its error is the next call's
  EXPECT_THAT(std::string(keeper.Finish().message()),
              HasSubstr(Name(2) + ": cannot be written: the name"));
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(CheckpointKeeperTest, TheCopyFollowsAModelThatGrows) {
  CheckpointKeeper keeper(folder_);
  EXPECT_TRUE(Save(keeper, 1).ok());
  store_.root().Ones("more", {3});
  EXPECT_TRUE(Save(keeper, 2).ok());
  EXPECT_TRUE(keeper.Finish().ok());
  const nn::ParameterStore copy = store_.Clone();
  Step(3);
  ASSERT_TRUE(LoadCheckpoint(Path(Name(2)), {&store_, &optimizer_}).ok());
  EXPECT_EQ(w_.ToVector(), copy.Find("w").ToVector());
}

TEST_F(CheckpointKeeperTest, FindsTheNewestThatIsWhole) {
  const std::string none = ": there is no checkpoint";
  EXPECT_EQ(NewestCheckpoint(Path("missing")).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Newest(), folder_.string() + none);
  {
    CheckpointKeeper keeper(folder_);
    EXPECT_TRUE(Save(keeper, 1).ok());
    EXPECT_TRUE(Save(keeper, 2).ok());
  }
  const std::string whole = Contents(Path(Name(2)));
  File(Name(3) + ".partial", whole);
  EXPECT_EQ(Newest(), Path(Name(2)));
  File(Name(2), whole.substr(0, whole.size() - 1));
  EXPECT_EQ(Newest(), Path(Name(1)));
  ASSERT_TRUE(SaveParameters(Path(Name(4)), store_).ok());  // is no checkpoint
  EXPECT_EQ(Newest(), Path(Name(1)));
  File(Name(1), "");
  EXPECT_EQ(Newest(), Path(Name(4)) + ": is no checkpoint of a training run");
}

}  // namespace
}  // namespace wengert::train
