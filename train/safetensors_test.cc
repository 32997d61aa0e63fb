// safetensors files: those of Python's own package, our own, and broken ones.
#include "train/safetensors.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/files_testlib.h"

namespace wengert::train {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The elements as T, of a file's tensor that converts to it.
template <class T>
std::vector<T> Elements(const SafetensorsFile& file, const std::string& name) {
  const SafetensorsFile::Entry* entry = file.Find(name);
  if (entry == nullptr) return {};
  Tensor x = Tensor::Empty(entry->shape, kDTypeOf<T>);
  CopyElements(*entry, kDTypeOf<T>, x.mutable_data<T>());
  return {x.data<T>(), x.data<T>() + x.size()};
}

TEST(SafetensorsReference, PythonsOwnFile) {
  const auto opened =
      SafetensorsFile::Open("train/testdata/reference.safetensors");
  ASSERT_TRUE(opened.ok()) << opened.status();
  const SafetensorsFile& file = *opened;
  EXPECT_EQ(file.entries().size(), 11u);
  EXPECT_THAT(file.metadata(),
              ElementsAre(Pair("format", "pt"), Pair("note", "tab\tand é")));
  // The last of the ten numbers is a NaN.
  const auto expect = [&](const std::string& name, const Shape& shape,
                          std::vector<double> wanted) {
    const auto* entry = file.Find(name);
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(entry->shape, shape);
    std::vector<double> got = Elements<double>(file, name);
    ASSERT_EQ(got.size(), 10u);
    EXPECT_TRUE(std::isnan(got.back()));
    EXPECT_TRUE(std::signbit(got[1]));
    got.pop_back();
    EXPECT_EQ(got, wanted) << name;
    if (FitsExactly(entry->type, DType::kFloat32)) {
      const std::vector<float> f = Elements<float>(file, name);
      EXPECT_EQ(std::vector<double>(f.begin(), f.end() - 1), wanted) << name;
    }
  };
  expect("f64", {1, 10},
         {0, 0, 1, -2.5, 0.1, 65504, 1e-7, kInfinity, -kInfinity});
  expect("f32", {10},
         {0, 0, 1, -2.5, 0.1f, 65504, 1e-7f, kInfinity, -kInfinity});
  expect("f16", {2, 5},
         {0, 0, 1, -2.5, 0x1.998p-4, 65504, 0x1p-23, kInfinity, -kInfinity});
  expect("bf16", {5, 2, 1},
         {0, 0, 1, -2.5, 0x1.9ap-4, 65536, 0x1.aep-24, kInfinity, -kInfinity});
  EXPECT_EQ(Elements<float>(file, "f64")[4], 0.1f);
  EXPECT_THAT(Elements<int32_t>(file, "i32"), ElementsAre(-1, 2147483647));
  EXPECT_THAT(Elements<int64_t>(file, "i64"),
              ElementsAre(std::numeric_limits<int64_t>::min(), 7));
  EXPECT_THAT(file.Find("u8")->bytes, ElementsAre(1, 2, 255));
  EXPECT_EQ(file.Find("scalar")->shape, Shape({}));
  EXPECT_THAT(Elements<float>(file, "scalar"), ElementsAre(3));
  EXPECT_EQ(file.Find("empty")->shape, Shape({0, 3}));
  EXPECT_TRUE(file.Find("empty")->bytes.empty());
  EXPECT_THAT(Elements<float>(file, "naïve \"name\"\n"), ElementsAre(4));
  Tensor flags = Tensor::Empty({3}, DType::kBool);
  CopyElements(*file.Find("bool"), DType::kBool, flags.mutable_data<bool>());
  EXPECT_THAT(flags.ToVector(), ElementsAre(1, 0, 1));
  EXPECT_EQ(file.Find("missing"), nullptr);
  EXPECT_THAT([&] { Elements<float>(file, "i32"); },
              ThrowsMessage<Error>(HasSubstr("\"i32\" is I32")));
}

class SafetensorsTest : public FilesTest {
 protected:
  // The message of the error that the file gives, less its path.
  std::string Fault(const std::string& contents) {
    const std::string path = File("file", contents);
    const auto file = SafetensorsFile::Open(path);
    if (file.ok()) return "no fault";
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    const std::string message(file.status().message());
    EXPECT_THAT(message, StartsWith(path + ": "));
    EXPECT_EQ(message.find('\n'), message.npos);
    return message.substr(std::min(message.size(), path.size() + 2));
  }

