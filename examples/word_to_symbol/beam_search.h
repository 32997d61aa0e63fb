// Finds a probable sequence from a model that gives its tokens one at a time.
#ifndef WENGERT_EXAMPLES_WORD_TO_SYMBOL_BEAM_SEARCH_H_
#define WENGERT_EXAMPLES_WORD_TO_SYMBOL_BEAM_SEARCH_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "autograd/tensor.h"

namespace wengert {

struct BeamOptions {
  int64_t beam = 1;            // hypotheses that go on at a time; 1 is greedy
  int64_t start = 0, end = 0;  // tokens
  int64_t max_length = 0;      // of a result, which has neither of the two
};

// The log probabilities [n, tokens] of what follows n hypotheses: hypothesis i
// is hypothesis rows[i] of the call before with tokens[i] behind it. The first
// call has row 0 and the start.
using NextTokens = absl::FunctionRef<Tensor(
    const std::vector<int64_t>& rows, const std::vector<int64_t>& tokens)>;

// The sequence with the highest sum of log probabilities, its end's with it,
// among those that reach their end with `beam` hypotheses kept at each step;
// where none does, the best of max_length tokens. Sums are not divided by the
// length. Of equal ones the first hypothesis' and the lowest token win. Throws
// Error unless beam >= 1.
std::vector<int64_t> BeamSearch(NextTokens next, const BeamOptions& options);

}  // namespace wengert

#endif  // WENGERT_EXAMPLES_WORD_TO_SYMBOL_BEAM_SEARCH_H_
