// What the report's page holds; .ci/browser looks at it in a browser.
#include "train/report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "autograd/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "train/files_testlib.h"
#include "train/report_page.h"
#include "train/text_file.h"

namespace wengert::train {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr char kHostile[] = "</script><b>&\"'@DATA@ \x01";

size_t Count(absl::string_view text, absl::string_view part) {
  const std::vector<absl::string_view> pieces = absl::StrSplit(text, part);
  return pieces.size() - 1;
}

class ReportTest : public FilesTest {
 protected:
  std::string Page(const ReportContents& contents) {
    const std::string path = Path("report.html");
    EXPECT_EQ(WriteReport(path, contents), absl::OkStatus());
    return Contents(path);
  }

  // What the page's script reads.
  Json Data(const ReportContents& contents) {
    const std::string page = Page(contents);
    const std::string before = "id=\"data\">";
    const size_t begin = page.find(before) + before.size();
    return Json::parse(page.substr(begin, page.find('<', begin) - begin));
  }
};

AttentionMap SmallMap() {
  return {"a b", "encoder.0", {"a", "b"}, {"x"}, {{0.25f, 1}, {1e-5f, 0.1f}}};
}

TEST_F(ReportTest, APageOfItsOwn) {
  const std::string page = Page({});
  EXPECT_THAT(page, HasSubstr("<!doctype html>"));
  for (const char* part : {"prefers-color-scheme: dark", "function summary",
                           "class Chart", "class Layer"}) {
    EXPECT_EQ(Count(page, part), 1 + (part[0] == 'p')) << part;
  }
  EXPECT_EQ(Count(page, "src="), 0);
  EXPECT_EQ(Count(page, "@import"), 0);
  EXPECT_EQ(Count(page, "url("), 1);  // a clip path's
  EXPECT_EQ(Count(page, "://"), 1);   // SVG's namespace
  EXPECT_EQ(Count(page, ".js@"), 0);
  EXPECT_EQ(Count(page, "default-src 'none'"), 1);
}

TEST_F(ReportTest, CurvesHoldTheRowsOfEachMetric) {
  const Json curves = Data({.rows = {{1, {{"loss", 3.25}, {"lr", 1e-3}}},
                                     {1, {{"eval/loss", 0.1f}}},
                                     {5, {{"loss", std::nan("")}}},
                                     {6, {{"loss", -kInfinity}}},
                                     {7, {{"eval/loss", kInfinity}}},
                                     {8, {{"loss", 1.7976931348623157e308}}}}})
                          .at("curves");
  EXPECT_EQ(curves, Json::parse(R"([
      {"name": "loss", "count": 4, "steps": [1, 5, 6, 8],
       "values": [3.25, "NaN", "-Infinity", 1.79769313e308]},
      {"name": "lr", "count": 1, "steps": [1], "values": [0.001]},
      {"name": "eval/loss", "count": 2, "steps": [1, 7],
       "values": [0.100000001, "Infinity"]}])"));
}

TEST_F(ReportTest, CurvesGoByStep) {
  const Json curve = Data({.rows = {{5, {{"a", 1}}},
                                    {2, {{"a", 2}}},
                                    {5, {{"a", 3}}},
                                    {3, {{"a", 4}}}}})
                         .at("curves")
                         .at(0);
  EXPECT_EQ(curve.at("steps"), (std::vector<int>{2, 3, 5, 5}));
  EXPECT_EQ(curve.at("values"), (std::vector<double>{2, 4, 1, 3}));
}

TEST_F(ReportTest, ALongCurveKeepsWhatStandsOut) {
  constexpr int64_t kRows = 100'003;
  ReportContents contents;
  for (int64_t i = 0; i < kRows; ++i) {
    const double s = static_cast<double>(i);
    contents.rows.push_back({3 * i, {{"loss", 2 + std::sin(s)}}});
  }
  const auto set = [&](int64_t i, double value) {
    contents.rows[i].metrics[0].value = value;
  };
  set(0, 2.5), set(kRows - 1, 2.25);
  set(12'345, 1000), set(54'321, -1000), set(77'777, std::nan(""));

  const Json curve = Data(contents).at("curves").at(0);
  const auto steps = curve.at("steps").get<std::vector<int64_t>>();
  const Json& values = curve.at("values");
  EXPECT_EQ(curve.at("count"), kRows);
  EXPECT_LE(steps.size(), 6000);
  EXPECT_GE(steps.size(), 3000);
  EXPECT_EQ(values.size(), steps.size());
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  EXPECT_EQ(std::adjacent_find(steps.begin(), steps.end()), steps.end());
  for (const int64_t i : {0L, 12'345L, 54'321L, 77'777L, kRows - 1}) {
    const auto at = std::find(steps.begin(), steps.end(), 3 * i);
    ASSERT_NE(at, steps.end()) << i;
    const double value = contents.rows[i].metrics[0].value;
    const Json wanted = std::isnan(value) ? Json("NaN") : Json(value);
    EXPECT_EQ(values.at(at - steps.begin()), wanted) << i;
  }
  // The band that the others fill stays as wide as it was, all along.
  for (size_t i = 10; i + 10 < steps.size(); i += 10) {
    double low = kInfinity, high = -kInfinity;
    for (size_t k = i; k < i + 10; ++k) {
      if (!values[k].is_number()) continue;
      low = std::min(low, values[k].get<double>());
      high = std::max(high, values[k].get<double>());
    }
    EXPECT_LT(low, 1.02) << i;
    EXPECT_GT(high, 2.98) << i;
  }
  EXPECT_LT(Contents(Path("report.html")).size(), 200'000);
}

TEST_F(ReportTest, ACurveOf4000PointsIsWhole) {
  ReportContents contents;
  for (int64_t i = 0; i < 4000; ++i) contents.rows.push_back({i, {{"a", 1}}});
  EXPECT_EQ(Data(contents).at("curves").at(0).at("steps").size(), 4000);
  contents.rows.push_back({4000, {{"a", 1}}});
  // Of each stretch the first, and the last of all.
  EXPECT_EQ(Data(contents).at("curves").at(0).at("steps").size(), 2001);
}

TEST_F(ReportTest, ParametersAreThoseOfTheStore) {
  nn::ParameterStore store;
  const Tensor weight = store.root().Sub("up").Constant("weight", {2, 8}, -0.5);
  store.root().Tied("again", weight);
  store.root().Ones("bias", {4});
  store.root().Zeros("none", {0, 3});
  const std::vector<ParameterRow> rows = ParameterRows(store);
  EXPECT_EQ(Data({.parameters = rows}).at("parameters"), Json::parse(R"([
      {"name": "up.weight", "shape": "[2, 8]", "dtype": "float32",
       "count": 16, "norm": 2},
      {"name": "bias", "shape": "[4]", "dtype": "float32",
       "count": 4, "norm": 2},
      {"name": "none", "shape": "[0, 3]", "dtype": "float32",
       "count": 0, "norm": 0}])"));

  nn::ParameterStore wide(DType::kFloat64);
  wide.root().Constant("huge", {2}, 1e200);
  EXPECT_EQ(Data({.parameters = ParameterRows(wide)}).at("parameters").at(0),
            Json::parse(R"({"name": "huge", "shape": "[2]", "dtype": "float64",
                            "count": 2, "norm": "Infinity"})"));
}

TEST_F(ReportTest, SamplesAreJudgedWhereSomethingWasWanted) {
  EXPECT_EQ(
      Data({.samples =
                {{"a", "b", "b"}, {"a", "b", "c"}, {"a", "b", ""}, {"a", ""}}})
          .at("samples"),
      Json::parse(R"([
      {"input": "a", "output": "b", "wanted": "b", "wrong": false},
      {"input": "a", "output": "b", "wanted": "c", "wrong": true},
      {"input": "a", "output": "b", "wanted": "", "wrong": true},
      {"input": "a", "output": "", "wanted": null, "wrong": false}])"));
}

TEST_F(ReportTest, AttentionHasFourDigits) {
  AttentionMap map = SmallMap();
  map.heads = {{0.123456f, std::nanf("")}, {9e-7f, -1.23456e-6f}};
  EXPECT_EQ(Data({.attention = {SmallMap(), map}}).at("attention"),
            Json::parse(R"([
      {"sentence": "a b", "layer": "encoder.0", "queries": ["a", "b"],
       "keys": ["x"], "heads": [[0.25, 1], [1e-5, 0.1]]},
      {"sentence": "a b", "layer": "encoder.0", "queries": ["a", "b"],
       "keys": ["x"], "heads": [[0.1235, "NaN"], [0, -1.235e-6]]}])"));
}

TEST_F(ReportTest, TheConfigurationIsAnObjectOrText) {
  EXPECT_EQ(Data({.config_json = R"({"z": 1, "a": {"b": [1, 2]}})"})
                .at("config")
                .at("a"),
            Json::parse(R"({"b": [1, 2]})"));
  EXPECT_THAT(Page({.config_json = R"({"z": 1, "a": 2})"}),
              HasSubstr(R"({"z":1,"a":2})"));  // keeps its order
  EXPECT_EQ(Data({.config_json = "--steps=7 {"}).at("config"), "--steps=7 {");
  EXPECT_EQ(Data({}).at("config"), "");
}

TEST_F(ReportTest, NoTextIsMoreThanText) {
  const std::string hostile = absl::StrCat(kHostile, "\xFF\xC3");
  ReportContents contents = {
      .title = hostile,
      .config_json = Json({{kHostile, kHostile}}).dump(),
      .rows = {{1, {{hostile, 1}}}},
      .parameters = {{hostile, hostile, hostile, 1, 1}},
      .samples = {{hostile, hostile, hostile}},
      .attention = {{hostile, hostile, {hostile}, {hostile}, {{1}}}}};
  const std::string page = Page(contents);
  EXPECT_EQ(Count(page, "<"), Count(Page({}), "<"));
  EXPECT_EQ(CountCharacters(page), CountCharacters(Printable(page)));
  for (size_t i = 0; i < page.size();) {
    const size_t length = Utf8Length(absl::string_view(page).substr(i));
    ASSERT_GT(length, 0) << i;
    i += length;
  }
  const std::string title =
      "&lt;/script&gt;&lt;b&gt;&amp;\"'@DATA@ \uFFFD\uFFFD\uFFFD";
  EXPECT_THAT(page, HasSubstr("<title>" + title + "</title>"));
  EXPECT_THAT(page, HasSubstr("<h1>" + title + "</h1>"));

  const Json data = Data(contents);
  const std::string shown = absl::StrCat(kHostile, "\uFFFD\uFFFD");
  EXPECT_EQ(data.at("config").at(kHostile), kHostile);
  EXPECT_EQ(data.at("curves").at(0).at("name"), shown);
  EXPECT_EQ(data.at("parameters").at(0).at("dtype"), shown);
  EXPECT_EQ(data.at("samples").at(0).at("wanted"), shown);
  EXPECT_EQ(data.at("attention").at(0).at("keys").at(0), shown);
}

TEST_F(ReportTest, EqualContentsGiveEqualBytes) {
  const ReportContents contents = {
      .title = "run",
      .config_json = R"({"seed":1})",
      .rows = {{1, {{"loss", 1.0 / 3}, {"b", 2}, {"a", 3}}}},
      .attention = {SmallMap()}};
  const std::string page = Page(contents);
  std::filesystem::remove(Path("report.html"));
  EXPECT_EQ(Page(contents), page);
}

TEST_F(ReportTest, MisuseLeavesTheOldReport) {
  const std::string page = Page({.title = "old"});
  AttentionMap map = SmallMap();
  map.keys.push_back("y");
  try {
    WriteReport(Path("report.html"), {.attention = {map}}).IgnoreError();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "WriteReport: attention of layer \"encoder.0\" has 2 weights "
                 "in head 0, wanted 2 queries x 2 keys");
  }
  EXPECT_EQ(Contents(Path("report.html")), page);
}

TEST_F(ReportTest, AFullDiskLeavesTheOldReport) {
  const std::string path = Path("report.html");
  const std::string page = Page({.title = "old"});
  absl::Status status;
  {
    const FullDisk full(4096);
    status = WriteReport(path, {.title = "new"});
  }
  EXPECT_EQ(status.message(), path + ": cannot be written: File too large");
  EXPECT_EQ(Contents(path), page);
  EXPECT_EQ(WriteReport(path + "/below", {}).message(),
            path + "/below: cannot be written: Not a directory");
}

}  // namespace
}  // namespace wengert::train
