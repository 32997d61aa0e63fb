#include "examples/word_to_symbol/beam_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tensor_testlib.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wengert {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kEnd = 2, kStart = 3;

// Probabilities of 0, 1 and the end behind each prefix, "" at first; behind
// others the end is certain.
class Tree {
 public:
  explicit Tree(std::map<std::string, std::vector<double>> children)
      : children_(std::move(children)) {}

  Tensor operator()(const std::vector<int64_t>& rows,
                    const std::vector<int64_t>& tokens) {
    std::vector<std::string> grown;
    std::vector<double> logs;
    for (size_t i = 0; i < rows.size(); ++i) {
      std::string prefix = prefixes_.at(rows[i]);
      if (tokens[i] == kStart) {
        EXPECT_EQ(prefix, "");
      } else {
        prefix += std::to_string(tokens[i]);
      }
      const auto found = children_.find(prefix);
      for (const double p : found == children_.end()
                                ? std::vector<double>{0, 0, 1}
                                : found->second) {
        logs.push_back(std::log(p));
      }
      grown.push_back(prefix);
    }
    prefixes_ = grown;
    widest = std::max(widest, rows.size());
    return Tensor::From({static_cast<int64_t>(rows.size()), 3}, logs);
  }

  std::vector<int64_t> Search(int64_t beam, int64_t max_length = 5) {
    prefixes_ = {""};
    const auto next = [this](const auto& rows, const auto& tokens) {
      return (*this)(rows, tokens);
    };
    return BeamSearch(
        next,
        {.beam = beam, .start = kStart, .end = kEnd, .max_length = max_length});
  }

  size_t widest = 0;

 private:
  std::map<std::string, std::vector<double>> children_;
  std::vector<std::string> prefixes_;
};

// The likelier beginning leads nowhere likely.
TEST(BeamSearchTest, ABeamSeesWhatGreedDoesNot) {
  Tree tree(
      {{"", {0.6, 0.4, 0}}, {"0", {0.4, 0.3, 0.3}}, {"1", {0.1, 0.9, 0}}});
  EXPECT_THAT(tree.Search(1), ElementsAre(0, 0));
  EXPECT_EQ(tree.widest, 1u);
  EXPECT_THAT(tree.Search(2), ElementsAre(1, 1));
  EXPECT_EQ(tree.widest, 2u);
  EXPECT_THAT(tree.Search(10), ElementsAre(1, 1));
}

TEST(BeamSearchTest, AnEarlyEndWinsWhereItIsLikelier) {
  Tree tree({{"", {0.55, 0, 0.45}}, {"0", {0.5, 0.5, 0}}});
  EXPECT_THAT(tree.Search(1), ElementsAre(0, 0));
  EXPECT_THAT(tree.Search(2), IsEmpty());
}

TEST(BeamSearchTest, StopsAtTheGreatestLength) {
  std::map<std::string, std::vector<double>> endless;
  for (std::string prefix; prefix.size() < 9; prefix += "1") {
    endless[prefix] = {0, 0.9, 0.1};
  }
  EXPECT_THAT(Tree(endless).Search(1, 3), ElementsAre(1, 1, 1));
  EXPECT_THAT(Tree(endless).Search(1, 0), IsEmpty());
  // It has ended on the way: 0.1 against 0.9 0.9 0.9 0.1.
  EXPECT_THAT(Tree(endless).Search(2, 3), IsEmpty());
  for (auto& [prefix, p] : endless) p = {0, 1, 0};
  EXPECT_THAT(Tree(endless).Search(2, 3), ElementsAre(1, 1, 1));
}

TEST(BeamSearchTest, TheFirstOfEqualOnesWins) {
  Tree tree({{"", {0.5, 0.5, 0}}, {"0", {0, 1, 0}}, {"1", {1, 0, 0}}});
  for (const int64_t beam : {1, 2, 3}) {
    EXPECT_THAT(tree.Search(beam), ElementsAre(0, 1));
  }
}

TEST(BeamSearchTest, RefusesNoBeam) {
  EXPECT_THAT(ErrorOf([] { Tree({}).Search(0); }),
              HasSubstr("BeamSearch: beam 0; wanted 1 or more"));
}

}  // namespace
}  // namespace wengert
