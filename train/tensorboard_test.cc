// Event files, byte for byte those that TensorBoard's own code writes;
// testdata/tensorboard_reference.py does that, and reads them back.
#include "train/tensorboard.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "autograd/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert::train {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// The first event: framing, time, "brain.Event:2".
constexpr size_t kFileVersionBytes = 12 + 9 + 15 + 4;

class EventWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              info->test_suite_name() / info->name();
    std::filesystem::remove_all(folder_);
  }

  EventWriter Open(int64_t last_step = -1) {
    auto writer =
        EventWriter::Open(folder_, last_step, [this] { return now_; });
    EXPECT_TRUE(writer.ok()) << writer.status();
    return *std::move(writer);
  }

  static std::string Contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  std::filesystem::path folder_;
  double now_ = 1700000000.25;
};

// Two grey pixels, one above the other: black and white.
std::string Png() {
  return absl::HexStringToBytes(
      "89504e470d0a1a0a0000000d4948445200000001000000020800000000bceae9fb"
      "0000000c49444154789c636060f80f00010301000889c2ec"
      "0000000049454e44ae426082");
}

TEST_F(EventWriterTest, WritesTheBytesOfTensorBoardsOwnWriter) {
  // A clock that is read once to name the file; each event then takes a second.
  now_ -= 1;
  auto writer = EventWriter::Open(
      folder_, -1, [this] { return std::exchange(now_, now_ + 1); });
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(
      writer
          ->Scalars(
              8,
              {{"loss", 0.1}, {"zero", 0}, {"nan", kNan}, {"inf", -kInfinity}})
          .ok());
  const std::vector<double> values = {-1,   0,    0.25,      0.25,
                                      2.75, kNan, kInfinity, -0.5};
  ASSERT_TRUE(writer->Histogram(300, "w", Tensor::From({2, 4}, values)).ok());
  ASSERT_TRUE(writer->Histogram(300, "w", Tensor::Of({2}, {3, 3})).ok());
  ASSERT_TRUE(
      writer->Histogram(300, "w", Tensor::Full({1}, kNan, DType::kFloat64))
          .ok());
  ASSERT_TRUE(writer->Image(int64_t{1} << 40, "attention/layer0", Png()).ok());
  const std::string reference =
      Contents("train/testdata/tensorboard_reference.tfevents");
  ASSERT_FALSE(reference.empty());
  EXPECT_EQ(absl::BytesToHexString(Contents(writer->path())),
            absl::BytesToHexString(reference));
}

TEST_F(EventWriterTest, NamesFilesAsTensorBoardLooksForThem) {
  const EventWriter first = Open();
  EXPECT_THAT(std::filesystem::path(first.path()).filename().string(),
              StartsWith("events.out.tfevents.1700000000."));
  // At the same second, and with a clock that was put back.
  now_ -= 1000;
  const EventWriter second = Open(5);
  EXPECT_THAT(std::filesystem::path(second.path()).filename().string(),
              StartsWith("events.out.tfevents.1700000001."));
}

TEST_F(EventWriterTest, CutsWhatTheCheckpointDoesNotKnow) {
  // A run that was stopped once, and where its events end after each step.
  std::vector<std::string> paths;
  std::vector<std::vector<size_t>> ends(2);
  for (int part = 0; part < 2; ++part) {
    EventWriter writer = Open(1000 * part);
    paths.push_back(writer.path());
    for (int64_t step : {0, 1, 500, 1000}) {
      ASSERT_TRUE(
          writer.Scalars(step + 1000 * part, {{"loss", 1}, {"lr", 2}}).ok());
      ends[part].push_back(Contents(paths[part]).size());
    }
  }
  const std::string first = Contents(paths[0]), second = Contents(paths[1]);
  Open(1500);
  EXPECT_EQ(Contents(paths[0]), first);
  EXPECT_EQ(Contents(paths[1]), second.substr(0, ends[1][2]));
  // From an older checkpoint: of the second part only its version is left.
  Open(499);
  EXPECT_EQ(Contents(paths[0]), first.substr(0, ends[0][1]));
  EXPECT_EQ(Contents(paths[1]), second.substr(0, kFileVersionBytes));
}

