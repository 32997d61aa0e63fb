// Attention weights as pictures: a labelled, shaded grid for each head, in the
// terminal or as SVG.
#ifndef WENGERT_EXAMPLES_WORD_TO_SYMBOL_ATTENTION_PICTURE_H_
#define WENGERT_EXAMPLES_WORD_TO_SYMBOL_ATTENTION_PICTURE_H_

#include <string>
#include <vector>

namespace wengert {

// What the heads of one layer do with one sentence.
struct AttentionPicture {
  std::string title;
  std::vector<std::string> queries;  // labels the rows
  std::vector<std::string> keys;     // labels the columns
  // A head's weights in [0, 1]: queries.size() x keys.size(), row-major.
  std::vector<std::vector<double>> heads;
};

// One grid for each head, as many side by side as fit a line of `columns`
// characters. With colour a cell's grey says its weight, black 0 and white 1,
// by ANSI codes for 256 colours; without, the characters " ░▒▓█" do. Throws
// Error where a head's size does not fit the labels.
std::string AttentionText(const AttentionPicture& picture, bool color,
                          int columns = 80);

// The text of an SVG file: one row of grids for each picture under the title.
// Throws as AttentionText does.
std::string AttentionSvg(const std::string& title,
                         const std::vector<AttentionPicture>& pictures);

}  // namespace wengert

#endif  // WENGERT_EXAMPLES_WORD_TO_SYMBOL_ATTENTION_PICTURE_H_
