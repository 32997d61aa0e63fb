// Einstein's sum.
#include "absl/strings/str_split.h"
#include "autograd/ops/ops_testlib.h"
#include "autograd/ops/reference_testlib.h"

namespace wengert {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(EinsumTest, AgreesWithNumpy) {
  int cases = 0;
  const TensorMap all = ReadReference("einsum_reference.txt");
  for (const auto& [name, wanted] : all) {
    const std::vector<std::string> parts = absl::StrSplit(name, '/');
    if (parts.at(1) != "result") continue;
    const std::string equation = parts[0].substr(parts[0].find(':') + 1);
    for (DType dtype : kFloats) {
      std::vector<Tensor> operands;
      for (int i = 0; all.contains(absl::StrCat(parts[0], "/", i)); ++i) {
        operands.push_back(all.at(absl::StrCat(parts[0], "/", i)).To(dtype));
      }
      const Tensor y = Einsum(equation, operands);
      EXPECT_EQ(y.dtype(), dtype);
      ExpectClose(y, wanted, dtype == DType::kFloat32 ? 1e-5 : 1e-13,
                  name.c_str());
    }
    ++cases;
  }
  EXPECT_EQ(cases, 70);
}

TEST(EinsumTest, KnownValues) {
  const Tensor a = Values({2, 2}, {1, 2, 3, 4}), b = Values({2}, {10, 20});
  EXPECT_THAT(Einsum(" i j , j -> i ", {a, b}).ToVector(),
              ElementsAre(50, 110));
  EXPECT_THAT(Einsum("ij", {a}).ToVector(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Einsum("ji", {a}).ToVector(), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(Einsum("ii", {a}).ToVector(), ElementsAre(5));
  // Without an arrow capitals come first.
  EXPECT_THAT(Einsum("aB", {a}).ToVector(), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(Einsum("", {Tensor::Scalar(3)}).ToVector(), ElementsAre(3));
  EXPECT_THAT(Einsum("->", {Tensor::Scalar(3)}).ToVector(), ElementsAre(3));
  EXPECT_THAT(Einsum(",->", {Tensor::Scalar(3), Tensor::Scalar(2)}).ToVector(),
              ElementsAre(6));
}

TEST(EinsumTest, Nothing) {
  const Tensor none = Tensor::Zeros({2, 0});
  EXPECT_THAT(Einsum("ij,kj->ik", {none, none}).ToVector(),
              ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(Einsum("ij,ik->jk", {none, none}).shape(), (Shape{0, 0}));
  EXPECT_EQ(Einsum("ij,ij->ij", {none, none}).shape(), (Shape{2, 0}));
  EXPECT_EQ(Einsum("ij->", {none}).item(), 0);
}

// Contractions are matrix products, and orders that MatMul takes as they are
// are not copied.
TEST(EinsumTest, RunsOnMatMul) {
  const auto operations = [](const std::string& equation,
                             std::vector<Shape> shapes) {
    Tape tape;
    std::vector<Tensor> operands;
    for (const Shape& shape : shapes) {
      operands.push_back(Tensor::Ones(shape));
      tape.Watch(operands.back());
    }
    Einsum(equation, operands);
    const std::string dot = tape.ToDot();
    const auto count = [&](const std::string& op) {
      int n = 0;
      for (size_t at = 0; (at = dot.find(op, at)) != std::string::npos; ++at) {
        ++n;
      }
      return n;
    };
    return std::vector<int>{count("\"MatMul"), count("\"Permute"),
                            count("\"Mul"), count("\"Reshape")};
  };
  const Shape s{4, 4}, t{2, 4, 4}, u{2, 3, 4, 4};
  EXPECT_THAT(operations("ij,jk->ik", {s, s}), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(operations("ij,kj->ik", {s, s}), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(operations("ji,jk->ik", {s, s}), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(operations("ij,jk->ki", {s, s}), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(operations("bij,bjk->bik", {t, t}), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(operations("bhqd,bhkd->bhqk", {u, u}), ElementsAre(1, 0, 0, 3));
  EXPECT_THAT(operations("bhqk,bhkd->bhqd", {u, u}), ElementsAre(1, 0, 0, 3));
  EXPECT_THAT(operations("bqhd,bkhd->bhqk", {u, u}), ElementsAre(1, 2, 0, 3));
  EXPECT_THAT(operations("bij,kj->bik", {t, s}), ElementsAre(1, 0, 0, 2));
  EXPECT_THAT(operations("ij,jk,kl->il", {s, s, s}), ElementsAre(2, 0, 0, 0));
  EXPECT_THAT(operations("bi,bi->b", {s, s}), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(operations("ij,ij->ij", {s, s}), ElementsAre(0, 0, 1, 3));
}

// The pair with the smallest product is contracted first: here a vector with a
// matrix, and never two of the matrices.
TEST(EinsumTest, OrderOfContraction) {
  Tape tape;
  const Tensor m = Tensor::Ones({8, 8});
  tape.Watch(m);
  Einsum("ij,jk,kl,l->i", {m, m, m, Tensor::Ones({8})});
  const std::string dot = tape.ToDot();
  EXPECT_THAT(dot, HasSubstr("MatMul\\nfloat32 [8, 1]"));
  EXPECT_THAT(dot, Not(HasSubstr("MatMul\\nfloat32 [8, 8]")));
}

TEST(EinsumTest, Errors) {
  const Tensor a = Tensor::Zeros({2, 3}), b = Tensor::Zeros({3, 4});
  const auto fails = [&](const char* equation, std::vector<Tensor> operands,
                         const char* why) {
    EXPECT_THAT(
        ErrorOf([&] { Einsum(equation, operands); }),
        AllOf(StartsWith(absl::StrCat("Einsum: \"", equation, "\" of ")),
              HasSubstr(why)));
  };
  EXPECT_EQ(ErrorOf([&] {
              Einsum("ij,kj->ik", {a, b});
            }),
            "Einsum: \"ij,kj->ik\" of float32 [2, 3], float32 [3, 4]: 'j' is 3 "
            "and 4");
  fails("ij,jk->ik", {a}, "it names 2 operands, and there are 1");
  fails("ij", {a, b}, "it names 1 operands, and there are 2");
  fails("ij", {}, "no operands");
  fails("ijk,jk->i", {a, b}, "operand 0 has 2 axes, \"ijk\" has 3");
  fails("i,jk->i", {a, b}, "operand 0 has 2 axes");
  fails("ii", {a}, "'i' is 2 and 3");
  fails("ij->ik", {a}, "no operand has 'k'");
  fails("ij->ii", {a}, "the result has 'i' twice");
  fails("...j->j", {a}, "'.' is no letter; there is no ellipsis");
  fails("i1->i", {a}, "'1' is no letter");
  fails("ij->i->j", {a}, "'-' is no letter");
  fails("ij->i,j", {a}, "',' is no letter");
  fails("i\xc3\xa9", {a}, "is no letter");
  fails("ij,jk", {a, b.To(DType::kFloat64)}, "all of one dtype");
  fails("ij", {a.To(DType::kInt32)}, "wanted float32 or float64");
  fails("ij,jk", {a, Tensor()}, "wanted float32 or float64");
  // Refused before any product of the four is computed.
  const Tensor wide = Tensor::Zeros({int64_t{1} << 16});
  EXPECT_THAT(ErrorOf([&] {
                Einsum("a,b,c,d->abcd", {wide, wide, wide, wide});
              }),
              StartsWith("Einsum: a result of shape [65536, 65536, 65536, "
                         "65536] is too large"));
}

TEST(EinsumTest, SameBitsForAnyNumberOfThreads) {
  const auto f = [](Inputs x) {
    return Einsum("bqhd,bkhd,kc->bhqc", {x[0], x[1], x[2]});
  };
  for (DType dtype : kFloats) {
    ExpectSameBitsForThreads(f, {Spread({3, 40, 4, 33}, -1, 1).To(dtype),
                                 Spread({3, 50, 4, 33}, -1, 1, 1).To(dtype),
                                 Spread({50, 21}, -1, 1, 2).To(dtype)});
  }
}

}  // namespace
}  // namespace wengert
