// Tables of numbers, good and broken.
#include "train/csv.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/files_testlib.h"

namespace wengert::train {
namespace {

using ::testing::ElementsAre;
using Columns = std::vector<std::string>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

CsvTable Parse(absl::string_view text, const Columns& columns = {},
               DType dtype = DType::kFloat64) {
  const auto table = ParseCsv(text, "file", columns, dtype);
  EXPECT_TRUE(table.ok()) << table.status();
  return table.ok() ? *table : CsvTable{{}, Tensor::Zeros({0, 0})};
}

std::string ErrorIn(absl::string_view text, const Columns& columns = {},
                    DType dtype = DType::kFloat32) {
  const auto table = ParseCsv(text, "file", columns, dtype);
  EXPECT_EQ(table.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(table.status().message());
}

TEST(Csv, ReadsColumnsByName) {
  const absl::string_view text = "x,y,z\n1,2.5,-1e-3\n4,5,6\n";
  const CsvTable all = Parse(text, {}, DType::kFloat32);
  EXPECT_THAT(all.columns, ElementsAre("x", "y", "z"));
  EXPECT_TRUE(
      SameBits(all.values, Tensor::Of({2, 3}, {1, 2.5, -1e-3f, 4, 5, 6})));
  const CsvTable some = Parse(text, {"z", "x"});
  EXPECT_THAT(some.columns, ElementsAre("z", "x"));
  EXPECT_TRUE(
      SameBits(some.values, Tensor::Of<double>({2, 2}, {-1e-3, 1, 6, 4})));
}

TEST(Csv, ReadsWhatOtherProgramsWrite) {
  const Tensor values = Tensor::Of<double>({2, 2}, {1, 2, 3, 4});
  for (const char* text :
       {"x,y\r\n1,2\r\n3,4\r\n", "\xEF\xBB\xBFx,y\n1,2\n3,4",
        "x,y\n1,2\n3,4\n\n\r\n", "\"x\",\"y\"\n\"1\",2\n3,\"4\"\r",
        "x , y\n 1,\t2 \n3 , 4\n"}) {
    const CsvTable table = Parse(text);
    EXPECT_THAT(table.columns, ElementsAre("x", "y")) << text;
    EXPECT_TRUE(SameBits(table.values, values)) << text;
  }
}

TEST(Csv, QuotedFieldsHoldCommasQuotesAndLineEnds) {
  const CsvTable table = Parse(
      "\"a, \"\"b\"\"\",\"two\r\nlines\",note\n"
      "1,2,\"free, \"\"text\"\"\nof two lines\"\n3,4,\n",
      {"two\r\nlines", "a, \"b\""});
  EXPECT_THAT(table.values.ToVector(), ElementsAre(2, 1, 4, 3));
  // The lines of quoted text count.
  EXPECT_EQ(ErrorIn("x,note\n1,\"a\nb\nc\"\n?,\n", {"x"}),
            "file:5:1: \"?\" is no number");
  EXPECT_EQ(ErrorIn("note,x\n\"a\nbé\",?\n", {"x"}),
            "file:3:5: \"?\" is no number");
}

TEST(Csv, NumbersAreTheNearest) {
  const auto number = [](const std::string& text, DType dtype) {
    return Parse(absl::StrCat("x\n", text, "\n"), {}, dtype).values.item();
  };
  EXPECT_EQ(number("0.1", DType::kFloat64), 0.1);
  EXPECT_EQ(number("0.1", DType::kFloat32), 0.1f);
  // Just above the middle of two floats; as a double it is the middle, which
  // would go to the even one.
  EXPECT_EQ(number("1.000000059604644775390626", DType::kFloat32),
            0x1.000002p0f);
  EXPECT_EQ(number("1e-45", DType::kFloat32), 0x1p-149f);
  EXPECT_EQ(number("1e-999", DType::kFloat64), 0);
  EXPECT_TRUE(std::signbit(number("-1e-999", DType::kFloat64)));
  EXPECT_EQ(number(".5", DType::kFloat64), 0.5);
  EXPECT_EQ(number("5.", DType::kFloat64), 5);
  EXPECT_EQ(number("1E+2", DType::kFloat64), 100);
  EXPECT_EQ(number("1e39", DType::kFloat64), 1e39);
  EXPECT_TRUE(std::isnan(number("NaN", DType::kFloat64)));
  EXPECT_EQ(number("inf", DType::kFloat64), kInfinity);
  EXPECT_EQ(number("-Infinity", DType::kFloat32), -kInfinity);
}

TEST(Csv, RefusesWhatIsNoNumber) {
  EXPECT_EQ(ErrorIn("x,y\n1,2\n3,\n"), "file:3:3: no number");
  EXPECT_EQ(ErrorIn("x,y\n1,\" \"\n"), "file:2:3: no number");
  EXPECT_EQ(ErrorIn("x,y\nabc,2\n"), "file:2:1: \"abc\" is no number");
  EXPECT_EQ(ErrorIn("x\n1e999\n"),
            "file:2:1: \"1e999\" is too large for float32");
  EXPECT_EQ(ErrorIn("x\n1e999\n", {}, DType::kFloat64),
            "file:2:1: \"1e999\" is too large for float64");
  EXPECT_EQ(ErrorIn("x\n-3.5e38\n"),
            "file:2:1: \"-3.5e38\" is too large for float32");
  for (const char* text : {"1 2", "1.2.3", "0x10", "nan(1)", "-nan", "1e", "+1",
                           "1_000", "1\r2", "--1", "infinit", "\xFF"}) {
    EXPECT_THAT(ErrorIn(absl::StrCat("x\n", text, "\n")),
                ::testing::StartsWith("file:2:1: \""))
        << text;
  }
  // Of columns that nobody asked for only the fields are counted.
  EXPECT_THAT(Parse("x,y\n1,abc\n", {"x"}).values.ToVector(), ElementsAre(1));
}

TEST(Csv, RefusesRowsOfAnotherLength) {
  EXPECT_EQ(ErrorIn("x,y\n1,2\n3\n"), "file:3:2: 1 fields; the header has 2");
  EXPECT_EQ(ErrorIn("x,y\n1,2\n3,4,5,6\n", {"x"}),
            "file:3:5: 4 fields; the header has 2");
  EXPECT_EQ(ErrorIn("x,y\n1,2,\n"), "file:2:5: 3 fields; the header has 2");
  EXPECT_EQ(ErrorIn("x,y\n1,2\n\n3,4\n"), "file:3:1: the line is blank");
  EXPECT_EQ(ErrorIn("\nx,y\n1,2\n"), "file:1:1: the line is blank");
}

TEST(Csv, RefusesQuotesOutOfPlace) {
  EXPECT_EQ(ErrorIn("x,y\n1,\"2\n3,4\n"), "file:2:3: quotes that do not end");
  EXPECT_EQ(ErrorIn("x,y\n1,2\"\n"),
            "file:2:4: quotes inside a field that does not begin with any");
  EXPECT_EQ(ErrorIn("x,y\n\"1\"2,3\n"),
            "file:2:4: text behind the quotes of a field");
  EXPECT_EQ(ErrorIn("x,\"y"), "file:1:3: quotes that do not end");
}

TEST(Csv, RefusesHeadersThatDoNotFit) {
  EXPECT_EQ(ErrorIn("x,y\n1,2\n", {"z", "x", "é"}),
            "file:1:1: no column \"z\", \"é\"; the columns are \"x\", \"y\"");
  EXPECT_EQ(ErrorIn("x,y,\"x\"\n1,2,3\n"), "file:1:5: a second column \"x\"");
  EXPECT_EQ(ErrorIn("x,y\n"), "file:1:4: no rows below the header");
  EXPECT_EQ(ErrorIn(""), "file:1:1: the file is empty");
  EXPECT_EQ(ErrorIn("\xEF\xBB\xBF\r\n\n"), "file:1:1: the file is empty");
  EXPECT_EQ(
      ErrorOf([] { (void)ParseCsv("x\n1\n", "file", {}, DType::kInt64); }),
      "ReadCsv: dtype int64, wanted float32 or float64");
}

using CsvFileTest = FilesTest;

TEST_F(CsvFileTest, ReadsFiles) {
  const std::string path = File("a.csv", "x,y\n1,2\n");
  EXPECT_THAT(ReadCsv(path, {"y"})->values.ToVector(), ElementsAre(2));
  EXPECT_EQ(ReadCsv(File("b.csv", "x\n?\n")).status().message(),
            Path("b.csv") + ":2:1: \"?\" is no number");
  EXPECT_EQ(ReadCsv(Path("missing")).status().message(),
            Path("missing") + ": cannot be read: No such file or directory");
}

}  // namespace
}  // namespace wengert::train
