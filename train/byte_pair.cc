#include "train/byte_pair.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "train/text_file.h"

namespace wengert::train {

// Joins pairs, the earliest merge first, and of one merge's the leftmost. It
// remembers the words that it has seen.
class BytePairTokenizer::Encoder {
 public:
  explicit Encoder(const BytePairTokenizer& tokenizer)
      : byte_ids_(tokenizer.byte_ids_), merges_(tokenizer.merges_) {}

  void Append(absl::string_view word, std::vector<int64_t>& ids) {
    const auto [seen, is_new] = seen_.try_emplace(word);
    if (is_new) {
      const size_t begin = ids.size();
      Encode(word, ids);
      seen->second = {begin, ids.size()};
      return;
    }
    const auto [begin, end] = seen->second;
    for (size_t i = begin; i < end; ++i) ids.push_back(ids[i]);
  }

 private:
  struct Symbol {           // of a doubly linked list
    int32_t id;             // -1: joined to the one before
    int32_t before, after;  // -1: none
  };
  struct Candidate {
    Merge merge;
    int32_t at;  // the left symbol
    int32_t left, right;
    bool operator>(const Candidate& o) const {
      return std::tie(merge.rank, at) > std::tie(o.merge.rank, o.at);
    }
  };

  void Consider(int32_t at) {
    if (at < 0 || symbols_[at].after < 0) return;
    const int32_t left = symbols_[at].id;
    const int32_t right = symbols_[symbols_[at].after].id;
    const auto found = merges_.find(Pair(left, right));
    if (found == merges_.end()) return;
    queue_.push({found->second, at, left, right});
  }

  void Encode(absl::string_view word, std::vector<int64_t>& ids) {
    symbols_.clear();
    for (size_t i = 0; i < word.size(); ++i) {
      const auto at = static_cast<int32_t>(i);
      symbols_.push_back(
          {byte_ids_[static_cast<uint8_t>(word[i])], at - 1, at + 1});
    }
    symbols_.back().after = -1;
    for (size_t i = 0; i < word.size(); ++i) Consider(static_cast<int32_t>(i));
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      Symbol& left = symbols_[best.at];
      if (left.id != best.left || left.after < 0 ||
          symbols_[left.after].id != best.right) {
        continue;  // one of them has been joined to another
      }
      Symbol& right = symbols_[left.after];
      left.id = best.merge.id;
      left.after = right.after;
      right.id = -1;
      if (left.after >= 0) symbols_[left.after].before = best.at;
      Consider(left.before);
      Consider(best.at);
    }
    for (int32_t at = 0; at >= 0; at = symbols_[at].after) {
      ids.push_back(symbols_[at].id);
    }
  }

  const std::array<int32_t, 256>& byte_ids_;
  const absl::flat_hash_map<uint64_t, Merge>& merges_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
  absl::flat_hash_map<absl::string_view, std::pair<size_t, size_t>> seen_;
};

absl::StatusOr<std::vector<int64_t>> BytePairTokenizer::Encode(
    absl::string_view text) const {
  std::vector<int64_t> ids;
  if (merges_.empty()) {
    for (const char c : text) ids.push_back(byte_ids_[static_cast<uint8_t>(c)]);
    return ids;
  }
  Encoder encoder(*this);
  for (const absl::string_view word : SplitForBytePairs(text)) {
    encoder.Append(word, ids);
  }
  return ids;
}

absl::StatusOr<BytePairTokenizer> BytePairTokenizer::FromParts(
    const internal::TokenizerParts& parts) {
  BytePairTokenizer tokenizer;
  for (const auto& [text, special] : parts.tokens) {
    const absl::Status status = tokenizer.Add(text, special);
    if (!status.ok()) return status;
  }
  const auto id_of = [&](const std::string& bytes) -> int32_t {
    const auto id = tokenizer.Id(bytes);
    return id.ok() && !tokenizer.IsSpecial(*id) ? static_cast<int32_t>(*id)
                                                : -1;
  };
  for (int byte = 0; byte < 256; ++byte) {
    tokenizer.byte_ids_[byte] = id_of(std::string(1, static_cast<char>(byte)));
    if (tokenizer.byte_ids_[byte] < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the byte 0x", absl::Hex(byte, absl::kZeroPad2), " has no token"));
    }
  }
  for (size_t i = 0; i < parts.merges.size(); ++i) {
    const auto& [left, right] = parts.merges[i];
    const int32_t l = id_of(left), r = id_of(right);
    const int32_t joined = id_of(absl::StrCat(left, right));
    if (l < 0 || r < 0 || joined < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("merge ", i, " is of ", Quoted(left), " and ",
                       Quoted(right), "; wanted tokens that make a token"));
    }
    const Merge merge = {static_cast<int32_t>(i), joined};
    if (!tokenizer.merges_.try_emplace(Pair(l, r), merge).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("merge ", i, ", of ", Quoted(left), " and ",
                       Quoted(right), ", stands twice"));
    }
  }
  return tokenizer;
}

absl::StatusOr<BytePairTokenizer> BytePairTokenizer::Bytes(
    const std::vector<std::string>& special_tokens) {
  return Train(
      {}, {.vocabulary_size = 256 + static_cast<int64_t>(special_tokens.size()),
           .special_tokens = special_tokens});
}

absl::Status BytePairTokenizer::Save(const std::string& path) const {
  internal::TokenizerParts parts;
  std::vector<std::pair<int32_t, uint64_t>> order;
  for (const auto& [pair, merge] : merges_) order.push_back({merge.rank, pair});
  std::sort(order.begin(), order.end());
  for (const auto& [rank, pair] : order) {
    parts.merges.emplace_back(Token(static_cast<int64_t>(pair >> 32)),
                              Token(static_cast<int64_t>(pair & 0xFFFFFFFF)));
  }
  return SaveParts(path, std::move(parts));
}

}  // namespace wengert::train
