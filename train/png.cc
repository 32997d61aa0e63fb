#include "train/png.h"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"

namespace wengert::train {
namespace {

constexpr char kOp[] = "AttentionPng";
constexpr int64_t kGridSize = 384;
constexpr int64_t kLargestCell = 32;
constexpr int64_t kGap = 16;                 // around each grid
constexpr int64_t kLargestSide = 1'000'000;  // libpng's limit

// The colours of a pixel's byte: shades up to kShades, and two more.
constexpr uint8_t kShades = 253;
constexpr uint8_t kBackground = 254;
constexpr uint8_t kNotANumber = 255;

std::vector<uint8_t> Palette() {
  // Between these, a third of the way each.
  constexpr double kStops[4][3] = {
      {0xF0, 0xF4, 0xFA}, {0x9E, 0xC5, 0xE6}, {0x38, 0x7F, 0xBC}, {8, 48, 107}};
  std::vector<uint8_t> palette;
  for (int shade = 0; shade <= kShades; ++shade) {
    const double place = 3.0 * shade / kShades;
    const int stop = std::min(static_cast<int>(place), 2);
    for (int c = 0; c < 3; ++c) {
      const double from = kStops[stop][c], to = kStops[stop + 1][c];
      palette.push_back(static_cast<uint8_t>(
          std::lround(from + (to - from) * (place - stop))));
    }
  }
  palette.insert(palette.end(), {0xFF, 0xFF, 0xFF, 0xD0, 0x30, 0x30});
  return palette;
}

void CheckSides(const char* op, int64_t width, int64_t height) {
  if (std::min(width, height) < 1 || std::max(width, height) > kLargestSide) {
    throw Error(absl::StrCat(op, ": ", width, " x ", height,
                             " pixels, wanted 1 to ", kLargestSide, " a side"));
  }
}

// `palette` is null for a format that has none.
std::string Encode(const char* op, int64_t width, int64_t height,
                   png_uint_32 format, const uint8_t* pixels,
                   const uint8_t* palette) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = format;
  image.colormap_entries = palette ? 256 : 0;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string bytes(size, '\0');
  if (!png_image_write_to_memory(&image, bytes.data(), &size,
                                 /*convert_to_8_bit=*/0, pixels,
                                 /*row_stride=*/0, palette)) {
    throw Error(absl::StrCat(op, ": ", image.message));
  }
  bytes.resize(size);
  return bytes;
}

uint8_t Color(float weight) {
  if (std::isnan(weight)) return kNotANumber;
  return static_cast<uint8_t>(
      std::lround(std::clamp(weight, 0.0f, 1.0f) * kShades));
}

}  // namespace

std::string AttentionPng(const AttentionMap& map) {
  CheckAttentionMap(kOp, map);
  const int64_t rows = static_cast<int64_t>(map.queries.size());
  const int64_t columns = static_cast<int64_t>(map.keys.size());
  const int64_t n_heads = static_cast<int64_t>(map.heads.size());
  const int64_t cell =
      std::clamp<int64_t>(kGridSize / std::max(rows, columns), 1, kLargestCell);
  const int64_t width = kGap + n_heads * (columns * cell + kGap);
  const int64_t height = rows * cell + 2 * kGap;
  CheckSides(kOp, width, height);

  std::vector<uint8_t> pixels(width * height, kBackground);
  for (int64_t h = 0; h < n_heads; ++h) {
    const int64_t left = kGap + h * (columns * cell + kGap);
    for (int64_t y = 0; y < rows * cell; ++y) {
      const float* weights = &map.heads[h][y / cell * columns];
      uint8_t* line = &pixels[(kGap + y) * width + left];
      for (int64_t x = 0; x < columns * cell; ++x) {
        line[x] = Color(weights[x / cell]);
      }
    }
  }

  return Encode(kOp, width, height, PNG_FORMAT_RGB_COLORMAP, pixels.data(),
                Palette().data());
}

std::string RgbPng(int64_t width, int64_t height,
                   absl::Span<const uint8_t> pixels) {
  CheckSides("RgbPng", width, height);
  if (static_cast<int64_t>(pixels.size()) != 3 * width * height) {
    throw Error(absl::StrCat("RgbPng: ", pixels.size(), " bytes for ", width,
                             " x ", height, " pixels; wanted three for each"));
  }
  return Encode("RgbPng", width, height, PNG_FORMAT_RGB, pixels.data(),
                /*palette=*/nullptr);
}

}  // namespace wengert::train
