#include "train/padding.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "autograd/error.h"

namespace wengert::train {

PaddedRows PadRows(int64_t n,
                   absl::FunctionRef<absl::Span<const int64_t>(int64_t)> row,
                   int64_t pad_id) {
  size_t length = 0;
  for (int64_t i = 0; i < n; ++i) length = std::max(length, row(i).size());
  if (length == 0) {
    throw Error(absl::StrCat("PadRows: ", n, " rows, wanted one with a token"));
  }
  const Shape shape{n, static_cast<int64_t>(length)};
  PaddedRows padded{Tensor::Empty(shape, DType::kInt64),
                    Tensor::Empty(shape, DType::kBool)};
  int64_t* ids = padded.ids.mutable_data<int64_t>();
  bool* mask = padded.key_mask.mutable_data<bool>();
  for (int64_t i = 0; i < n; ++i) {
    const absl::Span<const int64_t> tokens = row(i);
    std::fill(std::copy(tokens.begin(), tokens.end(), ids), ids + length,
              pad_id);
    std::fill(std::fill_n(mask, tokens.size(), true), mask + length, false);
    ids += length;
    mask += length;
  }
  return padded;
}

}  // namespace wengert::train
