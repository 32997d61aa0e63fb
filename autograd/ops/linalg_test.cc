// Cholesky factors and triangular systems.
#include "autograd/ops/ops_testlib.h"
#include "autograd/ops/reference_testlib.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

double ToleranceOf(DType dtype) {
  return dtype == DType::kFloat32 ? 2e-5 : 1e-12;
}

TEST(CholeskyTest, AgreesWithPyTorch) {
  const TensorMap all = ReadReference("linalg_reference.txt");
  for (bool upper : {false, true}) {
    const std::string name = absl::StrCat("cholesky", static_cast<int>(upper));
    for (DType dtype : kFloats) {
      const auto d = Differentiate(
          [&](Inputs x) { return Cholesky(x[0], {.upper = upper}); },
          {all.at(name + "/0").To(dtype)}, all.at(name + "/dy").To(dtype));
      const double tolerance = ToleranceOf(dtype);
      ExpectClose(d.value, all.at(name + "/result"), tolerance, name.c_str());
      ExpectClose(d.gradients[0], all.at(name + "/d0"), 10 * tolerance,
                  name.c_str());
    }
  }
}

TEST(SolveTriangularTest, AgreesWithPyTorch) {
  const TensorMap all = ReadReference("linalg_reference.txt");
  for (int i = 0; i < 8; ++i) {
    const bool upper = i & 4, left = i & 2, unit = i & 1;
    const std::string name =
        absl::StrCat("solve", static_cast<int>(upper), static_cast<int>(left),
                     static_cast<int>(unit));
    for (DType dtype : kFloats) {
      const Tensor a = all.at(name + "/0").To(dtype);
      const Tensor b = all.at(name + "/1").To(dtype);
      const Tensor dy = all.at(name + "/dy").To(dtype);
      // aᵀ in the other triangle is the same system.
      for (bool transpose : {false, true}) {
        const auto d = Differentiate(
            [&](Inputs x) {
              return SolveTriangular(transpose ? Transpose(x[0]) : x[0], x[1],
                                     {.upper = upper != transpose,
                                      .left = left,
                                      .unitriangular = unit,
                                      .transpose = transpose});
            },
            {a, b}, dy);
        const double tolerance = ToleranceOf(dtype);
        ExpectClose(d.value, all.at(name + "/result"), tolerance, name.c_str());
        for (int k : {0, 1}) {
          ExpectClose(d.gradients[k], all.at(absl::StrCat(name, "/d", k)),
                      tolerance, name.c_str());
        }
      }
    }
  }
}

TEST(CholeskyTest, ReadsTheLowerTriangleAlone) {
  for (DType dtype : kFloats) {
    const Tensor a = Values({2, 2}, {4, NAN, 2, 10}, dtype);
    EXPECT_THAT(Cholesky(a).ToVector(), ElementsAre(2, 0, 1, 3));
    EXPECT_THAT(Cholesky(a, {.upper = true}).ToVector(),
                ElementsAre(2, 1, 0, 3));
    EXPECT_THAT(a.ToVector()[0], 4);
  }
}

TEST(SolveTriangularTest, DoesNotReadTheOtherTriangle) {
  const Tensor b = Values({2, 1}, {4, 8});
  const Tensor lower = Values({2, 2}, {2, NAN, 1, 3});
  EXPECT_THAT(SolveTriangular(lower, b).ToVector(), ElementsAre(2, 2));
  const Tensor upper = Values({2, 2}, {2, 1, NAN, 4});
  EXPECT_THAT(SolveTriangular(upper, b, {.upper = true}).ToVector(),
              ElementsAre(1, 2));
  const Tensor unit = Values({2, 2}, {NAN, NAN, 1, NAN});
  EXPECT_THAT(SolveTriangular(unit, b, {.unitriangular = true}).ToVector(),
              ElementsAre(4, 4));
  const auto d = Differentiate(
      [](Inputs x) { return SolveTriangular(x[0], x[1]); }, {lower, b});
  EXPECT_EQ(d.gradients[0].ToVector()[1], 0);
  const Tensor singular = Values({1, 1}, {0});
  EXPECT_THAT(SolveTriangular(singular, Tensor::Ones({1, 1}, DType::kFloat64))
                  .ToVector(),
              ElementsAre(kInf));
}

