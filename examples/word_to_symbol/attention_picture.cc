// Layout of the attention grids.
#include "examples/word_to_symbol/attention_picture.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "train/text_file.h"

namespace wengert {
namespace {

// Above a map's grids.
std::string Title(const train::AttentionMap& map) {
  return map.layer.empty() ? map.sentence
                           : absl::StrCat(map.sentence, ", ", map.layer);
}

// Columns that a text takes in a terminal: East Asian characters take two. The
// bytes of UTF-8 sort as the characters do.
int Width(absl::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const size_t length = std::max<size_t>(train::Utf8Length(text), 1);
    const absl::string_view c = text.substr(0, length);
    const bool wide = (c >= "\u1100" && c <= "\u115F") ||  // Hangul
                      (c >= "\u2E80" && c <= "\uA4CF") ||  // CJK, kana
                      (c >= "\uAC00" && c <= "\uD7A3") ||  // Hangul syllables
                      (c >= "\uF900" && c <= "\uFAFF") ||  // CJK
                      (c >= "\uFF00" && c <= "\uFF60") ||  // full-width forms
                      (c >= "\U0001F300" && c <= "\U0003FFFD");
    width += wide ? 2 : 1;
    text.remove_prefix(length);
  }
  return width;
}

int WidestLabel(const std::vector<std::string>& labels) {
  int widest = 0;
  for (const std::string& label : labels) {
    widest = std::max(widest, Width(label));
  }
  return widest;
}

std::vector<std::string> Printable(const std::vector<std::string>& labels) {
  std::vector<std::string> result;
  for (const std::string& label : labels) {
    result.push_back(train::Printable(label));
  }
  return result;
}

// The weight as a shade: 0 where it is not a number.
double Shade(double weight) {
  return std::isnan(weight) ? 0 : std::clamp(weight, 0.0, 1.0);
}

std::string Spaces(int n) { return std::string(std::max(n, 0), ' '); }

// A cell of `width` columns, at least 7.
std::string TextCell(double weight, int width, bool color) {
  const std::string number = absl::StrFormat("%.2f", weight);
  const int margin = width - static_cast<int>(number.size());
  const double shade = Shade(weight);
  if (color) {
    const int grey = 232 + static_cast<int>(std::lround(23 * shade));
    return absl::StrFormat("\x1b[48;5;%d;38;5;%dm%s%s%s\x1b[0m", grey,
                           shade < 0.5 ? 231 : 16, Spaces(margin / 2), number,
                           Spaces(margin - margin / 2));
  }
  static constexpr absl::string_view kBlocks[] = {" ", "░", "▒", "▓", "█"};
  std::string cell = " ";
  for (int i = 0; i < margin - 2; ++i) {
    absl::StrAppend(&cell, kBlocks[std::lround(4 * shade)]);
  }
  return absl::StrCat(cell, " ", number);
}

// The SVG's measures, in pixels.
constexpr int kCharacter = 8;  // about one of the 13 pixel sans-serif
constexpr int kCellHeight = 32;
constexpr int kGap = 24;
constexpr int kTitleHeight = 52;
constexpr int kHeadingHeight = 56;  // a picture's title, head and key labels

std::string Escaped(absl::string_view text) {
  std::string result;
  for (const char c : train::Printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

// `style` names a rule of the file's style sheet.
std::string SvgText(int x, int y, absl::string_view style,
                    absl::string_view text) {
  return absl::StrFormat("<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x,
                         y, style, Escaped(text));
}

std::string SvgCell(int x, int y, int width, double weight) {
  const double shade = Shade(weight);
  const auto mix = [&](int light, int dark) {
    return static_cast<int>(std::lround(light + (dark - light) * shade));
  };
  return absl::StrCat(
      absl::StrFormat("<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
                      "fill=\"#%02x%02x%02x\"/>\n",
                      x, y, width, kCellHeight, mix(0xF1, 0x08),
                      mix(0xF5, 0x30), mix(0xFA, 0x6B)),
      SvgText(x + width / 2, y + kCellHeight / 2 + 5,
              shade < 0.6 ? "value dark" : "value light",
              absl::StrFormat("%.2f", weight)));
}

}  // namespace

std::string AttentionText(const train::AttentionMap& map, bool color,
                          int columns) {
  train::CheckAttentionMap("AttentionText", map);
  const std::vector<std::string> queries = Printable(map.queries);
  const std::vector<std::string> keys = Printable(map.keys);
  const int label_width = WidestLabel(queries);
  const int cell_width = std::max(WidestLabel(keys) + 2, 8);
  const int grid_width =
      label_width + 1 + cell_width * static_cast<int>(keys.size());
  const int gap = 3;
  const size_t per_line = std::max((columns + gap) / (grid_width + gap), 1);

  std::string text = train::Printable(Title(map)) + "\n";
  for (size_t first = 0; first < map.heads.size(); first += per_line) {
    const size_t end = std::min(first + per_line, map.heads.size());
    // Line 0 names the heads, line 1 the keys, then comes a line a query.
    for (size_t line = 0; line < queries.size() + 2; ++line) {
      std::string row;
      for (size_t h = first; h < end; ++h) {
        if (h > first) row += Spaces(gap);
        if (line == 0) {
          const std::string name = absl::StrCat("head ", h + 1);
          absl::StrAppend(&row, name, Spaces(grid_width - Width(name)));
          continue;
        }
        const std::string label = line == 1 ? "" : queries[line - 2];
        absl::StrAppend(&row, label, Spaces(label_width - Width(label) + 1));
        for (size_t k = 0; k < keys.size(); ++k) {
          if (line == 1) {
            const int margin = cell_width - Width(keys[k]);
            // In the middle of a coloured cell, else above the number's end.
            const int right = color ? margin - margin / 2 : 0;
            absl::StrAppend(&row, Spaces(margin - right), keys[k],
                            Spaces(right));
          } else {
            row += TextCell(map.heads[h][(line - 2) * keys.size() + k],
                            cell_width, color);
          }
        }
      }
      absl::StripTrailingAsciiWhitespace(&row);
      absl::StrAppend(&text, row, "\n");
    }
  }
  return text;
}

std::string AttentionSvg(const std::string& title,
                         const std::vector<train::AttentionMap>& maps) {
  std::string body;
  int width = 0;
  int y = kGap + kTitleHeight;
  for (const train::AttentionMap& map : maps) {
    train::CheckAttentionMap("AttentionSvg", map);
    const int rows = static_cast<int>(map.queries.size());
    const int columns = static_cast<int>(map.keys.size());
    const int label_width =
        WidestLabel(Printable(map.queries)) * kCharacter + 8;
    const int cell_width =
        std::max(WidestLabel(Printable(map.keys)) * kCharacter + 8, 44);

    body += SvgText(kGap, y + 14, "title", Title(map));
    int x = kGap;
    for (size_t h = 0; h < map.heads.size(); ++h) {
      const int left = x + label_width;
      const int top = y + kHeadingHeight;
      body += SvgText(left, y + 32, "head", absl::StrCat("head ", h + 1));
      for (int k = 0; k < columns; ++k) {
        body += SvgText(left + k * cell_width + cell_width / 2, top - 6, "key",
                        map.keys[k]);
      }
      for (int q = 0; q < rows; ++q) {
        const int cell_top = top + q * kCellHeight;
        body += SvgText(left - 8, cell_top + kCellHeight / 2 + 5, "query",
                        map.queries[q]);
        for (int k = 0; k < columns; ++k) {
          body += SvgCell(left + k * cell_width, cell_top, cell_width,
                          map.heads[h][q * columns + k]);
        }
      }
      x = left + columns * cell_width + kGap;
    }
    width = std::max({width, x, 2 * kGap + Width(Title(map)) * kCharacter});
    y += kHeadingHeight + rows * kCellHeight + kGap;
  }
  const absl::string_view caption =
      "A row is a query; its cells are the weights it gives to the keys, "
      "darker "
      "for more.";
  width = std::max({width, 2 * kGap + Width(title) * 10,
                    2 * kGap + Width(caption) * kCharacter});
  return absl::StrCat(
      absl::StrFormat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
                      "height=\"%d\" viewBox=\"0 0 %d %d\">\n",
                      width, y, width, y),
      "<title>", Escaped(title), "</title>\n",
      R"(<style>
text { font: 13px sans-serif; fill: #222; }
.file { font-size: 17px; font-weight: bold; }
.title { font-weight: bold; }
.head, .caption { fill: #555; }
.key, .value { text-anchor: middle; }
.query { text-anchor: end; }
.value { font-size: 12px; }
.dark { fill: #222; }
.light { fill: #fff; }
rect { stroke: #fff; }
</style>
<rect width="100%" height="100%" fill="#fff"/>
)",
      SvgText(kGap, kGap + 10, "file", title),
      SvgText(kGap, kGap + 30, "caption", caption), body, "</svg>\n");
}

}  // namespace wengert
