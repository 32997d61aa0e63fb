// How parameters and layers are named in bulk: "encoder.*" is all below
// "encoder".
#ifndef WENGERT_NN_NAME_PATTERN_H_
#define WENGERT_NN_NAME_PATTERN_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace wengert::nn {

// Whether the pattern is the whole name, where * stands for any text, dots and
// none too.
bool MatchesPattern(absl::string_view pattern, absl::string_view name);

// The fewest bytes inserted, removed, replaced or swapped with their neighbour
// that make b of a (Damerau and Levenshtein).
size_t EditDistance(absl::string_view a, absl::string_view b);

// "the nearest is 'layers.0'", by EditDistance, the first where several are; or
// that there are none.
std::string NearestName(absl::string_view name,
                        const std::vector<std::string>& names);

}  // namespace wengert::nn

#endif  // WENGERT_NN_NAME_PATTERN_H_
