// Rows of numbers, read back as they stand, over stops and full disks.
#include "train/metrics_log.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/files_testlib.h"

namespace wengert::train {
namespace {

using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class MetricsLogTest : public FilesTest {
 protected:
  void SetUp() override {
    FilesTest::SetUp();
    csv_ = Path("metrics.csv");
    jsonl_ = Path("metrics.jsonl");
  }

  MetricsLog Open(int64_t last_step = -1) {
    auto log = MetricsLog::Open(csv_, jsonl_, last_step);
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }

  static void SetContents(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  std::string csv_, jsonl_;
};

TEST_F(MetricsLogTest, WritesRowsAtOnceWithTimesLast) {
  MetricsLog log = Open();
  EXPECT_EQ(Contents(jsonl_), "");
  EXPECT_EQ(Contents(csv_), "step\n");
  ASSERT_TRUE(
      log.Write(1, {{"time/seconds", 0.75}, {"loss", 3.25}, {"lr", 1e-3}})
          .ok());
  ASSERT_TRUE(
      log.Write(20, {{"loss", 0.1}, {"lr", 1e-10}, {"time/seconds", 1.5}})
          .ok());
  EXPECT_EQ(Contents(jsonl_),
            "{\"step\":1,\"loss\":3.25,\"lr\":0.001,\"time/seconds\":0.75}\n"
            "{\"step\":20,\"loss\":0.1,\"lr\":1e-10,\"time/seconds\":1.5}\n");
  EXPECT_EQ(Contents(csv_),
            "step,loss,lr,time/seconds\n"
            "1,3.25,0.001,0.75\n"
            "20,0.1,1e-10,1.5\n");
}

TEST_F(MetricsLogTest, LateColumnsStandBeforeTheTimesInEveryRow) {
  MetricsLog log = Open();
  ASSERT_TRUE(log.Write(1, {{"loss", 3}, {"time/seconds", 1}}).ok());
  ASSERT_TRUE(log.Write(1, {{"eval/loss", 4}}).ok());
  ASSERT_TRUE(log.Write(2, {{"loss", 2}, {"time/seconds", 2}}).ok());
  EXPECT_EQ(Contents(csv_),
            "step,loss,eval/loss,time/seconds\n"
            "1,3,,1\n"
            "1,,4,\n"
            "2,2,,2\n");
}

TEST_F(MetricsLogTest, BothFormatsStayValidWithoutFiniteNumbers) {
  MetricsLog log = Open();
  ASSERT_TRUE(
      log.Write(0, {{"a", -kNan}, {"b", kInfinity}, {"c", -kInfinity}}).ok());
  EXPECT_EQ(Contents(jsonl_),
            "{\"step\":0,\"a\":\"NaN\",\"b\":\"Infinity\","
            "\"c\":\"-Infinity\"}\n");
  const std::string csv = "step,a,b,c\n0,nan,inf,-inf\n";
  EXPECT_EQ(Contents(csv_), csv);
  Open(0);  // makes the csv from the jsonl
  EXPECT_EQ(Contents(csv_), csv);
}

TEST_F(MetricsLogTest, NumbersReadBackAsTheSameDoubles) {
  const std::vector<double> values = {1.0 / 3, -0.0,   5e-324, 1e300,
                                      1 << 24, 0x1p63, -2e22,  0.1f};
  std::vector<Metric> metrics;
  for (size_t i = 0; i < values.size(); ++i) {
    metrics.push_back({absl::StrCat("v", i), values[i]});
  }
  ASSERT_TRUE(Open().Write(0, metrics).ok());
  const std::string csv = Contents(csv_), jsonl = Contents(jsonl_);
  std::ifstream file(csv_);
  std::string field;
  std::getline(file, field);
  std::getline(file, field, ',');
  for (const double value : values) {
    std::getline(file, field, ',');
    EXPECT_EQ(std::strtod(field.c_str(), nullptr), value);
  }
  Open(0);
  EXPECT_EQ(Contents(csv_), csv);
  EXPECT_EQ(Contents(jsonl_), jsonl);
}

TEST_F(MetricsLogTest, NamesAreQuotedWhereAFormatNeedsIt) {
  MetricsLog log = Open();
  ASSERT_TRUE(
      log.Write(0, {{"p,q", 1}, {"a \"b\" \\", 2}, {"\u03b1", 3}}).ok());
  EXPECT_EQ(Contents(jsonl_),
            "{\"step\":0,\"p,q\":1,\"a \\\"b\\\" \\\\\":2,\"\u03b1\":3}\n");
  EXPECT_EQ(Contents(csv_),
            "step,\"p,q\",\"a \"\"b\"\" \\\",\u03b1\n0,1,2,3\n");
  const std::string csv = Contents(csv_);
  Open(0);
  EXPECT_EQ(Contents(csv_), csv);
}

// A run of which the rows of a step depend on the step alone.
std::vector<Metric> RowOf(int64_t step) {
  std::vector<Metric> row = {{"loss", 1.0 / static_cast<double>(step + 1)},
                             {"time/seconds", 0.25}};
  if (step % 4 == 3) row.push_back({"eval/loss", kNan});
  if (step == 6) row.push_back({"skipped", 1});
  return row;
}

TEST_F(MetricsLogTest, AResumedRunIsThatOfTheRunThatNeverStopped) {
  constexpr int64_t kSteps = 9;
  std::vector<std::string> csv(kSteps + 1), jsonl(kSteps + 1);
  {
    MetricsLog log = Open();
    for (int64_t step = 0; step < kSteps; ++step) {
      csv[step] = Contents(csv_), jsonl[step] = Contents(jsonl_);
      ASSERT_TRUE(log.Write(step, RowOf(step)).ok());
    }
  }
  csv[kSteps] = Contents(csv_), jsonl[kSteps] = Contents(jsonl_);

  // Killed somewhere in the jsonl, with a csv that may be behind.
  for (size_t size = 0; size <= jsonl[kSteps].size(); size += 5) {
    int64_t whole = 0;
    while (whole < kSteps && jsonl[whole + 1].size() <= size) ++whole;
    for (const int64_t last_step : {whole - 1, whole / 2 - 1}) {
      SetContents(jsonl_, jsonl[kSteps].substr(0, size));
      SetContents(csv_, csv[whole].substr(0, csv[whole].size() - size % 3));
      MetricsLog log = Open(last_step);
      ASSERT_EQ(Contents(jsonl_), jsonl[last_step + 1]) << size;
      ASSERT_EQ(Contents(csv_), csv[last_step + 1]) << size;
      if (size % 3 != 0) continue;
      for (int64_t step = last_step + 1; step < kSteps; ++step) {
        ASSERT_TRUE(log.Write(step, RowOf(step)).ok());
      }
      ASSERT_EQ(Contents(jsonl_), jsonl[kSteps]);
      ASSERT_EQ(Contents(csv_), csv[kSteps]);
    }
  }
}

TEST_F(MetricsLogTest, RowsReadBackAsTheyWereWritten) {
  {
    MetricsLog log = Open();
    for (int64_t step = 0; step < 8; ++step) {
      ASSERT_TRUE(log.Write(step, RowOf(step)).ok());
    }
  }
  SetContents(jsonl_, Contents(jsonl_) + "{\"step\":8");  // not finished
  const auto rows = ReadMetrics(jsonl_);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 8);
  const std::string csv = Contents(csv_);
  MetricsLog again = Open();
  for (const auto& [step, metrics] : *rows) {
    ASSERT_TRUE(again.Write(step, metrics).ok());
  }
  EXPECT_EQ(Contents(csv_), csv);
}

TEST_F(MetricsLogTest, SaysWhichRowsCannotBeRead) {
  EXPECT_EQ(ReadMetrics(jsonl_).status().message(),
            jsonl_ + ": cannot be read");
  SetContents(jsonl_, "{\"step\":0}\nmore\n{\"step\":1}\n");
  EXPECT_EQ(ReadMetrics(jsonl_).status().message(),
            jsonl_ + ":2:1: not a row of metrics");
}

TEST_F(MetricsLogTest, RefusesAFileOfSomethingElseAndLeavesIt) {
  for (const char* line :
       {"", "[1]", "{\"loss\":1}", "{\"step\":-1}", "{\"step\":1.5}",
        "{\"step\":1,\"loss\":null}", "{\"step\":1,\"loss\":\"nan\"}",
        "{\"step\":1,\"loss\":1e999}", "{\"step\":18446744073709551615}",
        "{\"step\":1,\"two\\nlines\":1}", "{\"step\":1,\"\":1}"}) {
    const std::string text = absl::StrCat("{\"step\":0}\n", line, "\n");
    SetContents(jsonl_, text);
    SetContents(csv_, "kept");
    EXPECT_EQ(MetricsLog::Open(csv_, jsonl_, 5).status().message(),
              jsonl_ + ":2:1: not a row of metrics");
    EXPECT_EQ(Contents(jsonl_), text);
    EXPECT_EQ(Contents(csv_), "kept");
  }
  // Past the rows that are kept it does not matter.
  SetContents(jsonl_, "{\"step\":0}\n{\"step\":1}\nmore\n");
  Open(0);
  EXPECT_EQ(Contents(jsonl_), "{\"step\":0}\n");
}

TEST_F(MetricsLogTest, SaysWhatCannotBeOpened) {
  const std::string below = csv_ + "/below";
  SetContents(csv_, "a file");
  EXPECT_EQ(MetricsLog::Open(csv_, below, -1).status().message(),
            below + ": cannot be written: Not a directory");
  EXPECT_EQ(MetricsLog::Open(below, jsonl_, -1).status().message(),
            below + ".partial: cannot be written: Not a directory");
  EXPECT_THAT(MetricsLog::Open(csv_, folder_, -1).status().message(),
              HasSubstr("cannot be read"));
}

TEST_F(MetricsLogTest, AFullDiskIsReportedOnceAndLosesOnlyItsRows) {
  MetricsLog log = Open();
  ASSERT_TRUE(log.Write(0, {{"loss", 1}}).ok());

  absl::Status first, second;
  {
    const FullDisk full(30);  // half a row more in the jsonl
    first = log.Write(1, {{"loss", 2}});
    second = log.Write(2, {{"loss", 3}});
  }

  EXPECT_EQ(first.message(), jsonl_ + ": cannot be written: File too large");
  EXPECT_TRUE(second.ok());
  EXPECT_TRUE(log.Write(3, {{"loss", 4}}).ok());
  EXPECT_EQ(Contents(jsonl_),
            "{\"step\":0,\"loss\":1}\n{\"step\":3,\"loss\":4}\n");
  EXPECT_EQ(Contents(csv_), "step,loss\n0,1\n3,4\n");
}

TEST_F(MetricsLogTest, ATableThatMissedARowIsMadeAgain) {
  MetricsLog log = Open();
  ASSERT_TRUE(log.Write(0, {{"loss", 1}}).ok());
  std::filesystem::remove(csv_);
  EXPECT_EQ(log.Write(1, {{"loss", 2}}).message(),
            csv_ + ": cannot be written: No such file or directory");
  EXPECT_TRUE(log.Write(2, {{"loss", 3}}).ok());
  EXPECT_EQ(Contents(csv_), "step,loss\n0,1\n1,2\n2,3\n");
}

TEST_F(MetricsLogTest, AVanishedFolderIsReportedOnce) {
  MetricsLog log = Open();
  ASSERT_TRUE(log.Write(0, {{"loss", 1}}).ok());
  std::filesystem::remove_all(folder_);
  EXPECT_EQ(log.Write(1, {{"loss", 2}}).message(),
            jsonl_ + ": cannot be written: No such file or directory");
  EXPECT_TRUE(log.Write(2, {{"loss", 3}}).ok());
}

TEST_F(MetricsLogTest, RefusesNamesAndStepsThatMakeNoRow) {
  MetricsLog log = Open();
  const auto message = [&](int64_t step, const std::vector<Metric>& metrics) {
    try {
      log.Write(step, metrics).IgnoreError();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message(0, {{"", 1}}),
            "MetricsLog: a name must be printable UTF-8, not \"\"");
  EXPECT_THAT(message(0, {{"a\nb", 1}}), HasSubstr("printable UTF-8"));
  EXPECT_THAT(message(0, {{"a\xFF", 1}}), HasSubstr("printable UTF-8"));
  EXPECT_EQ(message(0, {{"a", 1}, {"a", 2}}),
            "MetricsLog: a row has one value for \"a\", not two");
  EXPECT_THAT(message(0, {{"step", 1}}), HasSubstr("one value for \"step\""));
  EXPECT_THAT(message(-1, {}), HasSubstr("step -1"));
  ASSERT_TRUE(log.Write(7, {{"a", 1}}).ok());
  EXPECT_EQ(message(6, {{"a", 1}}), "MetricsLog: step 6 after step 7");
  MetricsLog resumed = Open(7);
  EXPECT_THROW(resumed.Write(6, {{"a", 1}}).IgnoreError(), Error);
  EXPECT_EQ(Contents(jsonl_), "{\"step\":7,\"a\":1}\n");
}

}  // namespace
}  // namespace wengert::train
