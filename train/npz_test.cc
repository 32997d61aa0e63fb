// .npz files: those of NumPy (testdata/make_npy.py), our own, and broken ones.
#include "train/npz.h"

#include <limits>
#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/files_testlib.h"
#include "train/npy.h"

namespace wengert::train {
namespace {

using ::testing::HasSubstr;

using NpzTest = FilesTest;

std::string FaultOf(const std::string& file) {
  const auto x = ParseNpz(
      {reinterpret_cast<const uint8_t*>(file.data()), file.size()}, "x.npz");
  return std::string(x.status().message());
}

TEST_F(NpzTest, ReadsWhatNumPyWrites) {
  std::vector<double> count(24), eighths(24);
  for (int i = 0; i < 24; ++i) count[i] = i;
  for (int i = 0; i < 24; ++i) eighths[i] = i / 8.0;
  const std::vector<NamedTensor> want = {
      {"f4", Tensor::From({2, 3, 4}, eighths).To(DType::kFloat32)},
      {"f8",
       Tensor::Of<double>(
           {4}, {0.1, -0.0, std::numeric_limits<double>::infinity(), 5e-324})},
      {"i4", Tensor::Of<int32_t>({2, 1}, {-2147483647 - 1, 2147483647})},
      {"i8", Tensor::Of<int64_t>(
                 {2}, {std::numeric_limits<int64_t>::min(), 9007199254740993})},
      {"b1", Tensor::Of<bool>({3}, {true, false, true})},
      {"fortran", Tensor::From({2, 3, 4}, count)},
      {"big", Tensor::Of<int32_t>({2, 2}, {1, -2, 3, 2147483647})},
      {"big_fortran", Tensor::Of({2, 2}, {1, 2, 3, 4.5})},
      {"scalar", Tensor::Scalar(-7)},
      {"empty", Tensor::Zeros({0, 5})}};
  for (const char* name : {"reference.npz", "reference_compressed.npz"}) {
    const auto got = LoadNpz(std::string("train/testdata/") + name);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ((*got)[i].name, want[i].name);
      EXPECT_EQ(Describe((*got)[i].tensor), Describe(want[i].tensor));
      EXPECT_EQ(ElementBytes((*got)[i].tensor), ElementBytes(want[i].tensor))
          << want[i].name;
    }
  }
}

TEST_F(NpzTest, WhatIsWrittenComesBack) {
  const std::vector<NamedTensor> tensors = {
      {"layer.weight", Tensor::Zeros({100, 100})},
      {"naïve/name", Tensor::Of<int64_t>({2}, {1, -2})},
      {"empty", Tensor::Zeros({0})}};
  for (const bool compress : {false, true}) {
    ASSERT_TRUE(SaveNpz(Path("x.npz"), tensors, {.compress = compress}).ok());
    const auto got = LoadNpz(Path("x.npz"));
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->size(), tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_EQ((*got)[i].name, tensors[i].name);
      EXPECT_EQ(ElementBytes((*got)[i].tensor),
                ElementBytes(tensors[i].tensor));
    }
    EXPECT_EQ(Contents(Path("x.npz")).size() < 2000, compress);
    ASSERT_TRUE(SaveNpz(Path("y.npz"), tensors, {.compress = compress}).ok());
    EXPECT_EQ(Contents(Path("x.npz")), Contents(Path("y.npz")));
  }
  ASSERT_TRUE(SaveNpz(Path("none.npz"), {}).ok());
  EXPECT_TRUE(LoadNpz(Path("none.npz"))->empty());
}

TEST_F(NpzTest, AFullDiskLeavesTheOldFile) {
  const std::vector<NamedTensor> tensors = {{"a", Tensor::Zeros({1000})}};
  File("x.npz", "old");
  {
    const FullDisk full(100);
    EXPECT_THAT(SaveNpz(Path("x.npz"), tensors).message(),
                HasSubstr("x.npz: cannot be written"));
  }
  EXPECT_EQ(Contents(Path("x.npz")), "old");
  EXPECT_THAT(
      SaveNpz(Path("x.npz"), {{"a", tensors[0].tensor}, tensors[0]}).message(),
      HasSubstr("\"a\" is empty or stands twice"));
  EXPECT_THAT(
      SaveNpz(Path("x.npz"), {{std::string("a\0b", 3), tensors[0].tensor}})
          .message(),
      HasSubstr("has a zero byte"));
}

TEST_F(NpzTest, SaysWhatIsWrong) {
  EXPECT_THAT(FaultOf(""), HasSubstr("x.npz: is no zip archive: "));
  EXPECT_THAT(FaultOf("PK"), HasSubstr("x.npz: is no zip archive: "));
  ASSERT_TRUE(SaveNpz(Path("x.npz"),
                      {{"abc", Tensor::Ones({2})}, {"xyz", Tensor::Ones({2})}})
                  .ok());
  const std::string good = Contents(Path("x.npz"));
  EXPECT_EQ(FaultOf(good), "");
  EXPECT_EQ(FaultOf(absl::StrReplaceAll(good, {{"abc.npy", "abc.txt"}})),
            "x.npz: the entry \"abc.txt\" is no .npy file");
  EXPECT_EQ(FaultOf(absl::StrReplaceAll(good, {{"xyz", "abc"}})),
            "x.npz: the entry \"abc.npy\" stands twice");
  EXPECT_EQ(FaultOf(absl::StrReplaceAll(good, {{"\x93NUMPY", "\x93MUMPY"}})),
            "x.npz: abc.npy: CRC error");
  EXPECT_THAT(FaultOf(good.substr(0, good.size() - 30)),
              HasSubstr("x.npz: is no zip archive: "));
  std::string cut = good;  // both entries' bytes, away from under the index
  cut.erase(40, 100);
  EXPECT_THAT(FaultOf(cut), HasSubstr("x.npz: "));
}

TEST_F(NpzTest, AnEntryThatIsNoArray) {
  // An archive of one stored entry "a.npy" with the bytes "hello", by Python's
  // zipfile.
  const std::string file(
      "PK\x03\x04\x14\0\0\0\0\0\0\0!\0\x86\xa6\x10\x36\x05\0\0\0\x05\0\0\0\x05"
      "\0\0\0a.npyhelloPK\x01\x02\x14\x03\x14\0\0\0\0\0\0\0!\0\x86\xa6\x10\x36"
      "\x05\0\0\0\x05\0\0\0\x05\0\0\0\0\0\0\0\0\0\0\0\x80\x01\0\0\0\0a.npy"
      "PK\x05\x06\0\0\0\0\x01\0\x01\0\x33\0\0\0\x28\0\0\0\0\0",
      40 + 51 + 22);
  EXPECT_EQ(FaultOf(file),
            "x.npz: a.npy: is no .npy file: it does not begin with "
            "\\x93NUMPY");
}

}  // namespace
}  // namespace wengert::train
