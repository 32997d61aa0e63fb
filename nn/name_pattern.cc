#include "nn/name_pattern.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace wengert::nn {

bool MatchesPattern(absl::string_view pattern, absl::string_view name) {
  // Where the last star stands and what it has taken; a later character that
  // does not fit makes it take one more.
  size_t p = 0, star = pattern.npos, taken = 0;
  for (size_t i = 0; i < name.size();) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = i;
    } else if (p < pattern.size() && pattern[p] == name[i]) {
      ++p, ++i;
    } else if (star != pattern.npos) {
      p = star + 1;
      i = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

size_t EditDistance(absl::string_view a, absl::string_view b) {
  // distance[i][j] is that of the first i bytes of a and the first j of b.
  std::vector<std::vector<size_t>> distance(a.size() + 1,
                                            std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      size_t& best = distance[i][j];
      if (i == 0 || j == 0) {
        best = i + j;
        continue;
      }
      best = std::min({distance[i - 1][j] + 1, distance[i][j - 1] + 1,
                       distance[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        best = std::min(best, distance[i - 2][j - 2] + 1);
      }
    }
  }
  return distance[a.size()][b.size()];
}

std::string NearestName(absl::string_view name,
                        const std::vector<std::string>& names) {
  if (names.empty()) return "there are none";
  const auto nearer = [&](const std::string& a, const std::string& b) {
    return EditDistance(name, a) < EditDistance(name, b);
  };
  return absl::StrCat("the nearest is '",
                      *std::min_element(names.begin(), names.end(), nearer),
                      "'");
}

}  // namespace wengert::nn
