// The text that the example learns when it is given none: counting in words.
#ifndef WENGERT_EXAMPLES_NEXT_BYTE_COUNTING_H_
#define WENGERT_EXAMPLES_NEXT_BYTE_COUNTING_H_

#include <cstdint>
#include <string>

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

// Lines that count on from a random number: "seven, eight, nine, ten, eleven."
inline std::string Counting() {
  constexpr int kLines = 2000, kNumbers = 5;
  std::string text;
  for (int line = 0; line < kLines; ++line) {
    const int first = static_cast<int>(
        UniformInt(/*seed=*/1, /*offset=*/0, line, 101 - kNumbers));
    for (int i = 0; i < kNumbers; ++i) {
      absl::StrAppend(&text, InWords(first + i),
                      i + 1 < kNumbers ? ", " : ".\n");
    }
  }
  return text;
}

}  // namespace wengert

#endif  // WENGERT_EXAMPLES_NEXT_BYTE_COUNTING_H_
