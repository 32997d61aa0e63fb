// Which examples to learn from and which to hold out.
#ifndef WENGERT_TRAIN_SPLIT_H_
#define WENGERT_TRAIN_SPLIT_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace wengert::train {

struct Split {
  std::vector<int64_t> train, held_out;  // ascending
};

// Holds out `fraction` of the indices 0 .. n - 1, at random: round(n *
// fraction) of them, halves rounded up. A function of n, fraction and seed.
// Throws Error unless n >= 0 and 0 <= fraction <= 1.
Split SplitBySeed(int64_t n, double fraction, uint64_t seed);

// Holds out about `fraction` of the examples, by their contents: an example
// stays on its side when others come or go, and equal ones are on the same
// side. A larger fraction holds out the same ones and more. key(i) is what
// identifies example i, such as its text. Throws as above.
Split SplitByHash(int64_t n, absl::FunctionRef<absl::string_view(int64_t)> key,
                  double fraction, uint64_t seed = 0);

// Whether SplitByHash holds out the example with this key: whether
// StreamKey(seed, key), the FNV-1a hash of the key mixed with the seed, is less
// than fraction * 2^64. The same on every machine and in every version.
bool HeldOutByHash(absl::string_view key, double fraction, uint64_t seed = 0);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_SPLIT_H_
