// The text that the example learns when it is given none: sums in words.
#ifndef WENGERT_EXAMPLES_NEXT_BYTE_SUMS_H_
#define WENGERT_EXAMPLES_NEXT_BYTE_SUMS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/random.h"

namespace wengert {

// 0 <= n < 100: "seven", "forty-two".
inline std::string InWords(int n) {
  static constexpr const char* kSmall[] = {
      "zero",    "one",     "two",       "three",    "four",
      "five",    "six",     "seven",     "eight",    "nine",
      "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
      "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
  static constexpr const char* kTens[] = {
      "",      "",      "twenty",  "thirty", "forty",
      "fifty", "sixty", "seventy", "eighty", "ninety"};
  if (n < 20) return kSmall[n];
  return n % 10 == 0 ? kTens[n / 10]
                     : absl::StrCat(kTens[n / 10], "-", kSmall[n % 10]);
}

// "two plus three is five.", a line for each pair of numbers below 30, in
// random order.
inline std::string Sums() {
  constexpr int kNumbers = 30;
  std::vector<std::string> lines;
  for (int a = 0; a < kNumbers; ++a) {
    for (int b = 0; b < kNumbers; ++b) {
      lines.push_back(absl::StrCat(InWords(a), " plus ", InWords(b), " is ",
                                   InWords(a + b), ".\n"));
    }
  }
  for (size_t i = lines.size() - 1; i > 0; --i) {
    std::swap(lines[i], lines[UniformInt(/*seed=*/1, 0, i, i + 1)]);
  }
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace wengert

#endif  // WENGERT_EXAMPLES_NEXT_BYTE_SUMS_H_
