// Reductions, scans and sorting beside PyTorch's values and gradients.
#include <string>
#include <utility>
#include <vector>

#include "autograd/ops/ops_testlib.h"
#include "autograd/ops/reference_testlib.h"

namespace wengert {
namespace {

using Case = std::pair<std::string, std::function<Tensor(const Tensor&)>>;

// As CASES in testdata/make_reduce_reference.py.
std::vector<Case> Cases() {
  const ReduceOptions kept{.keep_dims = true};
  const VarOptions population{.correction = 0};
  using T = const Tensor&;
  return {
      {"min_all", [](T x) { return Min(x); }},
      {"min_1", [](T x) { return Min(x, 1); }},
      {"min_02",
       [](T x) {
         return Min(x, Axes{0, 2});
       }},
      {"max_1_kept", [=](T x) { return Max(x, 1, kept); }},
      {"prod_all", [](T x) { return Prod(x); }},
      {"prod_1", [](T x) { return Prod(x, 1); }},
      {"prod_zeros", [](T x) { return Prod(x, 1); }},
      {"var_all", [](T x) { return Var(x); }},
      {"var_1", [](T x) { return Var(x, 1); }},
      {"var_02_kept",
       [](T x) {
         return Var(x, {0, 2}, {.keep_dims = true});
       }},
      {"var_population", [=](T x) { return Var(x, -1, population); }},
      {"std_all", [](T x) { return Std(x); }},
      {"std_0", [](T x) { return Std(x, 0); }},
      {"std_12",
       [=](T x) {
         return Std(x, Axes{1, 2}, population);
       }},
      {"norm_2", [](T x) { return Norm(x); }},
      {"norm_2_axis", [](T x) { return Norm(x, 2, -1); }},
      {"norm_2_axes",
       [=](T x) {
         return Norm(x, 2, Axes{0, 2}, kept);
       }},
      {"norm_1", [](T x) { return Norm(x, 1, 1); }},
      {"norm_3.5", [](T x) { return Norm(x, 3.5, 0); }},
      {"norm_0.5", [](T x) { return Norm(x, 0.5, -1); }},
      {"norm_-1", [](T x) { return Norm(x, -1, 1); }},
      {"norm_-2.5",
       [](T x) {
         return Norm(x, -2.5, Axes{0, 1});
       }},
      {"norm_0", [](T x) { return Norm(x, 0, 1); }},
      {"norm_inf", [](T x) { return Norm(x, kInf, 1); }},
      {"norm_-inf",
       [](T x) {
         return Norm(x, -kInf, Axes{0, 2});
       }},
      {"norm_of_zeros", [](T x) { return Norm(x, 2, -1); }},
      {"norm_1_zeros", [](T x) { return Norm(x, 1, -1); }},
      {"norm_1.5_zeros", [](T x) { return Norm(x, 1.5, -1); }},
      {"logsumexp_02",
       [](T x) {
         return LogSumExp(x, Axes{0, 2});
       }},
      {"cumsum_1", [](T x) { return CumSum(x, 1); }},
      {"cumsum_last", [](T x) { return CumSum(x, -1); }},
      {"cumprod_1", [](T x) { return CumProd(x, 1); }},
      {"cumprod_zeros", [](T x) { return CumProd(x, -1); }},
      {"sort_1", [](T x) { return Sort(x, 1).values; }},
      {"sort_down",
       [](T x) { return Sort(x, -1, {.descending = true}).values; }},
      {"topk_2", [](T x) { return TopK(x, 2).values; }},
      {"topk_smallest",
       [](T x) { return TopK(x, 1, 0, {.largest = false}).values; }},
      {"topk_long", [](T x) { return TopK(x, 3).values; }},
  };
}

TEST(ReduceReferenceTest, AgreesWithPyTorch) {
  const TensorMap all = ReadReference("reduce_reference.txt");
  EXPECT_EQ(all.size(), 4 * Cases().size());
  for (const auto& [name, f] : Cases()) {
    SCOPED_TRACE(name);
    for (bool recorded : {false, true}) {
      const auto got =
          Differentiate([f = f](Inputs x) { return f(x[0]); },
                        {all.at(name + ".x")}, all.at(name + ".dy"), recorded);
      ExpectClose(got.value, all.at(name + ".y"), 1e-14, "value");
      ExpectClose(got.gradients[0], all.at(name + ".dx"), 1e-13, "gradient");
    }
  }
}

}  // namespace
}  // namespace wengert
