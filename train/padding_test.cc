#include "train/padding.h"

#include <vector>

#include "autograd/tensor_testlib.h"
#include "gtest/gtest.h"

namespace wengert::train {
namespace {

TEST(PadRows, PutsPaddingBehindEachRow) {
  const std::vector<std::vector<int64_t>> rows = {{3, 1, 2}, {}, {7}};
  const PaddedRows padded = PadRows(
      3, [&](int64_t i) { return absl::MakeConstSpan(rows[i]); }, -100);
  EXPECT_TRUE(SameBits(
      padded.ids, Tensor::Of<int64_t>({3, 3}, {3, 1, 2, -100, -100, -100,  //
                                               7, -100, -100})));
  EXPECT_TRUE(SameBits(
      padded.key_mask,
      Tensor::Of<bool>({3, 3}, {true, true, true, false, false, false,  //
                                true, false, false})));
}

TEST(PadRows, RefusesABatchWithoutTokens) {
  const auto empty = [](int64_t) { return absl::Span<const int64_t>(); };
  EXPECT_EQ(ErrorOf([&] { PadRows(0, empty, 0); }),
            "PadRows: 0 rows, wanted one with a token");
  EXPECT_EQ(ErrorOf([&] { PadRows(2, empty, 0); }),
            "PadRows: 2 rows, wanted one with a token");
}

}  // namespace
}  // namespace wengert::train
