#include "nn/init.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/layer_testlib.h"
#include "nn/nn.h"

namespace wengert::nn {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

struct Moments {
  double mean, stddev, largest;
};
Moments MomentsOf(const Tensor& w) {
  const auto values = w.ToVector();
  const double n = static_cast<double>(values.size());
  Moments m{0, 0, 0};
  for (double v : values) {
    m.mean += v / n;
    m.largest = std::max(m.largest, std::abs(v));
  }
  for (double v : values) m.stddev += (v - m.mean) * (v - m.mean) / n;
  m.stddev = std::sqrt(m.stddev);
  return m;
}

Tensor Made(const Shape& shape, const Initializer& init,
            DType dtype = DType::kFloat32) {
  ParameterStore store(dtype, 7);
  return store.root().Make("w", shape, init);
}

// 40,000 draws: the mean is within 5 of its own deviations, the deviation
// within 2 %.
void ExpectDeviation(const Initializer& init, double stddev, double bound) {
  const Moments m = MomentsOf(Made({400, 100}, init));
  EXPECT_NEAR(m.mean, 0, stddev / 40);
  EXPECT_NEAR(m.stddev / stddev, 1, 0.02);
  EXPECT_LE(m.largest, bound * (1 + 1e-6));
  EXPECT_GT(m.largest, bound * 0.99);
}

TEST(InitTest, DeviationsAreThePapers) {
  const double xavier = std::sqrt(2.0 / 500), wide = std::sqrt(2.0 / 100);
  ExpectDeviation(init::XavierUniform(), xavier, std::sqrt(3) * xavier);
  ExpectDeviation(init::KaimingUniform(), wide, std::sqrt(3) * wide);
  ExpectDeviation(init::KaimingUniform({.fan = init::Fan::kOut, .gain = 1}),
                  std::sqrt(1.0 / 400), std::sqrt(3.0 / 400));
  const auto deviation = [](const Initializer& init, const Shape& shape) {
    return MomentsOf(Made(shape, init)).stddev;
  };
  const Shape shape{400, 100};
  EXPECT_NEAR(deviation(init::XavierNormal(3), shape) / (3 * xavier), 1, 0.02);
  EXPECT_NEAR(deviation(init::KaimingNormal(), shape) / wide, 1, 0.02);
  EXPECT_NEAR(deviation(init::KaimingNormal({.fan = init::Fan::kOut}), shape),
              std::sqrt(2.0 / 400), 0.02 * wide);
  // [out, in, 2, 2]: each fan has the four places.
  EXPECT_NEAR(deviation(init::KaimingNormal({.gain = 1}), {100, 100, 2, 2}),
              1.0 / 20, 0.001);
  EXPECT_NEAR(deviation(init::ScaledResidual(8), shape), 0.02 / 4, 1e-4);
  EXPECT_NEAR(deviation(init::Normal(0.5, 3), shape), 0.5, 0.01);
}

TEST(InitTest, TruncatedNormalIsTheNormalInside) {
  const Moments m = MomentsOf(Made({400, 100}, init::TruncatedNormal(0.5)));
  EXPECT_NEAR(m.mean, 0, 0.0125);
  EXPECT_NEAR(m.stddev, 0.5 * 0.8796, 0.01);  // of the normal within 2
  EXPECT_LE(m.largest, 1);
  EXPECT_GT(m.largest, 0.99);
  const Moments narrow =
      MomentsOf(Made({400, 100}, init::TruncatedNormal(2, 10, 0.1)));
  EXPECT_NEAR(narrow.mean, 10, 0.01);
  EXPECT_LE(narrow.largest, 10.2);
}

TEST(InitTest, OrthogonalHasOrthonormalRowsOrColumns) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const Shape& shape : {Shape{20, 50}, Shape{50, 20}, Shape{30, 30},
                               Shape{6, 2, 5}, Shape{1, 1}}) {
      const Tensor w = Made(shape, init::Orthogonal(3), dtype);
      const int64_t rows = shape[0], columns = w.size() / rows;
      const Tensor m = Reshape(w, {rows, columns});
      const bool wide = rows <= columns;
      const Tensor product =
          MatMul(m, m, {.transpose_a = !wide, .transpose_b = wide});
      const int64_t n = std::min(rows, columns);
      const auto values = product.ToVector();
      for (int64_t i = 0; i < n * n; ++i) {
        EXPECT_NEAR(values[i], i % (n + 1) == 0 ? 9 : 0,
                    dtype == DType::kFloat64 ? 1e-13 : 1e-5);
      }
    }
  }
  EXPECT_EQ(Made({0, 3}, init::Orthogonal()).size(), 0);
}

