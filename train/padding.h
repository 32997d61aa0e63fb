// Rows of several lengths as one array.
#ifndef WENGERT_TRAIN_PADDING_H_
#define WENGERT_TRAIN_PADDING_H_

#include <cstdint>

#include "absl/types/span.h"
#include "autograd/tensor.h"

namespace wengert::train {

struct PaddedRows {
  Tensor ids;       // int64 [B, T], T the length of the longest row
  Tensor key_mask;  // bool [B, T]: true where a token stands
};

// Each row's ids with pad_id behind them. The ids of targets padded with a
// loss's ignore_index are its labels:
//
//   const auto x = PadRows(sources, 0);
//   const Tensor labels = PadRows(targets, -100).ids;
//   CrossEntropy(model(x.ids, x.key_mask), labels, {.ignore_index = -100});
//
// Throws Error if there are no rows or all are empty.
PaddedRows PadRows(absl::Span<const absl::Span<const int64_t>> rows,
                   int64_t pad_id);

}  // namespace wengert::train

#endif  // WENGERT_TRAIN_PADDING_H_
