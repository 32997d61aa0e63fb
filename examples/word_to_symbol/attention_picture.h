// Attention weights as pictures: a labelled, shaded grid for each head, in the
// terminal or as SVG.
#ifndef WENGERT_EXAMPLES_WORD_TO_SYMBOL_ATTENTION_PICTURE_H_
#define WENGERT_EXAMPLES_WORD_TO_SYMBOL_ATTENTION_PICTURE_H_

#include <string>
#include <vector>

#include "train/attention_map.h"

namespace wengert {

// One grid for each head, as many side by side as fit a line of `columns`
// characters. With colour a cell's grey says its weight, black 0 and white 1,
// by ANSI codes for 256 colours; without, the characters " ░▒▓█" do. Throws
// Error as train::CheckAttentionMap does.
std::string AttentionText(const train::AttentionMap& map, bool color,
                          int columns = 80);

// The text of an SVG file: one row of grids for each map under the title.
// Throws as AttentionText does.
std::string AttentionSvg(const std::string& title,
                         const std::vector<train::AttentionMap>& maps);

}  // namespace wengert

#endif  // WENGERT_EXAMPLES_WORD_TO_SYMBOL_ATTENTION_PICTURE_H_