TEST_F(EventWriterTest, CutsTheRecordThatAKilledProcessLeftUnfinished) {
  std::string path;
  size_t whole;
  {
    EventWriter writer = Open();
    path = writer.path();
    ASSERT_TRUE(writer.Scalars(1, {{"loss", 1}}).ok());
    whole = Contents(path).size();
    ASSERT_TRUE(writer.Scalars(2, {{"loss", 0.5}}).ok());
  }
  const std::string all = Contents(path);
  for (size_t size = 0; size <= all.size(); ++size) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::ofstream(path, std::ios::binary) << all.substr(0, size);
    Open(2);
    const size_t kept = size == all.size()          ? size
                        : size >= whole             ? whole
                        : size >= kFileVersionBytes ? kFileVersionBytes
                                                    : 0;
    ASSERT_EQ(Contents(path), all.substr(0, kept)) << size;
  }
  // A length that lies.
  std::ofstream(path, std::ios::binary) << std::string(100, '\xFF');
  Open(2);
  EXPECT_EQ(Contents(path), "");
}

// What a histogram's bytes end with: its counts, as doubles.
std::vector<double> Counts(const std::string& file, size_t n) {
  const size_t bytes = n * sizeof(double);
  std::vector<double> counts(n);
  std::memcpy(counts.data(), file.data() + file.size() - 4 - bytes, bytes);
  return counts;
}

TEST_F(EventWriterTest, HistogramsCountEveryFiniteValueOnce) {
  EventWriter writer = Open();
  std::vector<float> floats;
  for (int i = 0; i <= 300; ++i) floats.push_back(static_cast<float>(i));
  ASSERT_TRUE(writer.Histogram(0, "w", Tensor::From({301}, floats)).ok());
  std::vector<double> want(30, 10);
  want.back() = 11;
  EXPECT_EQ(Counts(Contents(writer.path()), 30), want);

  // A range that no double holds, and one that no bucket divides.
  const double huge = std::numeric_limits<double>::max();
  const std::vector<double> wide = {-huge, huge / 64, huge, huge};
  ASSERT_TRUE(writer.Histogram(0, "w", Tensor::From({4}, wide)).ok());
  want.assign(30, 0);
  want[0] = 1, want[15] = 1, want[29] = 2;
  EXPECT_EQ(Counts(Contents(writer.path()), 30), want);
  const std::vector<double> narrow = {0, 5e-324};
  ASSERT_TRUE(writer.Histogram(0, "w", Tensor::From({2}, narrow)).ok());
  EXPECT_EQ(Counts(Contents(writer.path()), 1), std::vector<double>{2});
}

TEST_F(EventWriterTest, RefusesWhatItCannotShow) {
  EventWriter writer = Open();
  const std::string before = Contents(writer.path());
  EXPECT_THROW(
      writer.Histogram(0, "w", Tensor::Zeros({2}, DType::kInt32)).IgnoreError(),
      Error);
  EXPECT_THROW(writer.Image(0, "a", Png().substr(0, 32)).IgnoreError(), Error);
  EXPECT_THROW(writer.Image(0, "a", "GIF" + Png()).IgnoreError(), Error);
  EXPECT_EQ(Contents(writer.path()), before);
}

TEST_F(EventWriterTest, FailuresAreReportedOnce) {
  EventWriter writer = Open();
  std::filesystem::remove_all(folder_);
  EXPECT_EQ(writer.Scalars(1, {{"loss", 1}}).message(),
            writer.path() + ": cannot be written: No such file or directory");
  EXPECT_TRUE(writer.Scalars(2, {{"loss", 1}}).ok());
}

TEST_F(EventWriterTest, SaysWhereItCannotWrite) {
  std::ofstream(folder_) << "a file";
  EXPECT_THAT(EventWriter::Open(folder_, -1).status().message(),
              HasSubstr(folder_.string() + ": cannot be written: "));
}

}  // namespace
}  // namespace wengert::train
