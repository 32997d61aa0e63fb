// The gradient checks that every operation passes: a family's test lists its
// operations, one line for each case, and instantiates the two suites.
//
// For every line and every set of sizes: first and second derivatives against
// central differences in double, for each subset of the inputs, with an input
// that stands in several places, and added to other gradients; float32 against
// float64; and a fused operation against its composition in both types.
#ifndef WENGERT_AUTOGRAD_OPS_GRADIENTS_TESTLIB_H_
#define WENGERT_AUTOGRAD_OPS_GRADIENTS_TESTLIB_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/ops_testlib.h"

namespace wengert {

using Sizes = std::vector<std::vector<Shape>>;  // sets of input shapes
using X = Inputs;

struct Case {
  std::string name;
  Function f;
  Sizes sizes;
  double lo = -2, hi = 2;     // inputs are sampled between
  Function composed = {};     // the same from primitives, for a fused operation
  bool random = false;        // draws from a generator
  double float_error = 2e-6;  // of the largest element
};

inline const Sizes kOne = {{{3, 5}}, {{}}, {{1}}, {{0, 3}}, {{37}}};
inline const Sizes kTwo = {{{2, 3}, {2, 3}}, {{2, 1}, {1, 3}}, {{3}, {5, 3}},
                           {{}, {2, 1}},     {{1}, {1}},       {{0, 3}, {3}},
                           {{}, {}},         {{17}, {17}}};
inline const Sizes kCube = {{{2, 3, 4}}, {{1, 1, 1}}, {{3, 1, 5}}};
inline const Sizes kCubeOrEmpty = {
    {{2, 3, 4}}, {{1, 1, 1}}, {{3, 1, 5}}, {{2, 0, 3}}, {{0, 3, 0}}};
inline const Sizes kRows = {{{2, 5}},     {{7}},    {{1, 1}},
                            {{2, 3, 17}}, {{0, 3}}, {{3, 0}}};

inline std::vector<Tensor> InputsFor(const Case& c,
                                     const std::vector<Shape>& shapes,
                                     DType dtype = DType::kFloat64) {
  std::vector<Tensor> inputs;
  for (const Shape& s : shapes) {
    // Rounded to float, so that both types start from the same numbers.
    inputs.push_back(
        Spread(s, c.lo, c.hi, inputs.size()).To(DType::kFloat32).To(dtype));
  }
  return inputs;
}

class GradientsTest : public testing::TestWithParam<Case> {
 protected:
  // Calls f with inputs of `dtype`; draws are the same in each call.
  static ValueAndGradients Run(const Function& f, const Case& c,
                               const std::vector<Shape>& shapes, DType dtype,
                               bool recorded) {
    Generator generator(11);
    std::optional<Tape> tape;
    c.random ? tape.emplace(generator) : tape.emplace();
    const std::vector<Tensor> inputs = InputsFor(c, shapes, dtype);
    for (const Tensor& x : inputs) tape->Watch(x);
    const Tensor y = f(inputs);
    const Tensor dy = Spread(y.shape(), 0.5, -1.5, 7).To(dtype);
    return {y, tape->Gradient(y, inputs,
                              {.create_graph = recorded, .cotangent = dy})};
  }
  static void ExpectAllClose(const ValueAndGradients& a,
                             const ValueAndGradients& b, double tolerance,
                             const std::string& what) {
    ExpectClose(a.value, b.value, tolerance, (what + ": value").c_str());
    for (size_t i = 0; i < a.gradients.size(); ++i) {
      const std::string name = absl::StrCat(what, ": gradient of input ", i);
      ExpectClose(a.gradients[i], b.gradients[i], tolerance, name.c_str());
    }
  }
};

TEST_P(GradientsTest, AgreeWithDifferences) {
  const Case& c = GetParam();
  Generator generator(11);
  GradCheckOptions options{.name = c.name, .order = 2};
  if (c.random) options.generator = &generator;
  for (const std::vector<Shape>& shapes : c.sizes) {
    std::vector<Tensor> inputs = InputsFor(c, shapes);
    const GradCheckReport report = GradCheck(c.f, inputs, options);
    EXPECT_TRUE(report) << report;
    // Inputs of equal shapes as one tensor in several places.
    bool repeated = false;
    for (size_t i = 1; i < inputs.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        if (inputs[k].shape() != inputs[i].shape()) continue;
        inputs[i] = inputs[k];
        repeated = true;
      }
    }
    if (!repeated) continue;
    const GradCheckReport aliased = GradCheck(c.f, inputs, options);
    EXPECT_TRUE(aliased) << "repeated input: " << aliased;
  }
}

TEST_P(GradientsTest, FloatAgreesWithDouble) {
  const Case& c = GetParam();
  for (const std::vector<Shape>& shapes : c.sizes) {
    const auto exact = Run(c.f, c, shapes, DType::kFloat64, false);
    for (bool recorded : {false, true}) {
      ExpectAllClose(Run(c.f, c, shapes, DType::kFloat32, recorded), exact,
                     c.float_error, recorded ? "recorded pass" : "plain pass");
    }
  }
}

using FusedTest = GradientsTest;

TEST_P(FusedTest, AgreesWithItsComposition) {
  const Case& c = GetParam();
  for (const std::vector<Shape>& shapes : c.sizes) {
    for (DType dtype : kFloats) {
      const double tolerance = dtype == DType::kFloat64 ? 1e-13 : c.float_error;
      const auto composed = Run(c.composed, c, shapes, dtype, false);
      for (bool recorded : {false, true}) {
        ExpectAllClose(Run(c.f, c, shapes, dtype, recorded), composed,
                       tolerance, Name(dtype));
      }
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FusedTest);

// Those of a table that have a composition.
inline std::vector<Case> Fused(const std::vector<Case>& table) {
  std::vector<Case> fused;
  for (const Case& c : table) {
    if (c.composed) fused.push_back(c);
  }
  return fused;
}

inline std::string NameOf(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}
inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

}  // namespace wengert

#endif  // WENGERT_AUTOGRAD_OPS_GRADIENTS_TESTLIB_H_
