#include "nn/name_pattern.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wengert::nn {
namespace {

// The number of insertions, deletions and replacements between a and b.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

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
