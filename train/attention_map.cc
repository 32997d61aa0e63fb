#include "train/attention_map.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "train/text_file.h"

namespace wengert::train {

std::vector<AttentionMap> SelfAttentionMaps(
    const std::string& sentence, const std::vector<std::string>& labels,
    absl::Span<const Tensor> weights) {
  const int64_t length = static_cast<int64_t>(labels.size());
  std::vector<AttentionMap> maps;
  for (const Tensor& w : weights) {
    if (w.rank() != 4 || w.dim(0) != 1 || w.dim(2) != length ||
        w.dim(3) != length) {
      throw Error(absl::StrCat("SelfAttentionMaps: weights ",
                               w.shape().ToString(), ", wanted [1, H, ", length,
                               ", ", length, "]"));
    }
    AttentionMap& map = maps.emplace_back();
    map.sentence = sentence;
    map.layer = absl::StrCat("layer ", maps.size() - 1);
    map.queries = map.keys = labels;
    const float* head = w.data<float>();
    for (int64_t h = 0; h < w.dim(1); ++h, head += length * length) {
      map.heads.emplace_back(head, head + length * length);
    }
  }
  return maps;
}

void CheckAttentionMap(const char* op, const AttentionMap& map) {
  const size_t rows = map.queries.size(), columns = map.keys.size();
  const auto refuse = [&](const std::string& what) {
    throw Error(absl::StrCat(op, ": attention of layer ", Quoted(map.layer),
                             " has ", what));
  };
  if (rows == 0 || columns == 0 || map.heads.empty()) {
    refuse(absl::StrCat(map.heads.size(), " heads of ", rows, " queries x ",
                        columns, " keys, wanted at least one of each"));
  }
  for (size_t h = 0; h < map.heads.size(); ++h) {
    if (map.heads[h].size() == rows * columns) continue;
    refuse(absl::StrCat(map.heads[h].size(), " weights in head ", h,
                        ", wanted ", rows, " queries x ", columns, " keys"));
  }
}

}  // namespace wengert::train