TEST(CholeskyTest, Errors) {
  for (DType dtype : kFloats) {
    const Tensor a =
        Values({3, 1, 2, 2}, {1, 0, 0, 1, 1, 0, 2, 1, 0, 0, 0, 0}, dtype);
    EXPECT_EQ(ErrorOf([&] { Cholesky(a); }),
              absl::StrCat("Cholesky: matrix [1, 0] of ", Name(dtype),
                           " [3, 1, 2, 2] is not positive definite: its "
                           "leading minor of order 2 is not positive"));
    for (double bad : {0., -1., double{NAN}}) {
      EXPECT_THAT(ErrorOf([&] {
                    Cholesky(Values({1, 1}, {bad}, dtype));
                  }),
                  AllOf(StartsWith("Cholesky: matrix [] of "),
                        HasSubstr("order 1 is not positive")));
    }
    // A NaN that LAPACK passes on.
    EXPECT_THAT(ErrorOf([&] {
                  Cholesky(Values({2, 2}, {1, 0, NAN, 1}, dtype));
                }),
                HasSubstr("order 2 is not positive"));
  }
  EXPECT_EQ(ErrorOf([] {
              Cholesky(Tensor::Zeros({2, 3}));
            }),
            "Cholesky: float32 [2, 3]; wanted [..., n, n]");
  EXPECT_THAT(ErrorOf([] { Cholesky(Tensor::Zeros({3})); }),
              StartsWith("Cholesky: float32 [3]; wanted"));
  EXPECT_THAT(ErrorOf([] { Cholesky(Eye(2, -1, DType::kInt32)); }),
              StartsWith("Cholesky: got int32 [2, 2]; wanted float32"));
  EXPECT_THAT(ErrorOf([] { Cholesky({}); }), StartsWith("Cholesky: "));
}

TEST(SolveTriangularTest, Errors) {
  const Tensor a = Tensor::Ones({2, 2}), b = Tensor::Ones({2, 3});
  EXPECT_EQ(ErrorOf([&] { SolveTriangular(a, b, {.left = false}); }),
            "SolveTriangular: a float32 [2, 2], b float32 [2, 3]; wanted a "
            "[..., n, n] and b [..., k, n]");
  EXPECT_THAT(ErrorOf([&] { SolveTriangular(b, b); }),
              AllOf(StartsWith("SolveTriangular: a float32 [2, 3], b "),
                    HasSubstr("[..., n, k]")));
  EXPECT_THAT(ErrorOf([&] { SolveTriangular(a, Tensor::Ones({2})); }),
              StartsWith("SolveTriangular: a float32 [2, 2], b float32 [2];"));
  EXPECT_THAT(ErrorOf([&] { SolveTriangular(a, b.To(DType::kFloat64)); }),
              StartsWith("SolveTriangular: got "));
  EXPECT_THAT(
      ErrorOf([&] {
        SolveTriangular(Tensor::Ones({3, 2, 2}), Tensor::Ones({2, 2, 1}));
      }),
      StartsWith("SolveTriangular: shapes [3] and [2]"));
  EXPECT_THAT(ErrorOf([&] { SolveTriangular({}, b); }),
              StartsWith("SolveTriangular: "));
}

TEST(LinalgTest, SameBitsForAnyNumberOfThreads) {
  const auto f = [](Inputs x) {
    const Tensor a = MatMul(x[0], x[0], {.transpose_b = true}) +
                     Eye(x[0].dim(-2), -1, x[0].dtype());
    const Tensor l = Cholesky(a);
    return SolveTriangular(l, x[1]) +
           Transpose(SolveTriangular(l, Transpose(x[1]),
                                     {.left = false, .transpose = true}));
  };
  for (DType dtype : kFloats) {
    // Many small systems, and one with many right sides.
    ExpectSameBitsForThreads(f, {Spread({40, 31, 31}, -1, 1).To(dtype),
                                 Spread({40, 31, 13}, -1, 1, 1).To(dtype)});
    ExpectSameBitsForThreads(f, {Spread({130, 70}, -1, 1).To(dtype),
                                 Spread({130, 1100}, -1, 1, 1).To(dtype)});
  }
}

}  // namespace
}  // namespace wengert
