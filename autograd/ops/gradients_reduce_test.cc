// The gradient checks of reductions.
#include "autograd/ops/gradients_testlib.h"

namespace wengert {
namespace {

// With zeros: two in the first row, one in the second, where there are so many
// elements; the first row is then 0 whatever one of them does.
Tensor WithZeros(const Tensor& x) {
  std::vector<bool> zero(x.size());
  for (size_t i : {1, 2, 6}) {
    if (i < zero.size()) zero[i] = true;
  }
  return MaskedFill(x, Tensor::From(x.shape(), zero), 0);
}

std::vector<Case> Extremes() {
  return {
      {"MinAll", [](X x) { return Min(x[0]); }, kCube},
      {"MinMiddle", [](X x) { return Min(x[0], 1); }, kCube},
      {"MinKept",
       [](X x) {
         return Min(x[0], {0, 2}, {true});
       },
       kCube},
      {"MinOfEmptyRows", [](X x) { return Min(x[0], -1); }, {{{0, 3}}}},
  };
}

std::vector<Case> Products() {
  std::vector<Case> table;
  const auto add = [&](const std::string& name, const Axes& axes,
                       ReduceOptions options = {}) {
    table.push_back({name, [=](X x) { return Prod(x[0], axes, options); },
                     kCubeOrEmpty, -2, 2,
                     [=](X x) { return ProdComposed(x[0], axes, options); }});
  };
  add("ProdAll", {});
  add("ProdLast", -1);
  add("ProdFirst", 0);
  add("ProdMiddleKept", 1, {true});
  add("ProdOuter", {0, 2});
  table.push_back({"ProdWithZeros",
                   [](X x) { return Prod(WithZeros(x[0]), -1); },
                   {{{4, 5}}, {{3}}, {{2, 2}}},
                   -2,
                   2,
                   [](X x) { return ProdComposed(WithZeros(x[0]), -1); }});
  table.push_back({"ProdOfLongRows",
                   [](X x) { return Prod(x[0], -1); },
                   {{{9, 17}}, {{1, 33}}},
                   -2,
                   2,
                   [](X x) { return ProdComposed(x[0], -1); }});
  return table;
}

std::vector<Case> Deviations() {
  std::vector<Case> table;
  const auto add = [&](const std::string& name, const Axes& axes,
                       VarOptions options, const Sizes& sizes) {
    table.push_back({"Var" + name,
                     [=](X x) { return Var(x[0], axes, options); }, sizes, -2,
                     2, [=](X x) { return VarComposed(x[0], axes, options); }});
    table.push_back({"Std" + name,
                     [=](X x) { return Std(x[0], axes, options); }, sizes, -2,
                     2, [=](X x) { return StdComposed(x[0], axes, options); }});
  };
  const Sizes several = {{{2, 3, 4}}, {{3, 5, 2}}, {{2, 17, 3}}};
  add("All", {}, {}, several);
  add("Last", -1, {}, several);
  add("First", 0, {}, several);
  add("Middle", 1, {.keep_dims = true}, several);
  add("Outer", {0, 2}, {.correction = 0}, several);
  add("Population", -1, {.correction = 0}, kCube);
  add("HalfCorrected", {0, 1}, {.correction = 0.5}, kCube);
  add("OfEmptyRows", -1, {}, {{{0, 3}}});
  return table;
}

std::vector<Case> Norms() {
  std::vector<Case> table;
  const auto add = [&](const std::string& name, double p, const Axes& axes = {},
                       ReduceOptions options = {},
                       const Sizes& sizes = kCubeOrEmpty) {
    table.push_back(
        {"Norm" + name, [=](X x) { return Norm(x[0], p, axes, options); },
         sizes, -2, 2,
         [=](X x) { return NormComposed(x[0], p, axes, options); }});
  };
  add("All", 2);
  add("Last", 2, -1);
  add("First", 2, 0);
  add("MiddleKept", 2, 1, {true});
  add("Outer", 2, {0, 2});
  add("One", 1, 1);
  add("OneAndAHalf", 1.5, {0, 1});
  add("Three", 3, -1);
  add("ThreeAndAHalf", 3.5, 0);
  add("Half", 0.5, 1, {true}, kCube);
  add("MinusOne", -1, -1, {}, kCube);
  add("MinusTwoAndAHalf", -2.5, {0, 2}, {}, kCube);
  add("Infinite", HUGE_VAL, -1);
  add("MinusInfinite", -HUGE_VAL, {0, 2}, {true}, kCube);
  add("Count", 0, 1);
  return table;
}

std::vector<Case> Table() {
  std::vector<Case> table = {
      {"SumAll", [](X x) { return Sum(x[0]); }, kCubeOrEmpty},
      {"SumLast", [](X x) { return Sum(x[0], -1); }, kCubeOrEmpty},
      {"SumFirst", [](X x) { return Sum(x[0], 0); }, kCubeOrEmpty},
      {"SumOuter",
       [](X x) {
         return Sum(x[0], {2, 0});
       },
       kCubeOrEmpty},
      {"SumKept", [](X x) { return Sum(x[0], 1, {.keep_dims = true}); },
       kCubeOrEmpty},
      {"MeanAll", [](X x) { return Mean(x[0]); }, kCube},
      {"MeanKept",
       [](X x) {
         return Mean(x[0], {0, 1}, {true});
       },
       kCube},
      {"MaxAll", [](X x) { return Max(x[0]); }, kCube},
      {"MaxMiddle", [](X x) { return Max(x[0], 1); }, kCube},
      {"MaxKept",
       [](X x) {
         return Max(x[0], {0, 2}, {true});
       },
       kCube},
      {"MaxOfEmptyRows", [](X x) { return Max(x[0], -1); }, {{{0, 3}}}},
      {"LogSumExpAll", [](X x) { return LogSumExp(x[0]); }, kCube},
      {"LogSumExpLast", [](X x) { return LogSumExp(x[0], -1); }, kCube},
      {"LogSumExpKept",
       [](X x) {
         return LogSumExp(x[0], {0, 1}, {true});
       },
       kCube},
      {"SumTo",
       [](X x) {
         return SumTo(x[0], {3, 1});
       },
       {{{2, 3, 4}}, {{3, 1}}, {{0, 3, 2}}}},
      {"BroadcastTo",
       [](X x) {
         return BroadcastTo(x[0], {2, 3, 4});
       },
       {{{3, 1}}, {{}}, {{2, 3, 4}}, {{1, 1, 4}}}},
  };
  for (const auto& more : {Extremes(), Products(), Deviations(), Norms()}) {
    table.insert(table.end(), more.begin(), more.end());
  }
  return table;
}

INSTANTIATE_TEST_SUITE_P(Reduce, GradientsTest, testing::ValuesIn(Table()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Reduce, FusedTest, testing::ValuesIn(Fused(Table())),
                         NameOf);

}  // namespace
}  // namespace wengert
