// The pictures of attention, as text and as SVG.
#include "examples/word_to_symbol/attention_picture.h"

#include <string>
#include <vector>

#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert {
namespace {

using ::testing::HasSubstr;

train::AttentionMap OneIsOne() {
  return {"one is one",
          "",
          {"one", "is"},
          {"one", "is"},
          {{0.03, 0.97, 1, 0}, {0.25, 0.75, 0.5, 0.5}}};
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

// Every tag that opens closes, in order, and no bare & is left.
bool IsWellFormed(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = xml.find('<'); at != std::string::npos;
       at = xml.find('<', at)) {
    const size_t end = xml.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = xml.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find(' '));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  const int escapes =
      Count(xml, "&amp;") + Count(xml, "&lt;") + Count(xml, "&gt;");
  return open.empty() && Count(xml, "&") == escapes;
}

TEST(AttentionText, ShadesAndLabelsTheGrid) {
  EXPECT_EQ(AttentionText(OneIsOne(), /*color=*/false),
            "one is one\n"
            "head 1                 head 2\n"
            "         one      is            one      is\n"
            "one     0.03 ██ 0.97   one  ░░ 0.25 ▓▓ 0.75\n"
            "is   ██ 1.00    0.00   is   ▒▒ 0.50 ▒▒ 0.50\n");
}

TEST(AttentionText, WrapsWhatDoesNotFit) {
  EXPECT_EQ(AttentionText(OneIsOne(), /*color=*/false, /*columns=*/42),
            "one is one\n"
            "head 1\n"
            "         one      is\n"
            "one     0.03 ██ 0.97\n"
            "is   ██ 1.00    0.00\n"
            "head 2\n"
            "         one      is\n"
            "one  ░░ 0.25 ▓▓ 0.75\n"
            "is   ▒▒ 0.50 ▒▒ 0.50\n");
  EXPECT_EQ(AttentionText(OneIsOne(), false, 43),
            AttentionText(OneIsOne(), false, 80));
  EXPECT_EQ(AttentionText(OneIsOne(), false, 0),
            AttentionText(OneIsOne(), false, 42));
}

TEST(AttentionText, AlignsLongAndWideLabels) {
  const train::AttentionMap picture{
      "", "", {"七", "seven"}, {"paragraph", "七 é"}, {{0, 1, 1, 0}}};
  EXPECT_EQ(AttentionText(picture, /*color=*/false),
            "\n"
            "head 1\n"
            "        paragraph       七 é\n"
            "七           0.00 █████ 1.00\n"
            "seven  █████ 1.00       0.00\n");
}

TEST(AttentionText, ColoursFromBlackToWhite) {
  const train::AttentionMap picture{
      "t", "", {"q"}, {"a", "b", "c"}, {{0, 1, 0.5}}};
  EXPECT_EQ(AttentionText(picture, /*color=*/true),
            "t\n"
            "head 1\n"
            "     a       b       c\n"
            "q \x1b[48;5;232;38;5;231m  0.00  \x1b[0m"
            "\x1b[48;5;255;38;5;16m  1.00  \x1b[0m"
            "\x1b[48;5;244;38;5;16m  0.50  \x1b[0m\n");
}

TEST(AttentionText, ShadesValuesOutsideAndControlCharacters) {
  const train::AttentionMap picture{"a\x1b[2J",
                                    "",
                                    {"q\n"},
                                    {"\xFF", "k", "k"},
                                    {{std::nanf(""), 1.5, -0.5}}};
  EXPECT_EQ(AttentionText(picture, /*color=*/false),
            "a\uFFFD[2J\n"
            "head 1\n"
            "          \uFFFD       k       k\n"
            "q\uFFFD      nan ██ 1.50   -0.50\n");
}

TEST(AttentionText, RefusesAHeadThatDoesNotFitTheLabels) {
  train::AttentionMap picture = OneIsOne();
  picture.heads[1].pop_back();
  EXPECT_EQ(ErrorOf([&] { AttentionText(picture, false); }),
            "AttentionText: attention of layer \"\" has 3 weights in head 1, "
            "wanted 2 queries x 2 keys");
  EXPECT_THROW(AttentionSvg("title", {OneIsOne(), picture}), Error);
}

TEST(AttentionSvg, DrawsEveryCellOfEveryPicture) {
  train::AttentionMap wide = OneIsOne();
  wide.sentence = "two is two";
  wide.keys.push_back("key");
  wide.heads = {{0, 0.125, 0.25, 0.5, 0.75, 1}};
  const std::string svg = AttentionSvg("Attention", {OneIsOne(), wide});
  EXPECT_TRUE(IsWellFormed(svg));
  EXPECT_THAT(svg, HasSubstr("<title>Attention</title>"));
  EXPECT_THAT(svg, HasSubstr(">one is one</text>"));
  EXPECT_THAT(svg, HasSubstr(">two is two</text>"));
  EXPECT_EQ(Count(svg, "<rect x="), 2 * 4 + 6);
  EXPECT_EQ(Count(svg, "class=\"value "), 2 * 4 + 6);
  EXPECT_EQ(Count(svg, ">0.97</text>"), 1);
  EXPECT_EQ(Count(svg, "class=\"query\">is</text>"), 3);
  EXPECT_EQ(Count(svg, "class=\"key\">is</text>"), 3);
  EXPECT_EQ(Count(svg, ">head 2</text>"), 1);
  // The ends of the scale, and letters that can be read on them.
  EXPECT_EQ(Count(svg, "fill=\"#f1f5fa\""), 2);
  EXPECT_EQ(Count(svg, "fill=\"#08306b\""), 2);
  EXPECT_EQ(Count(svg, "class=\"value light\">1.00</text>"), 2);
  EXPECT_EQ(Count(svg, "class=\"value dark\">0.00</text>"), 2);
}

// The second head stands right of the first, the second picture below, and all
// within the file's measures.
TEST(AttentionSvg, PlacesHeadsSideBySide) {
  const std::string svg = AttentionSvg("t", {OneIsOne(), OneIsOne()});
  std::vector<int> x, y;
  for (size_t at = svg.find("<rect x="); at != std::string::npos;
       at = svg.find("<rect x=", at + 1)) {
    int left, top;
    ASSERT_EQ(std::sscanf(&svg[at], "<rect x=\"%d\" y=\"%d\"", &left, &top), 2);
    x.push_back(left);
    y.push_back(top);
  }
  ASSERT_EQ(x.size(), 16);
  EXPECT_EQ(x[1] - x[0], 44);
  EXPECT_EQ(y[2] - y[0], 32);
  EXPECT_GT(x[4], x[1] + 44);
  EXPECT_EQ(y[4], y[0]);
  EXPECT_EQ(x[8], x[0]);
  EXPECT_GT(y[8], y[2] + 32);
  int width, height;
  const size_t at = svg.find("width=");
  ASSERT_EQ(
      std::sscanf(&svg[at], "width=\"%d\" height=\"%d\"", &width, &height), 2);
  EXPECT_GT(width, x[5] + 44);
  EXPECT_GT(height, y[15] + 32);
}

TEST(AttentionSvg, EscapesText) {
  const train::AttentionMap picture{
      "<b> & \x01", "", {"<"}, {"&amp;"}, {{std::nanf("")}}};
  const std::string svg = AttentionSvg("</title>", {picture});
  EXPECT_TRUE(IsWellFormed(svg));
  EXPECT_THAT(svg, HasSubstr("<title>&lt;/title&gt;</title>"));
  EXPECT_THAT(svg, HasSubstr(">&lt;b&gt; &amp; \uFFFD</text>"));
  EXPECT_THAT(svg, HasSubstr(">&lt;</text>"));
  EXPECT_THAT(svg, HasSubstr(">&amp;amp;</text>"));
  EXPECT_THAT(svg, HasSubstr(">nan</text>"));
}

TEST(AttentionSvg, IsWellFormedWithoutPictures) {
  EXPECT_TRUE(IsWellFormed(AttentionSvg("t", {})));
  EXPECT_FALSE(IsWellFormed("<a><b></a></b>"));
}

}  // namespace
}  // namespace wengert
