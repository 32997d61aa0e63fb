#include "train/attention_map.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"
#include "train/text_file.h"

namespace wengert::train {

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
