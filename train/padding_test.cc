#include "train/padding.h"

#include <vector>

#include "autograd/tensor_testlib.h"
#include "gtest/gtest.h"

namespace wengert::train {
namespace {

TEST(PadRows, PutsPaddingBehindEachRow) {
  const std::vector<int64_t> a = {3, 1, 2}, b, c = {7};
  const PaddedRows padded = PadRows({a, b, c}, -100);
  EXPECT_TRUE(SameBits(
      padded.ids, Tensor::Of<int64_t>({3, 3}, {3, 1, 2, -100, -100, -100,  //
                                               7, -100, -100})));
  EXPECT_TRUE(SameBits(
      padded.key_mask,
      Tensor::Of<bool>({3, 3}, {true, true, true, false, false, false,  //
                                true, false, false})));
}

TEST(PadRows, RefusesABatchWithoutTokens) {
  EXPECT_EQ(ErrorOf([] { PadRows({}, 0); }),
            "PadRows: 0 rows, wanted one with a token");
  EXPECT_EQ(ErrorOf([] {
              PadRows({{}, {}}, 0);
            }),
            "PadRows: 2 rows, wanted one with a token");
}

}  // namespace
}  // namespace wengert::train
