// .npy files: those of NumPy (testdata/make_npy.py), our own, and broken ones.
#include "train/npy.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/files_testlib.h"

namespace wengert::train {
namespace {

using ::testing::HasSubstr;

using NpyTest = FilesTest;

constexpr char kData[] = "train/testdata/";

std::string FaultOf(const std::string& file) {
  const auto x = ParseNpy(
      {reinterpret_cast<const uint8_t*>(file.data()), file.size()}, "x.npy");
  return std::string(x.status().message());
}

// A file of version 1.0 with this header.
std::string Npy(const std::string& header, const std::string& elements = "") {
  return absl::StrCat(absl::string_view("\x93NUMPY\1\0", 8),
                      std::string(1, static_cast<char>(header.size())),
                      absl::string_view("\0", 1), header, elements);
}
std::string Dict(const std::string& descr, const std::string& shape) {
  return absl::StrCat("{'descr': '", descr,
                      "', 'fortran_order': False, 'shape': ", shape, "}");
}

TEST_F(NpyTest, ReadsEveryVersion) {
  for (const char* version : {"1", "2", "3"}) {
    const auto x = LoadNpy(absl::StrCat(kData, "version", version, ".npy"));
    ASSERT_TRUE(x.ok()) << x.status();
    EXPECT_EQ(Describe(*x), "float32 [2, 3, 4]");
    for (int i = 0; i < 24; ++i) EXPECT_EQ(x->ToVector()[i], i / 8.0);
  }
}

TEST_F(NpyTest, WritesWhatNumPyWrites) {
  const auto x = LoadNpy(absl::StrCat(kData, "version1.npy"));
  ASSERT_TRUE(SaveNpy(Path("x.npy"), *x).ok());
  EXPECT_EQ(Contents(Path("x.npy")),
            Contents(absl::StrCat(kData, "version1.npy")));
}

TEST_F(NpyTest, EveryDtypeAndShapeComesBack) {
  for (const Tensor& x :
       {Tensor::Of<double>({2, 1}, {0.1, -0.0}), Tensor::Scalar(3),
        Tensor::Zeros({0, 5}), Tensor::Of<int32_t>({1}, {-2147483647}),
        Tensor::Of<int64_t>({2}, {-9007199254740993, 1}),
        Tensor::Of<bool>({3}, {true, false, true}),
        Tensor::Ones(Shape(std::vector<int64_t>(30, 1)))}) {
    ASSERT_TRUE(SaveNpy(Path("x.npy"), x).ok());
    const auto y = LoadNpy(Path("x.npy"));
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_EQ(Describe(*y), Describe(x));
    EXPECT_EQ(ElementBytes(*y), ElementBytes(x));
    EXPECT_EQ(NpyHeader(x).size() % 64, 0u);
  }
}

TEST_F(NpyTest, TakesPythonAsItComes) {
  const std::string two(8, '\0');
  EXPECT_EQ(FaultOf(Npy("{\"shape\":(2,) , 'fortran_order' :True,'descr':"
                        "'=i4',}  \n",
                        two)),
            "");
  EXPECT_EQ(FaultOf(Npy(Dict("<b1", "( 2 , 4 )"), two)), "");
}

TEST_F(NpyTest, AByteThatIsNot0IsTrue) {
  const std::string file = Npy(Dict("|b1", "(2,)"), std::string("\2\0", 2));
  const auto x = ParseNpy(
      {reinterpret_cast<const uint8_t*>(file.data()), file.size()}, "x");
  EXPECT_EQ(ElementBytes(*x)[0], 1);
  EXPECT_EQ(ElementBytes(*x)[1], 0);
}

TEST_F(NpyTest, SaysWhatIsWrong) {
  EXPECT_EQ(FaultOf(""),
            "x.npy: is no .npy file: it does not begin with \\x93NUMPY");
  EXPECT_EQ(FaultOf("\x93NUMPY\4\1  "),
            "x.npy: is of version 4.1; wanted 1.0, 2.0 or 3.0");
  EXPECT_EQ(FaultOf(std::string("\x93NUMPY\2\0\1\0", 10)),
            "x.npy: is cut off in the header");
  EXPECT_EQ(FaultOf(std::string("\x93NUMPY\2\0\xFF\xFF\xFF\xFF{", 13)),
            "x.npy: is cut off: the header has 4294967295 bytes, of which 1 "
            "are there");
  EXPECT_EQ(FaultOf(Npy("[]")), "x.npy: the header: wanted a dict");
  EXPECT_EQ(FaultOf(Npy("{'descr': '<f4'")),
            "x.npy: the header: wanted , or }");
  EXPECT_EQ(FaultOf(Npy("{7}")), "x.npy: the header: wanted keys and values");
  EXPECT_EQ(FaultOf(Npy("{'order': 7}")),
            "x.npy: the header: there is no key \"order\"");
  EXPECT_EQ(FaultOf(Npy("{'descr': '<f4', 'descr': '<f4'}")),
            "x.npy: the header: the key descr stands twice");
  EXPECT_EQ(FaultOf(Npy("{'descr': '<f4'}")),
            "x.npy: the header: wanted descr, fortran_order and shape");
  EXPECT_EQ(FaultOf(Npy(Dict("<f4", "(1,)") + "x")),
            "x.npy: the header: text stands behind the dict");
  for (const char* shape :
       {"(1)", "(-1,)", "(1,,)", "1", "(99999999999999999999,)", "(1"}) {
    EXPECT_EQ(FaultOf(Npy(Dict("<f4", shape))),
              "x.npy: the header: the value of shape is none that can be read");
  }
  EXPECT_EQ(FaultOf(Npy("{'descr': [('a', '<f4')]}")),
            "x.npy: the header: the value of descr is none that can be read");
  for (const char* descr :
       {"<f2", "<c8", "|u1", "|O", "<U3", "f4", "", "|f4"}) {
    EXPECT_EQ(FaultOf(Npy(Dict(descr, "(1,)"))),
              absl::StrCat("x.npy: the dtype is \"", descr,
                           "\"; wanted f4, f8, i4, i8 or b1"));
  }
  EXPECT_EQ(FaultOf(Npy(Dict("<f4", "(2, 3)"), std::string(23, ' '))),
            "x.npy: an array [2, 3] of float32 takes 24 bytes; there are 23");
  EXPECT_THAT(FaultOf(Npy(Dict("<f8", "(3037000500, 3037000500)"))),
              HasSubstr("takes more than 2^63 bytes; there are 0"));
  std::string rank = "(";
  for (int i = 0; i < 65; ++i) rank += "1,";
  const std::string wide = Dict("<f4", rank + ")");
  EXPECT_EQ(FaultOf(Npy(wide, "1234")),
            "x.npy: the array has 65 dimensions; wanted at most 64");
}

}  // namespace
}  // namespace wengert::train
