// The gradient checks of reading and writing by index.
#include "autograd/ops/gradients_testlib.h"

namespace wengert {
namespace {

// Below 3, in no order, with repetitions.
Tensor Ids(const Shape& shape, DType dtype = DType::kInt64) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.size(); ++i) {
    values.push_back(static_cast<double>(i * 7 % 5 % 3));
  }
  return Tensor::From(shape, values).To(dtype);
}

// 3 lists of ids for arrays [3, 4, ..].
const std::vector<Tensor>& Places() {
  static const auto& places = *new std::vector<Tensor>{
      Tensor::Of<int32_t>({3, 1}, {2, 0, 2}), Tensor::Of<int64_t>({2}, {3, 1})};
  return places;
}

std::vector<Case> Table() {
  return {
      {"IndexSelect",
       [](X x) { return IndexSelect(x[0], 0, Ids({5})); },
       {{{3, 4}}, {{5}}, {{3, 2, 2}}, {{4, 0}}, {{3, 17}}}},
      {"IndexSelectLast",
       [](X x) { return IndexSelect(x[0], -1, Ids({5}, DType::kInt32)); },
       {{{2, 3}}, {{4}}, {{2, 2, 3}}, {{0, 3}}}},
      {"IndexSelectMiddle",
       [](X x) { return IndexSelect(x[0], 1, Ids({70})); },
       {{{2, 3, 4}}, {{1, 4, 1}}}},
      {"IndexSelectNone",
       [](X x) { return IndexSelect(x[0], 0, Ids({0})); },
       {{{3, 4}}, {{0, 2}}}},
      {"TakeAlongAxis",
       [](X x) {
         return TakeAlongAxis(x[0], Ids({2, 5}), 1);
       },
       {{{2, 3}}, {{2, 4}}, {{1, 3}}}},
      {"TakeAlongFirst",
       [](X x) {
         return TakeAlongAxis(x[0], Ids({2, 1, 3}, DType::kInt32), 0);
       },
       {{{3, 2, 3}}, {{4, 1, 1}}, {{3, 4, 3}}}},
      {"TakeAlongMany",
       [](X x) {
         return TakeAlongAxis(x[0], Ids({2, 80, 3}), 1);
       },
       {{{2, 3, 3}}}},
      {"ScatterAdd",
       [](X x) {
         return ScatterAdd(x[0], 1, Ids({2, 5}), x[1]);
       },
       {{{2, 3}, {2, 5}}, {{2, 5}, {2, 5}}}},
      {"ScatterAddFirst",
       [](X x) {
         return ScatterAdd(x[0], 0, Ids({80, 2}, DType::kInt32), x[1]);
       },
       {{{3, 2}, {80, 2}}}},
      {"ScatterAddNone",
       [](X x) {
         return ScatterAdd(x[0], 0, Ids({0, 2}), x[1]);
       },
       {{{3, 2}, {0, 2}}}},
      {"IndexPut",
       [](X x) { return IndexPut(x[0], Places(), x[1]); },
       {{{3, 4}, {3, 2}}, {{3, 4}, {}}, {{3, 4, 2}, {2, 2}}, {{3, 4, 0}, {0}}}},
      {"IndexPutFirst",
       [](X x) { return IndexPut(x[0], {Ids({4})}, x[1]); },
       {{{3, 4}, {4, 4}}, {{4}, {4}}, {{3, 2}, {1}}}},
      {"IndexPutAccumulate",
       [](X x) { return IndexPut(x[0], Places(), x[1], {.accumulate = true}); },
       {{{3, 4}, {3, 2}}, {{3, 4}, {}}, {{3, 4, 2}, {2, 2}}, {{3, 4, 0}, {0}}}},
  };
}

INSTANTIATE_TEST_SUITE_P(Index, GradientsTest, testing::ValuesIn(Table()),
                         NameOf);

}  // namespace
}  // namespace wengert