  static std::string Size(uint64_t size) {
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &size, 8);
    return bytes;
  }
  // A file with this header and so many bytes behind it.
  static std::string Whole(const std::string& header, size_t data) {
    return Size(header.size()) + header + std::string(data, '\1');
  }
  static std::string Of(const std::string& name, const std::string& dtype,
                        const std::string& shape, const std::string& offsets) {
    return absl::StrCat("\"", name, "\":{\"dtype\":\"", dtype,
                        "\",\"shape\":", shape, ",\"data_offsets\":", offsets,
                        "}");
  }
};

TEST_F(SafetensorsTest, RoundTrip) {
  const Tensor f32 = Tensor::Of({2, 1, 3}, {1, -0.f, 3e38f, 1e-45f, 5, 6});
  const Tensor f64 = Tensor::Of<double>({3}, {0.1, -kInfinity, 5e-324});
  const std::vector<NamedTensor> tensors = {
      {"flags", Tensor::Of<bool>({3}, {true, false, true})},
      {"layers.0.weight", f32},
      {"é \"quoted\" \\ \t", f64},
      {"scalar", Tensor::Scalar(7)},
      {"empty", Tensor::Zeros({3, 0, 2})},
      {"ids", Tensor::Of<int64_t>({2}, {-1, int64_t{1} << 40})},
      {"", Tensor::Of<int32_t>({1, 1}, {-5})}};
  const SafetensorsFile::Metadata metadata = {{"é", "line\nline"}, {"", ""}};
  const std::string path = Path("file");
  ASSERT_TRUE(WriteSafetensors(path, tensors, metadata).ok());
  auto opened = SafetensorsFile::Open(path);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const SafetensorsFile file = *std::move(opened);  // stays valid when moved
  EXPECT_EQ(file.metadata(), metadata);
  std::vector<std::string> order;
  for (const SafetensorsFile::Entry& entry : file.entries()) {
    order.push_back(entry.name);
    EXPECT_EQ(file.Find(entry.name), &entry);
    const auto address = reinterpret_cast<uintptr_t>(entry.bytes.data());
    EXPECT_EQ(address % ElementSize(entry.type), 0u) << entry.name;
  }
  // Larger elements first, else as given.
  EXPECT_THAT(order, ElementsAre("é \"quoted\" \\ \t", "ids", "layers.0.weight",
                                 "scalar", "empty", "", "flags"));
  for (const NamedTensor& x : tensors) {
    const auto* entry = file.Find(x.name);
    ASSERT_NE(entry, nullptr) << x.name;
    EXPECT_EQ(entry->type, StoredAs(x.tensor.dtype()));
    EXPECT_EQ(entry->shape, x.tensor.shape());
    Tensor y = Tensor::Empty(entry->shape, x.tensor.dtype());
    CopyElements(*entry, y.dtype(), y.impl()->data);
    EXPECT_EQ(
        std::memcmp(y.impl()->data, x.tensor.impl()->data, entry->bytes.size()),
        0)
        << x.name;
  }
}

TEST_F(SafetensorsTest, StoresFloatsAsAsked) {
  std::vector<float> values(40000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1 + i * 0x1p-20f;
  const std::string path = Path("file");
  for (const auto& [type, unit] : {std::pair(ElementType::kF16, 0x1p-10),
                                   {ElementType::kBF16, 0x1p-7},
                                   {ElementType::kF32, 0x1p-23},
                                   {ElementType::kF64, 0x1p-52}}) {
    ASSERT_TRUE(WriteSafetensors(path,
                                 {{"i", Tensor::Of<int32_t>({1}, {3})},
                                  {"w", Tensor::From({40000}, values)}},
                                 {}, type)
                    .ok());
    const auto file = SafetensorsFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->Find("w")->type, type);
    EXPECT_THAT(Elements<int32_t>(*file, "i"), ElementsAre(3));
    std::vector<float> rounded;
    for (const float x : values) {
      rounded.push_back(static_cast<float>(std::nearbyint(x / unit) * unit));
    }
    EXPECT_EQ(Elements<float>(*file, "w"), rounded) << ElementName(type);
  }
  EXPECT_THAT([&] { (void)WriteSafetensors(path, {}, {}, ElementType::kI32); },
              ThrowsMessage<Error>(HasSubstr("float_type is I32")));
}

