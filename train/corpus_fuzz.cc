// Any text is a corpus or an error with its place. A corpus that is written
// down again is the same, and encodes by a vocabulary of its own words.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "train/corpus.h"
#include "train/place_fuzz.h"

namespace wengert::train {
namespace {

std::vector<SentencePair> Again(const std::vector<SentencePair>& pairs) {
  std::string text = "#\n";  // a first line may begin with a byte-order mark
  for (const SentencePair& pair : pairs) {
    absl::StrAppend(&text, pair.source, "\t", pair.target, "\r\n");
  }
  const auto again = ParsePairs(text, "again");
  if (!again.ok()) abort();
  return *again;
}

void Check(absl::string_view text) {
  const auto pairs = ParsePairs(text, "input");
  if (!pairs.ok()) return CheckPlace(pairs.status(), "input", text);
  const auto again = Again(*pairs);
  if (again.size() != pairs->size()) abort();
  std::set<std::string> words;
  for (size_t i = 0; i < again.size(); ++i) {
    const auto& [source, target, line] = (*pairs)[i];
    if (again[i].source != source || again[i].target != target) abort();
    for (const auto word : SplitWords(source)) words.emplace(word);
    for (const auto word : SplitWords(target)) words.emplace(word);
  }

  const auto few = *Vocabulary::FromWords({"one", "is", "1", "="});
  const auto encoded = EncodePairs("input", *pairs, few, few);
  if (!encoded.ok()) CheckPlace(encoded.status(), "input", text);
  const auto own = Vocabulary::FromWords({words.begin(), words.end()});
  if (!own.ok()) abort();
  const auto ids = EncodePairs("input", *pairs, *own, *own);
  if (!ids.ok() || ids->size() != pairs->size()) abort();
  for (size_t i = 0; i < ids->size(); ++i) {
    if (own->Decode((*ids)[i].target) !=
        absl::StrJoin(SplitWords((*pairs)[i].target), " ")) {
      abort();
    }
  }
}

}  // namespace
}  // namespace wengert::train

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  wengert::train::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
