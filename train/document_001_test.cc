// Self-attention with two heads on a matrix whose columns are the words, from
// NumPy's seeded numbers to the published table; and the transformer layer
// that is built around it.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"
#include "nn/nn.h"
#include "nn/numpy_random_testlib.h"

namespace wengert::train {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

constexpr int64_t kD = 8, kN = 6, kHeads = 2, kKey = kD / kHeads;
enum { kQ, kK, kV };

struct Example {
  Tensor x;  // [D, N]
  // By head and by kQ, kK, kV.
  Tensor omega[kHeads][3];  // [D / H, D]
  Tensor beta[kHeads][3];   // [D / H, 1]
  Tensor omega_c;           // [D, D]
};

// x from seed 3, the rest from seed 0, in the published order.
Example MakeExample(DType dtype) {
  Example e;
  testing::NumpyRandom random_x(3), random(0);
  const auto draw = [&](testing::NumpyRandom& from, const Shape& shape) {
    return Tensor::From(shape, from.Normal(shape.size())).To(dtype);
  };
  e.x = draw(random_x, {kD, kN});
  for (int64_t h = 0; h < kHeads; ++h) {
    for (int i : {kQ, kK, kV}) e.omega[h][i] = draw(random, {kKey, kD});
    for (int i : {kQ, kK, kV}) e.beta[h][i] = draw(random, {kKey, 1});
  }
  e.omega_c = draw(random, {kD, kD});
  return e;
}

const Tensor& Printed() {
  static const Tensor table = Tensor::Of<double>(
      {kD, kN}, {-21.207, -5.373, -20.933, -9.179, -11.319, -17.812,  //
                 -1.995,  7.906,  -10.516, 3.452,  9.863,   -7.24,    //
                 5.479,   1.115,  9.244,   0.453,  5.656,   7.089,    //
                 -7.413,  -7.416, 0.363,   -5.573, -6.736,  -0.848,   //
                 -11.261, -9.937, -4.848,  -8.915, -13.378, -5.761,   //
                 3.548,   10.036, -2.244,  1.604,  12.113,  -2.557,   //
                 4.888,   -5.814, 2.407,   3.228,  -4.232,  3.71,     //
                 1.248,   18.894, -6.409,  3.224,  19.717,  -5.629});
  return table;
}

// The same in full, computed by NumPy.
const Tensor& Exact() {
  static const Tensor table = Tensor::Of<double>(
      {kD, kN}, {-21.207137461688855, -5.373311527036863,  -20.933396415542756,
                 -9.178820810009036,  -11.31857415161203,  -17.81168839035415,
                 -1.9951426691123335, 7.905696291949345,   -10.515564184099608,
                 3.45246758359596,    9.862524620556858,   -7.2398604980082535,
                 5.4792032303966876,  1.1152170186610244,  9.244377116530725,
                 0.45259867136701276, 5.656183000292287,   7.089060756589362,
                 -7.412928563967139,  -7.416207855419226,  0.36320868379488347,
                 -5.57320791480442,   -6.735547581110627,  -0.8475192560497573,
                 -11.261345712910352, -9.93665211904853,   -4.847919107306096,
                 -8.915038877831645,  -13.378398644708746, -5.761238551537789,
                 3.547928164522931,   10.035759387118746,  -2.2441368427637385,
                 1.603548174570968,   12.113338242114482,  -2.5567556975573797,
                 4.888491000866113,   -5.813858544867301,  2.407435195499124,
                 3.2277232765490607,  -4.2315318203595105, 3.7104018806109376,
                 1.2478083249570573,  18.894102516968303,  -6.4086142673446655,
                 3.2236280849784076,  19.71659094859664,   -5.628874774153351});
  return table;
}

struct Attended {
  Tensor out;                   // [D, N]
  std::vector<Tensor> weights;  // of each head [N, N]: a column for a query
};

// X' = omega_c [V softmax(Kᵀ Q / sqrt(D / H)) of every head, stacked].
Attended AttendColumns(const Example& e, const Tensor& x) {
  Attended result;
  std::vector<Tensor> heads;
  for (int64_t h = 0; h < kHeads; ++h) {
    const auto map = [&](int i) {
      return MatMul(e.omega[h][i], x) + e.beta[h][i];
    };
    const Tensor logits = MatMul(map(kK), map(kQ), {.transpose_a = true}) /
                          std::sqrt(static_cast<double>(kKey));
    result.weights.push_back(Softmax(logits, 0));
    heads.push_back(MatMul(map(kV), result.weights.back()));
  }
  result.out = MatMul(e.omega_c, Concat(heads, 0));
  return result;
}

// One map for every head, as rows: [H D / H, D] and [D].
Tensor AllHeads(const Example& e, int i) {
  return Concat({e.omega[0][i], e.omega[1][i]}, 0);
}
Tensor AllBiases(const Example& e, int i) {
  return Reshape(Concat({e.beta[0][i], e.beta[1][i]}, 0), {kD});
}

// The parameters of a MultiHeadAttention under `prefix`.
nn::TensorMap Parameters(const Example& e, const std::string& prefix) {
  const auto packed = [&](Tensor (*part)(const Example&, int)) {
    return Concat({part(e, kQ), part(e, kK), part(e, kV)}, 0)
        .To(DType::kFloat64);
  };
  return {{prefix + "in_proj_weight", packed(AllHeads)},
          {prefix + "in_proj_bias", packed(AllBiases)},
          {prefix + "out_proj.weight", e.omega_c.To(DType::kFloat64)},
          {prefix + "out_proj.bias", Tensor::Zeros({kD}, DType::kFloat64)}};
}

// Columns as a batch of one sequence, and back.
Tensor ToSequence(const Tensor& x) {
  return Reshape(Transpose(x), {1, x.dim(1), x.dim(0)});
}
Tensor ToColumns(const Tensor& x) {
  return Transpose(Reshape(x, {x.dim(1), x.dim(2)}));
}

TEST(Document001, TwoHeadsGiveTheTrueValues) {
  for (const auto& [dtype, tolerance] :
       {std::pair(DType::kFloat32, 1e-6), std::pair(DType::kFloat64, 1e-12)}) {
    const Example e = MakeExample(dtype);
    const Tensor x = ToSequence(e.x);
    const auto heads = [&](int i) {
      return Reshape(Linear(x, AllHeads(e, i), AllBiases(e, i)),
                     {1, kN, kHeads, kKey});
    };
    const Tensor q = heads(kQ), k = heads(kK), v = heads(kV);
    const auto recombine = [&](const Tensor& y) {
      return ToColumns(Linear(Reshape(y, {1, kN, kD}), e.omega_c));
    };
    nn::ParameterStore store(dtype);
    const nn::MultiHeadAttention layer(store.root(), kD, kHeads);
    nn::SetParameters(store, Parameters(e, ""));

    const std::pair<const char*, Tensor> results[] = {
        {"columns", AttendColumns(e, e.x).out},
        {"fused", recombine(Attention(q, k, v))},
        {"composed", recombine(AttentionWithWeights(q, k, v).out)},
        {"layer", ToColumns(layer(x))},
        {"layer across", ToColumns(layer(x, x))},
        {"layer with weights", ToColumns(layer.WithWeights(x).out)}};
    for (const auto& [name, y] : results) {
      SCOPED_TRACE(std::string(name) + ", " + Name(dtype));
      ASSERT_EQ(y.shape(), Printed().shape());
      EXPECT_THAT(y.ToVector(),
                  Pointwise(DoubleNear(0.5e-3), Printed().ToVector()));
      nn::ExpectNear(y, Exact(), tolerance, "y");
    }
  }
}

// What is a column in one form is a row in the other.
TEST(Document001, Weights) {
  const Example e = MakeExample(DType::kFloat64);
  nn::ParameterStore store(DType::kFloat64);
  const nn::MultiHeadAttention layer(store.root(), kD, kHeads);
  nn::SetParameters(store, Parameters(e, ""));
  std::vector<Tensor> rows;
  for (const Tensor& weights : AttendColumns(e, e.x).weights) {
    rows.push_back(Reshape(Transpose(weights), {1, 1, kN, kN}));
  }
  nn::ExpectNear(layer.WithWeights(ToSequence(e.x)).weights, Concat(rows, 1),
                 1e-14, "weights");
}

// (x - mean) / sqrt(variance + eps) of each column, then gain and bias.
Tensor NormColumns(const Tensor& x, const Tensor& gain, const Tensor& bias) {
  const Tensor centred = x - Mean(x, 0, {.keep_dims = true});
  const Tensor variance = Mean(Square(centred), 0, {.keep_dims = true});
  return centred / Sqrt(variance + 1e-5) * gain + bias;
}

TEST(Document001, TransformerLayer) {
  constexpr int64_t kHidden = 16;
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    SCOPED_TRACE(Name(dtype));
    const Example e = MakeExample(dtype);
    nn::ParameterStore store(dtype, 1);
    const nn::EncoderLayer layer(
        store.root(), {.d_model = kD, .n_heads = kHeads, .hidden = kHidden});
    nn::Randomise(store);
    nn::TensorMap all = Parameters(e, "self_attn.");
    for (const Parameter* p : store.parameters()) {
      all.insert({p->name, p->value.To(DType::kFloat64)});
    }
    nn::SetParameters(store, all);
    const auto column = [&](const std::string& name) {
      const Tensor p = store.Find(name);
      return Reshape(p, {p.size(), 1});
    };

    Tensor x = e.x;
    x = x + AttendColumns(e, x).out;
    x = NormColumns(x, column("norm1.weight"), column("norm1.bias"));
    std::vector<Tensor> columns;
    for (int64_t n = 0; n < kN; ++n) {
      const Tensor x_n = Slice(x, 1, n, 1);
      const Tensor hidden = Relu(MatMul(store.Find("linear1.weight"), x_n) +
                                 column("linear1.bias"));
      columns.push_back(x_n + MatMul(store.Find("linear2.weight"), hidden) +
                        column("linear2.bias"));
    }
    x = Concat(columns, 1);
    x = NormColumns(x, column("norm2.weight"), column("norm2.bias"));
    ASSERT_EQ(x.shape(), e.x.shape());
    const double tolerance = dtype == DType::kFloat32 ? 3e-6 : 1e-13;
    const Tensor input = ToSequence(e.x);
    nn::ExpectNear(ToColumns(layer(input)), x, tolerance, "layer");
    nn::ExpectNear(ToColumns(layer.WithWeights(input).out), x, tolerance,
                   "layer with weights");
  }
}

}  // namespace
}  // namespace wengert::train