TEST_F(SafetensorsTest, AnEmptyFileOfTheFormat) {
  const std::string path = Path("file");
  ASSERT_TRUE(WriteSafetensors(path, {}).ok());
  EXPECT_EQ(Contents(path), Size(8) + "{}      ");
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->entries().empty());
}

TEST_F(SafetensorsTest, WhatCannotBeWritten) {
  const std::string path = File("file", "old");
  const Tensor x = Tensor::Ones({1});
  const std::string start = path + ": cannot be written: ";
  EXPECT_EQ(WriteSafetensors(path, {{"a", x}, {"a", x}}).message(),
            start + "the name \"a\" stands twice");
  EXPECT_EQ(WriteSafetensors(path, {{"__metadata__", x}}).message(),
            start + "the name \"__metadata__\" stands twice");
  EXPECT_EQ(WriteSafetensors(path, {{"a\xFF", x}}).message(),
            start + "\"a\uFFFD\" is not UTF-8");
  EXPECT_EQ(WriteSafetensors(path, {}, {{"k", "\xFF"}}).message(),
            start + "\"\uFFFD\" is not UTF-8");
  {
    const FullDisk full(1 << 12);
    EXPECT_EQ(
        WriteSafetensors(path, {{"a", Tensor::Ones({1 << 12})}}).message(),
        start + "File too large");
  }
  EXPECT_EQ(Contents(path), "old");
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST_F(SafetensorsTest, WhatIsNoSuchFile) {
  const std::string missing = Path("missing");
  EXPECT_EQ(SafetensorsFile::Open(missing).status().message(),
            missing + ": cannot be read: No such file or directory");
  EXPECT_EQ(SafetensorsFile::Open(folder_).status().message(),
            folder_.string() + ": cannot be read: Is a directory");
  EXPECT_EQ(Fault(""), "is no safetensors file: it has 0 bytes");
  EXPECT_EQ(Fault("1234567"), "is no safetensors file: it has 7 bytes");
  EXPECT_EQ(Fault(Size(~uint64_t{0}) + "{}"),
            "is no safetensors file: its header would have "
            "18446744073709551615 bytes; wanted at most 100000000");
  EXPECT_EQ(Fault(Size(100000000) + "{}"),
            "is cut off: the header has 100000000 bytes, of which 2 are there");
  EXPECT_EQ(Fault(Size(0)), "the header does not begin with '{'");
  EXPECT_EQ(Fault(Whole(" {}", 0)), "the header does not begin with '{'");
  EXPECT_EQ(Fault(Whole("\xEF\xBB\xBF{}", 0)),
            "the header does not begin with '{'");
}

TEST_F(SafetensorsTest, HeadersThatAreNoJson) {
  EXPECT_EQ(Fault(Whole("{\"a\":nul}", 0)),
            "the header: byte 8 is not JSON, in \"{\"a\":nul}\"");
  EXPECT_THAT(Fault(Whole("{", 0)), HasSubstr("byte 1 is not JSON"));
  EXPECT_THAT(Fault(Whole("{} {", 0)), HasSubstr("byte 3 is not JSON"));
  EXPECT_THAT(Fault(Whole("{\"a\xFF\":1}", 0)), HasSubstr("is not JSON"));
  EXPECT_THAT(Fault(Whole("{/**/}", 0)), HasSubstr("is not JSON"));
  EXPECT_EQ(Fault(Whole(std::string("{}\0x", 4), 0)),
            "the header: byte 2 is 0");
  EXPECT_THAT(Fault(Whole("{\"__metadata__\":{\"a\":\"b\",}}", 0)),
              HasSubstr("is not JSON"));
}

TEST_F(SafetensorsTest, HeadersOfTheWrongForm) {
  EXPECT_EQ(Fault(Whole("{\"a\":1}", 0)), "the header: \"a\" is no object");
  EXPECT_EQ(Fault(Whole("{\"a\":[{}]}", 0)), "the header: \"a\" is no object");
  EXPECT_EQ(Fault(Whole("{\"__metadata__\":null}", 0)),
            "the header: \"__metadata__\" is no object");
  EXPECT_EQ(Fault(Whole("{\"__metadata__\":{\"k\":1}}", 0)),
            "the header: metadata: \"k\" is no string");
  EXPECT_EQ(Fault(Whole("{\"__metadata__\":{\"k\":{}}}", 0)),
            "the header: metadata: \"k\" is no string");
  EXPECT_EQ(Fault(Whole("{\"__metadata__\":{\"k\":\"\",\"k\":\"\"}}", 0)),
            "the header: metadata: the key \"k\" stands twice");
  const std::string a = Of("a", "U8", "[1]", "[0,1]");
  EXPECT_EQ(Fault(Whole("{" + a + "," + a + "}", 1)),
            "the header: the name \"a\" stands twice");
  EXPECT_EQ(Fault(Whole("{\"__metadata__\":{},\"__metadata__\":{}}", 0)),
            "the header: the name \"__metadata__\" stands twice");
  const std::string tensor = "the header: tensor \"a\": ";
  EXPECT_EQ(Fault(Whole("{\"a\":{}}", 0)), tensor + "it has no dtype");
  EXPECT_EQ(Fault(Whole("{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", 0)),
            tensor + "it has no data_offsets");
  EXPECT_EQ(Fault(Whole("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0)),
            tensor + "its dtype stands twice");
  EXPECT_EQ(Fault(Whole("{\"a\":{\"offsets\":[0,1]}}", 0)),
            tensor + "there is no \"offsets\" of a tensor");
  EXPECT_EQ(Fault(Whole("{\"a\":{\"dtype\":8}}", 0)),
            tensor + "its dtype is no string");
  EXPECT_EQ(Fault(Whole("{\"a\":{\"dtype\":[\"U8\"]}}", 0)),
            tensor + "its dtype is no string");
  EXPECT_EQ(Fault(Whole("{" + Of("a", "F4", "[2]", "[0,1]") + "}", 1)),
            tensor + "its dtype \"F4\" is none that can be read");
  for (const char* shape :
       {"1", "[-1]", "[1.0]", "[[1]]", "[null]", "[true]", "[\"1\"]", "{}",
        "[9223372036854775808]", "[1e3]", "[99999999999999999999]"}) {
    EXPECT_EQ(
        Fault(Whole("{" + Of("a", "U8", shape, "[0,1]") + "}", 1)),
        tensor + "its shape is no list of whole numbers from 0 to 2^63 - 1")
        << shape;
  }
  for (const char* offsets : {"[]", "[0]", "[0,1,1]", "[-1,0]", "7", "null"}) {
    EXPECT_EQ(Fault(Whole("{" + Of("a", "U8", "[1]", offsets) + "}", 1)),
              tensor +
                  "its data_offsets is no pair of whole numbers from 0 to "
                  "2^63 - 1")
        << offsets;
  }
  std::string rank = "[1";
  for (int i = 0; i < 64; ++i) rank += ",1";
  EXPECT_EQ(Fault(Whole("{" + Of("a", "U8", rank + "]", "[0,1]") + "}", 1)),
            tensor + "its shape has more than 64 numbers");
}

TEST_F(SafetensorsTest, NumbersThatDoNotFit) {
  const auto one = [&](const std::string& dtype, const std::string& shape,
                       const std::string& offsets, size_t data) {
    return Fault(Whole("{" + Of("a", dtype, shape, offsets) + "}", data));
  };
  const std::string tensor = "tensor \"a\": ";
  EXPECT_EQ(one("F32", "[2,2]", "[0,4]", 4),
            tensor +
                "it is F32 [2, 2], which takes 16 bytes; its data_offsets are "
                "[0, 4]");
  EXPECT_EQ(one("F32", "[1]", "[4,0]", 4),
            tensor + "its data_offsets [4, 0] end before they begin");
  EXPECT_EQ(one("F32", "[1]", "[4,8]", 8),
            tensor + "its data_offsets [4, 8] leave a gap behind the header");
  EXPECT_EQ(one("F32", "[2]", "[0,8]", 7),
            tensor +
                "its data_offsets [0, 8] go beyond the end of the file, which "
                "holds 7 bytes of data");
  EXPECT_EQ(one("F32", "[1]", "[0,4]", 5),
            "the last tensor ends at byte 4 of the data, which has 5");
  EXPECT_EQ(Fault(Whole("{}", 1)),
            "the last tensor ends at byte 0 of the data, which has 1");
  // The count of elements, and that of their bytes, beyond 64 bits.
  for (const char* shape : {"[4294967296,4294967296]", "[4611686018427387904]",
                            "[0,4294967296,4294967296]"}) {
    EXPECT_THAT(one("F32", shape, "[0,0]", 0),
                HasSubstr("more bytes than 64 bits can count"));
  }
  EXPECT_THAT(one("F32", "[2305843009213693951]", "[0,9223372036854775804]", 4),
              HasSubstr("go beyond the end of the file"));
  const auto two = [&](const std::string& a, const std::string& b) {
    return Fault(Whole(
        "{" + Of("a", "F32", "[2]", a) + "," + Of("b", "F32", "[2]", b) + "}",
        20));
  };
  EXPECT_EQ(two("[0,8]", "[4,12]"),
            "tensor \"b\": its data_offsets [4, 12] overlap those of \"a\"");
  EXPECT_EQ(two("[0,8]", "[0,8]"),
            "tensor \"b\": its data_offsets [0, 8] overlap those of \"a\"");
  EXPECT_EQ(two("[12,20]", "[0,8]"),
            "tensor \"a\": its data_offsets [12, 20] leave a gap behind \"b\"");
}

TEST_F(SafetensorsTest, TensorsInAnyOrderOfTheText) {
  const std::string path =
      File("file", Whole("{" + Of("c", "U8", "[1]", "[2,3]") + "," +
                             Of("e", "F64", "[0]", "[2,2]") + "," +
                             Of("a", "U8", "[2]", "[0,2]") + "}",
                         3));
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->entries()[0].name, "a");
  EXPECT_EQ(file->entries()[1].name, "e");
  EXPECT_EQ(file->entries()[2].name, "c");
}

TEST_F(SafetensorsTest, EveryTruncationIsAnError) {
  const std::string path = Path("whole");
  ASSERT_TRUE(WriteSafetensors(path,
                               {{"a", Tensor::Ones({3})},
                                {"b", Tensor::Ones({2}, DType::kFloat64)}},
                               {{"format", "pt"}})
                  .ok());
  const std::string whole = Contents(path);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(
        SafetensorsFile::Parse(
            {reinterpret_cast<const uint8_t*>(whole.data()), size}, path)
            .ok())
        << size;
  }
  EXPECT_TRUE(SafetensorsFile::Open(path).ok());
}

// Bytes in memory that are aligned to nothing.
TEST_F(SafetensorsTest, ParsesBytes) {
  std::string bytes =
      "x" + Whole("{" + Of("a", "F32", "[1]", "[0,4]") + "}", 0);
  const float value = 2.5;
  bytes.append(reinterpret_cast<const char*>(&value), 4);
  const auto file = SafetensorsFile::Parse(
      {reinterpret_cast<const uint8_t*>(bytes.data()) + 1, bytes.size() - 1},
      "memory");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(Elements<float>(*file, "a"), ElementsAre(2.5));
  EXPECT_THAT(Elements<double>(*file, "a"), ElementsAre(2.5));
}

TEST(SafetensorsTypes, FitAndConvert) {
  EXPECT_TRUE(FitsExactly(ElementType::kBF16, DType::kFloat32));
  EXPECT_TRUE(FitsExactly(ElementType::kF64, DType::kFloat64));
  EXPECT_FALSE(FitsExactly(ElementType::kF64, DType::kFloat32));
  EXPECT_TRUE(Converts(ElementType::kF64, DType::kFloat32));
  EXPECT_FALSE(Converts(ElementType::kI32, DType::kFloat32));
  EXPECT_FALSE(Converts(ElementType::kI32, DType::kInt64));
  EXPECT_TRUE(FitsExactly(ElementType::kI64, DType::kInt64));
  for (const char* name : {"BOOL", "F8_E4M3", "BF16", "F32", "F64"}) {
    EXPECT_EQ(ElementName(*ElementTypeOf(name)), std::string(name));
  }
  EXPECT_EQ(ElementTypeOf("f32"), std::nullopt);
}

}  // namespace
}  // namespace wengert::train
