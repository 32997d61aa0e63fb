// The gradient checks of linear algebra.
#include "autograd/ops/gradients_testlib.h"

namespace wengert {
namespace {

// A positive definite matrix of any x [..., n, m].
Tensor Positive(const Tensor& x) {
  return MatMul(x, x, {.transpose_b = true}) + Eye(x.dim(-2), -1, x.dtype());
}

// Far from singular, of any x [..., n, n]; nothing in it is 0.
Tensor WellConditioned(const Tensor& x) {
  return x + 5 * Eye(x.dim(-1), -1, x.dtype());
}

const Sizes kSystems = {
    {{3, 3}, {3, 2}},    {{2, 2}, {2, 2}},    {{1, 1}, {1, 1}},
    {{2, 3, 3}, {3, 1}}, {{3, 3}, {2, 3, 3}}, {{2, 1, 2, 2}, {3, 2, 2}},
    {{0, 0}, {0, 2}},    {{3, 3}, {3, 0}},    {{0, 2, 2}, {2, 2}}};
const Sizes kSystemsOfRows = {{{3, 3}, {2, 3}},    {{2, 2}, {2, 2}},
                              {{1, 1}, {1, 1}},    {{2, 3, 3}, {1, 3}},
                              {{3, 3}, {2, 3, 3}}, {{0, 0}, {2, 0}}};

Case Solve(const char* name, SolveTriangularOptions options) {
  return {.name = name,
          .f =
              [=](X x) {
                return SolveTriangular(WellConditioned(x[0]), x[1], options);
              },
          .sizes = options.left ? kSystems : kSystemsOfRows};
}

std::vector<Case> Table() {
  return {
      {.name = "Cholesky",
       .f = [](X x) { return Cholesky(Positive(x[0])); },
       .sizes = {{{3, 3}}, {{1, 1}}, {{2, 4, 2}}, {{0, 0}}, {{0, 2, 2}}},
       .float_error = 2e-5},
      {.name = "CholeskyUpper",
       .f = [](X x) { return Cholesky(Positive(x[0]), {.upper = true}); },
       .sizes = {{{3, 3}}, {{2, 1, 2, 2}}},
       .float_error = 2e-5},
      Solve("SolveLower", {}),
      Solve("SolveUpper", {.upper = true}),
      Solve("SolveLowerTransposed", {.transpose = true}),
      Solve("SolveUpperTransposed", {.upper = true, .transpose = true}),
      Solve("SolveUnitLower", {.unitriangular = true}),
      Solve("SolveUnitUpper", {.upper = true, .unitriangular = true}),
      Solve("SolveLowerRight", {.left = false}),
      Solve("SolveUpperRight", {.upper = true, .left = false}),
      Solve("SolveLowerRightTransposed", {.left = false, .transpose = true}),
      Solve("SolveUnitUpperRightTransposed", {.upper = true,
                                              .left = false,
                                              .unitriangular = true,
                                              .transpose = true}),
  };
}

INSTANTIATE_TEST_SUITE_P(Linalg, GradientsTest, testing::ValuesIn(Table()),
                         NameOf);

}  // namespace
}  // namespace wengert
