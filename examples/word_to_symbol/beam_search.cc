#include "examples/word_to_symbol/beam_search.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"

namespace wengert {
namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

struct Hypothesis {
  std::vector<int64_t> tokens;
  double score = kLowest;
};

// One more token behind a hypothesis.
struct Candidate {
  double score;
  int64_t row, token;
};

// The `beam` best, the best first.
std::vector<Candidate> Best(const std::vector<Hypothesis>& live,
                            const Tensor& log_probabilities, int64_t beam) {
  const std::vector<double> p = log_probabilities.ToVector();
  const auto n_tokens = static_cast<int64_t>(p.size() / live.size());
  std::vector<Candidate> all;
  for (size_t i = 0; i < p.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / n_tokens;
    all.push_back(
        {live[row].score + p[i], row, static_cast<int64_t>(i) % n_tokens});
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.score > b.score;
  });
  all.resize(std::min<size_t>(all.size(), beam));
  return all;
}

}  // namespace

std::vector<int64_t> BeamSearch(NextTokens next, const BeamOptions& o) {
  if (o.beam < 1) {
    throw Error(
        absl::StrCat("BeamSearch: beam ", o.beam, "; wanted 1 or more"));
  }
  std::vector<Hypothesis> live = {{{}, 0}};
  std::vector<int64_t> rows = {0}, tokens = {o.start};
  Hypothesis best;
  // Scores only fall, so that no hypothesis below the best finished one can
  // still win.
  while (!live.empty() && live[0].score > best.score) {
    const bool full =
        static_cast<int64_t>(live[0].tokens.size()) == o.max_length;
    std::vector<Hypothesis> grown;
    const std::vector<Candidate> candidates =
        Best(live, next(rows, tokens), o.beam);
    rows.clear();
    tokens.clear();
    for (const Candidate& c : candidates) {
      if (c.token == o.end) {
        if (c.score > best.score) best = {live[c.row].tokens, c.score};
      } else if (!full) {
        grown.push_back({live[c.row].tokens, c.score});
        grown.back().tokens.push_back(c.token);
        rows.push_back(c.row);
        tokens.push_back(c.token);
      }
    }
    if (full && best.score == kLowest) return live[0].tokens;
    live = std::move(grown);
  }
  return best.tokens;
}

}  // namespace wengert
