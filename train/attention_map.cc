#include "train/attention_map.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "train/text_file.h"

namespace wengert::train {

std::vector<AttentionMap> AttentionMaps(const std::string& sentence,
                                        const std::vector<std::string>& queries,
                                        const std::vector<std::string>& keys,
                                        absl::Span<const Tensor> weights) {
  const int64_t rows = static_cast<int64_t>(queries.size());
  const int64_t columns = static_cast<int64_t>(keys.size());
  std::vector<AttentionMap> maps;
  for (const Tensor& w : weights) {
    if (w.rank() != 4 || w.dim(0) != 1 || w.dim(2) != rows ||
        w.dim(3) != columns) {
      throw Error(absl::StrCat("AttentionMaps: weights ", w.shape().ToString(),
                               ", wanted [1, H, ", rows, ", ", columns, "]"));
    }
    maps.push_back(
        {sentence, absl::StrCat("layer ", maps.size()), queries, keys, {}});
    const float* head = w.data<float>();
    for (int64_t h = 0; h < w.dim(1); ++h, head += rows * columns) {
      maps.back().heads.emplace_back(head, head + rows * columns);
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
