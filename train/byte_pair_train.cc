// Training of byte-pair encoding: counts of pairs that are kept up to date, and
// a heap that finds the most frequent.
#include <algorithm>
#include <limits>
#include <queue>

#include "absl/strings/str_cat.h"
#include "train/byte_pair.h"

namespace wengert::train {

class BytePairTokenizer::Trainer {
 public:
  Trainer(BytePairTokenizer& tokenizer, int64_t min_count)
      : tokenizer_(tokenizer), min_count_(min_count) {}

  void AddText(absl::string_view text) {
    for (const absl::string_view word : SplitForBytePairs(text)) {
      const auto [found, is_new] =
          index_.try_emplace(word, static_cast<int32_t>(words_.size()));
      if (is_new) {
        words_.emplace_back();
        for (const char c : word) {
          words_.back().symbols.push_back(static_cast<uint8_t>(c));
        }
      }
      ++words_[found->second].count;
    }
  }

  // Merges until there are `size` tokens.
  absl::Status Run(int64_t size) {
    for (size_t i = 0; i < words_.size(); ++i) {
      const Word& word = words_[i];
      for (size_t k = 1; k < word.symbols.size(); ++k) {
        PairInfo& info = pairs_[Pair(word.symbols[k - 1], word.symbols[k])];
        info.count += word.count;
        info.words.push_back(static_cast<int32_t>(i));
      }
    }
    for (const auto& [pair, info] : pairs_) Push(pair, info.count);
    while (tokenizer_.size() < size && !heap_.empty()) {
      const Candidate best = heap_.top();
      heap_.pop();
      const int64_t count = pairs_[best.pair].count;
      if (count == best.count) {
        const absl::Status status = Merge(best.pair);
        if (!status.ok()) return status;
      } else if (count < best.count) {
        Push(best.pair, count);  // it has become rarer since
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Word {
    std::vector<int32_t> symbols;
    int64_t count = 0;
  };
  struct PairInfo {
    int64_t count = 0;
    std::vector<int32_t> words;  // where it is or was, some more than once
  };
  struct Candidate {
    int64_t count;
    uint64_t pair;
    bool operator<(const Candidate& o) const {
      return count != o.count ? count < o.count : pair > o.pair;
    }
  };

  void Push(uint64_t pair, int64_t count) {
    if (count >= min_count_) heap_.push({count, pair});
  }

  absl::Status Merge(uint64_t pair) {
    const auto left = static_cast<int32_t>(pair >> 32);
    const auto right = static_cast<int32_t>(pair & 0xFFFFFFFF);
    const std::string joined =
        absl::StrCat(tokenizer_.Token(left), tokenizer_.Token(right));
    // Other merges may have made the same bytes: then it is the same token.
    auto id = tokenizer_.Id(joined);
    if (!id.ok()) {
      id = tokenizer_.size();
      const absl::Status status = tokenizer_.Add(joined);
      if (!status.ok()) return status;
    }
    const auto token = static_cast<int32_t>(*id);
    tokenizer_.merges_.try_emplace(
        pair, BytePairTokenizer::Merge{
                  static_cast<int32_t>(tokenizer_.merges_.size()), token});
    std::vector<int32_t> words = std::move(pairs_[pair].words);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::vector<uint64_t> changed;
    for (const int32_t i : words) Replace(i, left, right, token, changed);
    std::sort(changed.begin(), changed.end());
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    for (const uint64_t p : changed) Push(p, pairs_[p].count);
    return absl::OkStatus();
  }

  // Joins the pair in a word; lists the pairs that are new there.
  void Replace(int32_t index, int32_t left, int32_t right, int32_t token,
               std::vector<uint64_t>& changed) {
    Word& word = words_[index];
    std::vector<int32_t>& x = word.symbols;
    joined_.clear();
    for (size_t k = 0; k < x.size(); ++k) {
      const bool join = k + 1 < x.size() && x[k] == left && x[k + 1] == right;
      joined_.push_back(join ? token : x[k]);
      k += join;
    }
    if (joined_.size() == x.size()) return;
    for (size_t k = 1; k < x.size(); ++k) {
      pairs_[Pair(x[k - 1], x[k])].count -= word.count;
    }
    x = joined_;
    for (size_t k = 1; k < x.size(); ++k) {
      const uint64_t pair = Pair(x[k - 1], x[k]);
      PairInfo& info = pairs_[pair];
      info.count += word.count;
      if (x[k - 1] != token && x[k] != token) continue;
      info.words.push_back(index);
      changed.push_back(pair);
    }
  }

  BytePairTokenizer& tokenizer_;
  const int64_t min_count_;
  absl::flat_hash_map<absl::string_view, int32_t> index_;  // of words_
  std::vector<Word> words_;
  absl::flat_hash_map<uint64_t, PairInfo> pairs_;
  std::priority_queue<Candidate> heap_;
  std::vector<int32_t> joined_;
};

absl::StatusOr<BytePairTokenizer> BytePairTokenizer::Train(
    absl::Span<const absl::string_view> texts, const BytePairOptions& options) {
  const auto n_special = static_cast<int64_t>(options.special_tokens.size());
  const int64_t size = options.vocabulary_size - n_special;
  if (size < 256 || size > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "byte pairs: a vocabulary of ", options.vocabulary_size,
        "; wanted at least the 256 bytes and ", n_special, " special tokens"));
  }
  BytePairTokenizer tokenizer;
  for (int byte = 0; byte < 256; ++byte) {
    tokenizer.byte_ids_[byte] = byte;
    const absl::Status status =
        tokenizer.Add(std::string(1, static_cast<char>(byte)));
    if (!status.ok()) return status;
  }
  Trainer trainer(tokenizer, std::max<int64_t>(options.min_count, 1));
  for (const absl::string_view text : texts) trainer.AddText(text);
  absl::Status status = trainer.Run(size);
  if (status.ok()) status = tokenizer.AddSpecial(options.special_tokens);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("byte pairs: ", status.message()));
  }
  return tokenizer;
}

}  // namespace wengert::train
