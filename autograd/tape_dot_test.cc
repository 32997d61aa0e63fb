// The drawing of a tape.
#include <string>

#include "autograd/ops.h"
#include "autograd/parameter_testlib.h"
#include "autograd/tape.h"
#include "gtest/gtest.h"

namespace wengert {
namespace {

TEST(ToDot, DrawsRecordsLeavesAndShapes) {
  TestStore store;
  const Tensor w = store.Add("w", Tensor::Of<float>({3}, {1, 1, 1}));
  Tape tape;
  EXPECT_EQ(tape.ToDot(), "digraph tape {\n}\n");
  const Tensor x = Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor constant = Tensor::Of<float>({3}, {1, 2, 3});
  tape.Watch(x);
  const std::string layer = "layers.0.\"odd\"";
  Tensor y;
  {
    const Scope scope(layer);
    y = Exp(x * constant);
  }
  const Tensor unused = Exp(constant);
  const Tensor a = Sum(y + x), b = Sum(w);
  y = a + b;
  EXPECT_EQ(tape.ToDot(),
            "digraph tape {\n"
            "  s0 [shape=box, label=\"watched\\nfloat32 [2, 3]\"];\n"
            "  s5 [shape=box, label=\"w\\nfloat32 [3]\"];\n"
            "  s1 [label=\"Mul in layers.0.\\\"odd\\\"\\nfloat32 [2, 3]\"];\n"
            "  s2 [label=\"Exp in layers.0.\\\"odd\\\"\\nfloat32 [2, 3]\"];\n"
            "  s3 [label=\"Add\\nfloat32 [2, 3]\"];\n"
            "  s4 [label=\"Sum\\nfloat32 []\"];\n"
            "  s6 [label=\"Sum\\nfloat32 []\"];\n"
            "  s7 [label=\"Add\\nfloat32 []\"];\n"
            "  s0 -> s1;\n"
            "  s1 -> s2;\n"
            "  s2 -> s3;\n"
            "  s0 -> s3;\n"
            "  s3 -> s4;\n"
            "  s5 -> s6;\n"
            "  s4 -> s7;\n"
            "  s6 -> s7;\n"
            "}\n");
  tape.Backward(y);
  EXPECT_EQ(tape.ToDot(), "digraph tape {\n}\n");  // it is empty again
}

}  // namespace
}  // namespace wengert
