// Pictures, read back by libpng.
#include "train/png.h"

#include <png.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "autograd/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/files_testlib.h"
#include "train/tensorboard.h"

namespace wengert::train {
namespace {

using ::testing::HasSubstr;
using Color = std::array<int, 3>;

constexpr Color kWhite = {255, 255, 255};

struct Picture {
  Color At(int x, int y) const {
    const uint8_t* pixel = &pixels[(y * width + x) * 3];
    return {pixel[0], pixel[1], pixel[2]};
  }
  int width, height;
  std::vector<uint8_t> pixels;
};

Picture Decode(const std::string& bytes) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  EXPECT_TRUE(
      png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()));
  image.format = PNG_FORMAT_RGB;
  Picture picture = {static_cast<int>(image.width),
                     static_cast<int>(image.height),
                     std::vector<uint8_t>(PNG_IMAGE_SIZE(image))};
  EXPECT_TRUE(png_image_finish_read(&image, nullptr, picture.pixels.data(), 0,
                                    nullptr));
  return picture;
}

// All weights 0, but for those of a head's last row.
AttentionMap Map(int rows, int columns, int heads) {
  AttentionMap map;
  map.layer = "encoder";
  map.queries.assign(rows, "q");
  map.keys.assign(columns, "k");
  map.heads.assign(heads, std::vector<float>(rows * columns));
  return map;
}

TEST(AttentionPngTest, DrawsEachHeadsRowsAndColumns) {
  AttentionMap map = Map(2, 3, 2);
  map.heads[0] = {0, 1.0f / 3, 2.0f / 3, 1, 0, 0};
  map.heads[1] = {0, 0, 0, 0, -5, 7};
  const Picture picture = Decode(AttentionPng(map));
  ASSERT_EQ(picture.width, 16 + 2 * (3 * 32 + 16));
  ASSERT_EQ(picture.height, 2 * 32 + 2 * 16);

  const Color none = {0xF0, 0xF4, 0xFA}, all = {8, 48, 107};
  const Color wanted[2][6] = {
      {none, {0x9E, 0xC5, 0xE6}, {0x38, 0x7F, 0xBC}, all, none, none},
      {none, none, none, none, none, all}};
  for (int h = 0; h < 2; ++h) {
    for (int i = 0; i < 6; ++i) {
      const int left = 16 + h * 112 + i % 3 * 32, top = 16 + i / 3 * 32;
      for (const int far : {0, 31}) {
        const Color color = picture.At(left + far, top + far);
        for (int c = 0; c < 3; ++c) {  // 253 shades
          EXPECT_NEAR(color[c], wanted[h][i][c], 1) << h << " " << i;
        }
      }
    }
  }
  for (const auto& [x, y] :
       {std::pair(15, 20), {112, 20}, {127, 20}, {20, 15}, {20, 80}}) {
    EXPECT_EQ(picture.At(x, y), kWhite) << x << " " << y;
  }
}

TEST(AttentionPngTest, MarksWhatIsNoNumber) {
  AttentionMap map = Map(1, 2, 1);
  map.heads[0] = {std::nanf(""), -INFINITY};
  const Picture picture = Decode(AttentionPng(map));
  EXPECT_EQ(picture.At(20, 20), (Color{0xD0, 0x30, 0x30}));
  EXPECT_EQ(picture.At(50, 20), (Color{0xF0, 0xF4, 0xFA}));
}

TEST(AttentionPngTest, CellsShrinkAsSentencesGrow) {
  EXPECT_EQ(Decode(AttentionPng(Map(12, 4, 1))).height, 12 * 32 + 32);
  EXPECT_EQ(Decode(AttentionPng(Map(4, 100, 1))).width, 100 * 3 + 32);
  AttentionMap map = Map(500, 400, 2);
  map.heads[1].back() = 1;
  const Picture picture = Decode(AttentionPng(map));
  EXPECT_EQ(picture.width, 2 * 400 + 48);
  EXPECT_EQ(picture.height, 500 + 32);
  EXPECT_EQ(picture.At(picture.width - 17, 515), (Color{8, 48, 107}));
}

class AttentionEventsTest : public FilesTest {};

TEST_F(AttentionEventsTest, TensorBoardTakesThem) {
  auto events = EventWriter::Open(folder_, -1);
  ASSERT_TRUE(events.ok()) << events.status();
  const std::string png = AttentionPng(Map(3, 3, 4));
  ASSERT_TRUE(events->Image(1, "attention/encoder", png).ok());
  EXPECT_THAT(Contents(events->path()), HasSubstr(png));
}

std::string Message(const AttentionMap& map) {
  try {
    AttentionPng(map);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(AttentionPngTest, RefusesWhatDoesNotFit) {
  AttentionMap map = Map(2, 3, 2);
  map.heads[1].pop_back();
  EXPECT_EQ(Message(map),
            "AttentionPng: attention of layer \"encoder\" has 5 weights in "
            "head 1, wanted 2 queries x 3 keys");
  EXPECT_EQ(Message(Map(2, 3, 0)),
            "AttentionPng: attention of layer \"encoder\" has 0 heads of 2 "
            "queries x 3 keys, wanted at least one of each");
  EXPECT_THAT(Message(Map(0, 3, 1)), HasSubstr("1 heads of 0 queries"));
  EXPECT_THAT(Message(Map(3, 0, 1)), HasSubstr("x 0 keys, wanted"));
  EXPECT_EQ(Message(Map(1, 1, 20834)),
            "AttentionPng: 1000048 x 64 pixels, wanted 1 to 1000000 a side");
}

TEST(RgbPngTest, KeepsEveryPixel) {
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 3 * 5 * 4; ++i) pixels.push_back(i * 37 % 256);
  const Picture picture = Decode(RgbPng(5, 4, pixels));
  EXPECT_EQ(picture.width, 5);
  EXPECT_EQ(picture.height, 4);
  EXPECT_EQ(picture.pixels, pixels);
}

TEST(RgbPngTest, RefusesWhatDoesNotFit) {
  const std::vector<uint8_t> pixels(12);
  const auto message = [&](int64_t width, int64_t height) -> std::string {
    try {
      RgbPng(width, height, pixels);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message(2, 2), "no error");
  EXPECT_EQ(message(2, 3),
            "RgbPng: 12 bytes for 2 x 3 pixels; wanted three for each");
  EXPECT_EQ(message(0, 4), "RgbPng: 0 x 4 pixels, wanted 1 to 1000000 a side");
  EXPECT_THAT(message(-1, -4), HasSubstr("wanted 1 to"));
  EXPECT_THAT(message(int64_t{1} << 40, 1), HasSubstr("wanted 1 to"));
}

}  // namespace
}  // namespace wengert::train
