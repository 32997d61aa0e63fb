// Pictures as PNG files: of attention weights, for TensorBoard,
//
//   events.Image(step, "attention/" + map.layer, AttentionPng(map));
//
// and of one's own.
#ifndef WENGERT_TRAIN_PNG_H_
#define WENGERT_TRAIN_PNG_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "train/attention_map.h"

namespace wengert::train {

// The bytes of a PNG file: a grid for each head, side by side in their order. A
// row is a query, a column a key; a cell goes from near white for 0 to dark
// blue for 1 and is red where the weight is NaN. The larger side of a grid
// takes about 384 pixels, a cell at most 32. Throws Error as CheckAttentionMap
// does, and for a picture larger than PNG's readers accept.
std::string AttentionPng(const AttentionMap& map);

// The bytes of a PNG file of width x height pixels, given line by line from the
// top, three bytes (red, green, blue) each. Throws Error unless there are as
// many, and for a picture without pixels or larger than PNG's readers accept.
std::string RgbPng(int64_t width, int64_t height,
                   absl::Span<const uint8_t> pixels);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_PNG_H_
