#include "train/padding.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"

namespace wengert::train {

PaddedRows PadRows(absl::Span<const absl::Span<const int64_t>> rows,
                   int64_t pad_id) {
  size_t length = 0;
  for (const auto row : rows) length = std::max(length, row.size());
  if (length == 0) {
    throw Error(absl::StrCat("PadRows: ", rows.size(),
                             " rows, wanted one with a token"));
  }
  const Shape shape{static_cast<int64_t>(rows.size()),
                    static_cast<int64_t>(length)};
  PaddedRows padded{Tensor::Empty(shape, DType::kInt64),
                    Tensor::Empty(shape, DType::kBool)};
  int64_t* ids = padded.ids.mutable_data<int64_t>();
  bool* mask = padded.key_mask.mutable_data<bool>();
  for (const auto row : rows) {
    std::fill(std::copy(row.begin(), row.end(), ids), ids + length, pad_id);
    std::fill(std::fill_n(mask, row.size(), true), mask + length, false);
    ids += length;
    mask += length;
  }
  return padded;
}

}  // namespace wengert::train
