#include "train/split.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "autograd/random.h"

namespace wengert::train {
namespace {

void CheckFraction(const char* operation, double fraction) {
  if (!(fraction >= 0 && fraction <= 1)) {
    throw Error(absl::StrCat(operation, ": fraction ", fraction,
                             ", wanted 0 <= fraction <= 1"));
  }
}

template <class F>
Split SplitWhere(int64_t n, F held_out) {
  Split split;
  for (int64_t i = 0; i < n; ++i) {
    (held_out(i) ? split.held_out : split.train).push_back(i);
  }
  return split;
}

}  // namespace

Split SplitBySeed(int64_t n, double fraction, uint64_t seed) {
  CheckFraction("SplitBySeed", fraction);
  const auto order = Permutation(StreamKey(seed, "split"), 0, n);
  const int64_t count =
      static_cast<int64_t>(std::floor(static_cast<double>(n) * fraction + 0.5));
  std::vector<bool> held_out(n);
  for (int64_t i = 0; i < count; ++i) held_out[order[i]] = true;
  return SplitWhere(n, [&](int64_t i) { return held_out[i]; });
}

Split SplitByHash(int64_t n, absl::FunctionRef<absl::string_view(int64_t)> key,
                  double fraction, uint64_t seed) {
  CheckFraction("SplitByHash", fraction);
  return SplitWhere(
      n, [&](int64_t i) { return HeldOutByHash(key(i), fraction, seed); });
}

bool HeldOutByHash(absl::string_view key, double fraction, uint64_t seed) {
  CheckFraction("HeldOutByHash", fraction);
  // The upper 53 bits, which a double holds exactly.
  const uint64_t hash = StreamKey(seed, std::string(key)) >> 11;
  return static_cast<double>(hash) < fraction * 0x1p53;
}

}  // namespace wengert::train
