// Attention weights as a PNG file, for TensorBoard:
//
//   events.Image(step, "attention/" + map.layer, AttentionPng(map));
#ifndef WENGERT_TRAIN_PNG_H_
#define WENGERT_TRAIN_PNG_H_

#include <string>

#include "train/attention_map.h"

namespace wengert::train {

// The bytes of a PNG file: a grid for each head, side by side in their order. A
// row is a query, a column a key; a cell goes from near white for 0 to dark
// blue for 1 and is red where the weight is NaN. The larger side of a grid
// takes about 384 pixels, a cell at most 32. Throws Error as CheckAttentionMap
// does, and for a picture larger than PNG's readers accept.
std::string AttentionPng(const AttentionMap& map);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_PNG_H_