TEST(InitTest, ConstantsAndBounds) {
  EXPECT_THAT(Made({5}, init::Constant(2.5)).ToVector(), Each(2.5));
  for (double v : Made({1000}, init::Uniform(-1, 3)).ToVector()) {
    EXPECT_GE(v, -1);
    EXPECT_LT(v, 3);
  }
}

// The stream is the name's: neither other parameters nor the time matter.
TEST(InitTest, TheSameByNameWheneverItIsDone) {
  for (const Initializer& init :
       {init::XavierUniform(), init::KaimingNormal(), init::Orthogonal(),
        init::TruncatedNormal(1)}) {
    ParameterStore a(DType::kFloat32, 3), b(DType::kFloat32, 3);
    const Tensor x = a.root().Sub("head").Make("weight", {4, 6}, init);
    const Params p = b.root();
    const Linear other(p.Sub("other"), 2, 3), head(p.Sub("head"), 6, 4);
    EXPECT_FALSE(SameBits(head.weight(), x));
    b.Initialize("head.weight", init);
    EXPECT_TRUE(SameBits(head.weight(), x));
    EXPECT_FALSE(SameBits(a.root().Make("second", {4, 6}, init), x));
  }
}

// GPT-2: all weights normal, those that end in a residual sum scaled.
TEST(InitTest, AWholeModelByNames) {
  ParameterStore store(DType::kFloat32, 1);
  const Encoder encoder(store.root(), 2,
                        {.d_model = 32, .n_heads = 2, .hidden = 64});
  for (const Parameter* p : store.parameters()) {
    const bool residual =
        p->name.find("out_proj.weight") != std::string::npos ||
        p->name.find("linear2.weight") != std::string::npos;
    if (p->value.rank() < 2) continue;
    store.Initialize(p->name,
                     residual ? init::ScaledResidual(2) : init::Normal(0.02));
  }
  const auto deviation = [&](const char* name) {
    return MomentsOf(store.Find(name)).stddev;
  };
  EXPECT_NEAR(deviation("layers.1.linear1.weight"), 0.02, 0.002);
  EXPECT_NEAR(deviation("layers.1.linear2.weight"), 0.01, 0.001);
  EXPECT_NEAR(deviation("layers.0.self_attn.out_proj.weight"), 0.01, 0.001);
}

TEST(InitTest, AClonesValuesAreTakenUp) {
  ParameterStore store(DType::kFloat32, 1);
  store.root().Make("w", {2, 2}, init::Constant(5));
  ParameterStore clone = store.Clone();
  const Tensor w = clone.root().Make("w", {2, 2}, init::XavierNormal());
  EXPECT_THAT(w.ToVector(), Each(5));
}

TEST(InitTest, Errors) {
  ParameterStore store;
  const Params p = store.root().Sub("norm");
  EXPECT_EQ(ErrorOf([&] { p.Make("gain", {4}, init::XavierUniform()); }),
            "init::XavierUniform: shape [4]; wanted [out, in, ...]");
  EXPECT_EQ(store.size(), 0) << "nothing is left of what failed";
  const Tensor gain = p.Ones("gain", {4});
  EXPECT_THAT(
      ErrorOf([&] { store.Initialize("norm.gain", init::Orthogonal()); }),
      HasSubstr("init::Orthogonal: shape [4]"));
  EXPECT_THAT(gain.ToVector(), Each(1));
  EXPECT_THAT(
      ErrorOf([&] { store.Initialize("norm.gian", init::Constant(0)); }),
      HasSubstr("the nearest is 'norm.gain'"));
  EXPECT_THAT(ErrorOf([&] { p.Make("gain", {4}, init::Constant(0)); }),
              HasSubstr("'norm.gain' exists already"));
  EXPECT_THAT(ErrorOf([] { init::Normal(-1); }), HasSubstr("deviation -1"));
  EXPECT_THAT(ErrorOf([] { init::XavierNormal(NAN); }),
              HasSubstr("init::XavierNormal nan"));
  EXPECT_THAT(ErrorOf([] { init::Uniform(2, 1); }), HasSubstr("[2, 1)"));
  EXPECT_THAT(ErrorOf([] { init::TruncatedNormal(1, 0, 0); }),
              HasSubstr("bound 0; wanted one >= 0.01"));
  EXPECT_THAT(ErrorOf([] { init::ScaledResidual(0); }),
              HasSubstr("n_layers 0"));
}

}  // namespace
}  // namespace wengert::nn
