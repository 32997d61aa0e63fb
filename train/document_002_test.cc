// Attention from scratch on four words and small whole-number weights, which
// NumPy's seed 42 gives: for one query, and for all of them as matrices.
#include <cmath>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"
#include "nn/numpy_random_testlib.h"

namespace wengert::train {
namespace {

// Queries, keys and values of the four words: [4, 3] each.
struct Example {
  Tensor q, k, v;
};

Example MakeExample(DType dtype) {
  const Tensor words = Tensor::Of<double>({4, 3}, {1, 0, 0,  //
                                                   0, 1, 0,  //
                                                   1, 1, 0,  //
                                                   0, 0, 1})
                           .To(dtype);
  testing::NumpyRandom random(42);
  const auto map = [&] {
    const Tensor weights = Tensor::From({3, 3}, random.RandInt(3, 9));
    return MatMul(words, weights.To(dtype));
  };
  Example e;
  e.q = map();
  e.k = map();
  e.v = map();
  return e;
}

const Tensor& Expected() {
  static const Tensor attention = Tensor::Of<double>(
      {4, 3}, {0.9852202489021356, 1.741740509995756, 0.7565202610936204,   //
               0.9096526450391504, 1.4096526450391504, 0.5,                 //
               0.9985122599698961, 1.7584933412743888, 0.7599810813044927,  //
               0.9956038601592226, 1.9040730855894112, 0.9084692254301886});
  return attention;
}

// Rows as one sequence of one head, and back.
Tensor ToHead(const Tensor& x) { return Reshape(x, {1, x.dim(0), 1, 3}); }
Tensor ToRows(const Tensor& x) { return Reshape(x, {x.dim(1), 3}); }

TEST(Document002, OneQuery) {
  for (const auto& [dtype, tolerance] :
       {std::pair(DType::kFloat32, 1e-6), std::pair(DType::kFloat64, 1e-12)}) {
    const Example e = MakeExample(dtype);
    const Tensor query = Slice(e.q, 0, 0, 1);
    // A score for each key, and the sum of the values with their weights.
    std::vector<Tensor> scores;
    for (int64_t j = 0; j < 4; ++j) {
      scores.push_back(Reshape(Sum(query * Slice(e.k, 0, j, 1)), {1}));
    }
    const Tensor weights = Softmax(Concat(scores, 0) / std::sqrt(3.0));
    Tensor spelled = Tensor::Zeros({1, 3}, dtype);
    for (int64_t j = 0; j < 4; ++j) {
      spelled = spelled + Slice(weights, 0, j, 1) * Slice(e.v, 0, j, 1);
    }
    const Tensor q = ToHead(query), k = ToHead(e.k), v = ToHead(e.v);
    const Tensor fused = ToRows(Attention(q, k, v));
    const Tensor expected = Slice(Expected(), 0, 0, 1);
    nn::ExpectNear(spelled, expected, tolerance, "spelled");
    nn::ExpectNear(fused, expected, tolerance, "fused");
    nn::ExpectNear(ToRows(AttentionWithWeights(q, k, v).out), expected,
                   tolerance, "composed");
    // The other queries change nothing for this one.
    const Tensor all = ToRows(Attention(ToHead(e.q), k, v));
    EXPECT_TRUE(SameBits(fused, Slice(all, 0, 0, 1))) << Name(dtype);
  }
}

TEST(Document002, MatrixForm) {
  for (const auto& [dtype, tolerance] :
       {std::pair(DType::kFloat32, 1e-6), std::pair(DType::kFloat64, 1e-12)}) {
    const Example e = MakeExample(dtype);
    const Tensor scores = MatMul(e.q, e.k, {.transpose_b = true});
    const Tensor q = ToHead(e.q), k = ToHead(e.k), v = ToHead(e.v);
    nn::ExpectNear(MatMul(Softmax(scores / std::sqrt(3.0)), e.v), Expected(),
                   tolerance, "spelled");
    for (double scale : {0.0, 1 / std::sqrt(3.0)}) {
      const AttentionOptions options{.scale = scale};
      nn::ExpectNear(ToRows(Attention(q, k, v, options)), Expected(), tolerance,
                     "fused");
      nn::ExpectNear(ToRows(AttentionWithWeights(q, k, v, options).out),
                     Expected(), tolerance, "composed");
    }
  }
}

}  // namespace
}  // namespace wengert::train
